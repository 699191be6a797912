/**
 * One timer for the deadlines of all calls in flight. It wakes at the earliest; whoever runs it says when the next is.
 * A timer keeps the object in memory, so it is only armed while something is in flight.
 */

export class Ticker {
  readonly #run: () => void;
  #timer: number | null = null;
  #at = Infinity;

  constructor(run: () => void) {
    this.#run = run;
  }

  /** Wakes at `at` (epoch ms) at the latest. */
  by(at: number, now: number): void {
    if (at >= this.#at) return;
    this.#arm(at, now);
  }

  /** Nothing waits before `at`; Infinity: nothing waits at all. */
  next(at: number, now: number): void {
    if (at === this.#at) return;
    if (at === Infinity) this.#stop();
    else this.#arm(at, now);
  }

  #arm(at: number, now: number): void {
    clearTimeout(this.#timer);
    this.#at = at;
    this.#timer = setTimeout(
      () => {
        this.#at = Infinity;
        this.#run();
      },
      Math.max(0, at - now),
    );
  }

  #stop(): void {
    clearTimeout(this.#timer);
    this.#at = Infinity;
  }
}
