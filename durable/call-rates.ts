/**
 * Calls per minute of each grant that has a cap, as a sliding window. In memory while the object is awake; after a wake
 * the audit's rows of the last minute say what was counted (design section 7), so that sleeping does not renew a cap.
 */
const MINUTE_MS = 60_000;
/** Times that are over and kept until they are cut off together, so that a call costs the same whatever the cap. */
const SLACK = 1_000;

/** When a grant made its calls (epoch ms), oldest first; those before `from` are over. */
interface Window {
  times: number[];
  from: number;
}

/** A call that was made: whose grant, and when (epoch ms). */
export interface MadeCall {
  grant: string;
  at: number;
}

export class CallRates {
  /** Reads the calls since a time (epoch ms), in any order. Never rejects. */
  readonly #load: (since: number) => Promise<readonly MadeCall[]>;
  readonly #windows = new Map<string, Window>();
  #learning: Promise<void> | undefined;
  #isKnown = false;

  /** Without `load`, what an earlier instance counted is not known. */
  constructor(load: (since: number) => Promise<readonly MadeCall[]> = async () => []) {
    this.#load = load;
  }

  /** Null when the last minute is known; else resolves when it is. */
  learn(now: number): Promise<void> | null {
    if (this.#isKnown) return null;
    this.#learning ??= this.#learn(now);
    return this.#learning;
  }

  /** Counts one call at `now`. Returns 0, or the ms after which the next one fits; that call is not counted. */
  take(grant: string, perMinute: number, now: number): number {
    const window = this.#windowOf(grant);
    slide(window, now - MINUTE_MS);
    const { times } = window;
    const at = times.length - perMinute;
    const oldest = at < window.from ? undefined : times[at];
    if (oldest !== undefined) return Math.max(1, oldest + MINUTE_MS - now);
    times.push(now);
    return 0;
  }

  /** Forgets a grant that ended. */
  drop(grant: string): void {
    this.#windows.delete(grant);
  }

  async #learn(now: number): Promise<void> {
    const calls = await this.#load(now - MINUTE_MS);
    for (const { grant, at } of calls.toSorted((one, other) => one.at - other.at)) this.#windowOf(grant).times.push(at);
    this.#isKnown = true;
  }

  #windowOf(grant: string): Window {
    const known = this.#windows.get(grant);
    if (known !== undefined) return known;
    const window = { times: [], from: 0 };
    this.#windows.set(grant, window);
    return window;
  }
}

function slide(window: Window, since: number): void {
  const { times } = window;
  while (window.from < times.length && (times[window.from] ?? 0) <= since) window.from += 1;
  if (window.from < SLACK) return;
  times.splice(0, window.from);
  window.from = 0;
}
