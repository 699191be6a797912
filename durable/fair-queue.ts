/** A bounded queue that serves its keys in turn, so that a busy one cannot hold back the others. Pure. */
export class FairQueue<T> {
  readonly #max: number;
  readonly #lines = new Map<string, T[]>();
  #size = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#size;
  }

  /** Adds an item at the end of its key's line. False when the queue is full. */
  push(key: string, item: T): boolean {
    if (this.#size >= this.#max) return false;
    const line = this.#lines.get(key);
    if (line === undefined) this.#lines.set(key, [item]);
    else line.push(item);
    this.#size += 1;
    return true;
  }

  /** The next item: the first of the key whose turn it is, which then goes to the end of the round. */
  shift(): T | undefined {
    for (const [key, line] of this.#lines) {
      this.#lines.delete(key);
      const item = line.shift();
      if (line.length > 0) this.#lines.set(key, line);
      this.#size -= 1;
      return item;
    }
    return undefined;
  }

  /** Takes an item out of its key's line. False when it is not waiting. */
  remove(key: string, item: T): boolean {
    const line = this.#lines.get(key);
    const at = line?.indexOf(item) ?? -1;
    if (line === undefined || at < 0) return false;
    line.splice(at, 1);
    if (line.length === 0) this.#lines.delete(key);
    this.#size -= 1;
    return true;
  }
}
