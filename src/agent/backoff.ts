/** Full-jitter backoff without a lifetime limit: delay = random(0, min(cap, base * 2^attempt)), never below the base. */
import { BACKOFF } from "../limits.ts";

export class Backoff {
  readonly #random: () => number;
  #attempt = 0;

  constructor(random: () => number = Math.random) {
    this.#random = random;
  }

  /** ms to wait before the next try. */
  next(): number {
    const ceiling = Math.min(BACKOFF.capMs, BACKOFF.baseMs * 2 ** Math.min(this.#attempt, 16));
    this.#attempt += 1;
    return Math.max(BACKOFF.baseMs, Math.round(this.#random() * ceiling));
  }

  /** ms within the redial window; does not count as an attempt the first time in a row. */
  redial(): number {
    if (this.#attempt > 0) return this.next();
    this.#attempt = 1;
    return Math.round(this.#random() * BACKOFF.redialMs);
  }

  /** Tells how long the last link lasted; a stable one starts the counter again. */
  lasted(ms: number): void {
    if (ms >= BACKOFF.stableMs) this.#attempt = 0;
  }

  /** Starts the counter again. */
  reset(): void {
    this.#attempt = 0;
  }
}
