/**
 * Calls per minute of each grant that has a cap, as a sliding window. In memory while the object is awake; what it
 * counted is kept with the audit's batches and read again after a wake, so that sleeping does not renew a cap.
 */
const MINUTE_MS = 60_000;
/** Times that are over and kept until they are cut off together, so that a call costs the same whatever the cap. */
const SLACK = 1_000;

/** When a grant made its calls (epoch ms), oldest first; those before `from` are over. */
interface Window {
  times: number[];
  from: number;
}

/** Where counts outlive the object's memory. */
export interface RateStore {
  load(grant: string): number[];
  save(grant: string, calls: readonly number[]): void;
}

const FORGETFUL: RateStore = { load: () => [], save: () => {} };

export class CallRates {
  readonly #store: RateStore;
  readonly #windows = new Map<string, Window>();
  readonly #changed = new Set<string>();

  /** Without a store, counts live as long as the instance. */
  constructor(store: RateStore = FORGETFUL) {
    this.#store = store;
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
    this.#changed.add(grant);
    return 0;
  }

  /** Stores what was counted since the last time; to be called off any call's path. */
  save(): void {
    for (const grant of this.#changed) this.#store.save(grant, liveTimes(this.#windows.get(grant)));
    this.#changed.clear();
  }

  /** Forgets a grant that ended. */
  drop(grant: string): void {
    if (this.#windows.delete(grant)) this.#store.save(grant, []);
    this.#changed.delete(grant);
  }

  #windowOf(grant: string): Window {
    const known = this.#windows.get(grant);
    if (known !== undefined) return known;
    const window = { times: this.#store.load(grant), from: 0 };
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

function liveTimes(window: Window | undefined): readonly number[] {
  return window === undefined ? [] : window.times.slice(window.from);
}
