/** A deadline that can stand still: time in which a person is asked does not count (design section 3, "Deadlines"). */
export class Deadline {
  readonly #onDue: () => void;
  #leftMs: number;
  #startedAt = 0;
  #timer: ReturnType<typeof setTimeout> | null = null;

  constructor(ms: number, onDue: () => void) {
    this.#leftMs = ms;
    this.#onDue = onDue;
    this.resume();
  }

  pause(): void {
    if (!this.#timer) return;
    clearTimeout(this.#timer);
    this.#timer = null;
    this.#leftMs = Math.max(0, this.#leftMs - (performance.now() - this.#startedAt));
  }

  resume(): void {
    if (this.#timer) return;
    this.#startedAt = performance.now();
    this.#timer = setTimeout(this.#onDue, this.#leftMs);
  }

  clear(): void {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
  }
}
