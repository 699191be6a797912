/** Calls per minute of each grant, as a sliding window. Pure; in memory, bounded by the caps themselves. */
const MINUTE_MS = 60_000;

export class CallRates {
  readonly #calls = new Map<string, number[]>();

  /** Counts one call at `now`. Returns 0, or the ms after which the next one fits; that call is not counted. */
  take(grant: string, perMinute: number, now: number): number {
    const calls = (this.#calls.get(grant) ?? []).filter((at) => at > now - MINUTE_MS);
    const oldest = calls[calls.length - perMinute];
    if (oldest !== undefined) {
      this.#calls.set(grant, calls);
      return Math.max(1, oldest + MINUTE_MS - now);
    }
    calls.push(now);
    this.#calls.set(grant, calls);
    return 0;
  }

  /** Forgets a grant. */
  drop(grant: string): void {
    this.#calls.delete(grant);
  }
}
