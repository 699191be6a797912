/** Bytes that are held for others until they have taken them, under one bound. Pure accounting; every change asserts it. */

export class HeldBytes {
  readonly #maxBytes: number;
  readonly #held = new Map<string, number>();
  #total = 0;

  /** `maxBytes` is for all holders together. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get totalBytes(): number {
    return this.#total;
  }

  /** Books more bytes for a holder. False when there is no room: nothing is booked then. */
  take(holder: string, bytes: number): boolean {
    if (this.#total + bytes > this.#maxBytes) return false;
    this.#change(holder, bytes);
    return true;
  }

  /** Takes bytes of a holder off the books, all of them unless said otherwise. */
  give(holder: string, bytes: number = this.#held.get(holder) ?? 0): void {
    this.#change(holder, -bytes);
  }

  #change(holder: string, bytes: number): void {
    const held = (this.#held.get(holder) ?? 0) + bytes;
    this.#total += bytes;
    if (held < 0 || this.#total < 0 || this.#total > this.#maxBytes) throw new Error("held bytes: budget broken");
    if (held === 0) this.#held.delete(holder);
    else this.#held.set(holder, held);
  }
}
