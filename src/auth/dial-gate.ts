/**
 * How many agents may be between their request and their socket at once in one isolate. When all of them come back
 * at the same time, those beyond the number are turned away at once and come again after their backoff: each dial that is
 * begun also ends, instead of all of them running out of time together. Pure.
 */

export class DialGate {
  readonly #most: number;
  readonly #staleMs: number;
  /** When each began, oldest first (epoch ms). */
  readonly #begun = new Map<symbol, number>();

  /** A dial that has not ended after `staleMs` does not count any more: the platform drops the request of a client that left. */
  constructor(most: number, staleMs: number) {
    this.#most = most;
    this.#staleMs = staleMs;
  }

  /** Lets a dial begin, and gives what ends it; null when there are enough. */
  enter(now: number): (() => void) | null {
    for (const [dial, at] of this.#begun) {
      if (now - at < this.#staleMs) break;
      this.#begun.delete(dial);
    }
    if (this.#begun.size >= this.#most) return null;
    const dial = Symbol("dial");
    this.#begun.set(dial, now);
    return () => void this.#begun.delete(dial);
  }
}
