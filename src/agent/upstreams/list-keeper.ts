/** Keeps what an upstream offers up to date: reads it anew after a start and after notices, and says what changed. */
import { UPSTREAM } from "../../limits.ts";
import { failureOf, failure } from "../failure.ts";
import type { Instance } from "./instance.ts";
import { readLists } from "./read-lists.ts";
import type { ListKind, UpstreamListener, UpstreamLists } from "./upstream.ts";

const NOTICES: ReadonlyMap<string, ListKind> = new Map([
  ["notifications/tools/list_changed", "tools"],
  ["notifications/prompts/list_changed", "prompts"],
  ["notifications/resources/list_changed", "resources"],
]);

export class ListKeeper {
  current: UpstreamLists | null = null;
  readonly #listener: UpstreamListener;
  readonly #warn: (message: string) => void;
  #timer: NodeJS.Timeout | null = null;
  /** Told by the upstream itself: passed on even when the lists read the same. */
  readonly #told = new Set<ListKind>();
  #reading: Promise<void> = Promise.resolve();
  #isStopped = false;

  constructor(listener: UpstreamListener, warn: (message: string) => void) {
    this.#listener = listener;
    this.#warn = warn;
  }

  stop(): void {
    this.#isStopped = true;
    if (this.#timer) clearTimeout(this.#timer);
  }

  /**
   * Takes a notice that came on `source`; the lists are read on `first`. A server that sends notices by habit right
   * after the handshake is believed only when something differs.
   */
  notice(method: string, first: Instance, source: Instance): void {
    const kind = NOTICES.get(method);
    if (kind === undefined || this.#isStopped) return;
    const isHabit = source.facts.era === "legacy" && Date.now() - source.startedAt < UPSTREAM.settleMs;
    if (!isHabit) this.#told.add(kind);
    this.#timer ??= setTimeout(() => {
      this.#timer = null;
      void this.read(first);
    }, UPSTREAM.refreshMs);
  }

  /** Reads all lists. Never rejects. */
  async read(instance: Instance): Promise<void> {
    // One after the other, so that an older answer never replaces a newer one.
    this.#reading = this.#reading.then(async () => await this.#read(instance));
    await this.#reading;
  }

  async #read(instance: Instance): Promise<void> {
    if (this.#isStopped || instance.isClosed) return;
    const told = new Set(this.#told);
    this.#told.clear();
    try {
      const before = this.current;
      this.current = await readLists(instance);
      this.#listener.lists([...new Set([...told, ...(before ? differences(before, this.current) : [])])]);
    } catch (error) {
      for (const kind of told) this.#told.add(kind);
      this.#warn(failureOf(error, failure("upstream_failed", "unknown", "the lists could not be read")).message);
    }
  }
}

/** The kinds whose items differ. */
export function differences(before: UpstreamLists, after: UpstreamLists): ListKind[] {
  const kinds: ListKind[] = [];
  if (!isSame(before.tools, after.tools)) kinds.push("tools");
  if (!isSame(before.prompts, after.prompts)) kinds.push("prompts");
  if (!isSame(before.resources, after.resources) || !isSame(before.resourceTemplates, after.resourceTemplates)) kinds.push("resources");
  return kinds;
}

function isSame(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((item, index) => item === b[index]);
}
