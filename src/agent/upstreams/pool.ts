/**
 * The instances of a legacy upstream that are kept apart: one per grant and set of input capabilities, ended when
 * idle, bounded in number (design section 6, "Upstream instances").
 */
import { UPSTREAM } from "../../limits.ts";
import { failure, FailureError } from "../failure.ts";
import type { Instance } from "./instance.ts";

interface Slot {
  starting: Promise<Instance>;
  /** Set once it has started. */
  instance: Instance | null;
  /** Calls that hold it, from before its start. */
  users: number;
  idle: NodeJS.Timeout | null;
}

export class Pool {
  readonly #slots = new Map<string, Slot>();
  readonly #isHeld: (instance: Instance) => boolean;

  /** `isHeld`: the instance is of use without a call, so it does not end by being idle; it still makes room for others. */
  constructor(isHeld: (instance: Instance) => boolean) {
    this.#isHeld = isHeld;
  }

  /** Uses the instance of that key, starting it when there is none. Rejects with a FailureError. */
  async use<T>(key: string, start: () => Promise<Instance>, work: (instance: Instance) => Promise<T>): Promise<T> {
    const slot = this.#slot(key, start);
    slot.users += 1;
    if (slot.idle) clearTimeout(slot.idle);
    slot.idle = null;
    try {
      return await work(await slot.starting);
    } finally {
      slot.users -= 1;
      if (slot.users === 0) this.#rest(key, slot);
    }
  }

  /** Forgets an instance that ended by itself. */
  remove(instance: Instance): void {
    for (const [key, slot] of this.#slots) if (slot.instance === instance) this.#drop(key, slot);
  }

  async close(): Promise<void> {
    const slots = [...this.#slots];
    for (const [key, slot] of slots) this.#drop(key, slot);
    await Promise.all(slots.map(async ([, slot]) => await this.#end(slot)));
  }

  #slot(key: string, start: () => Promise<Instance>): Slot {
    const found = this.#slots.get(key);
    if (found && found.instance?.isClosed !== true) return found;
    if (found) this.#drop(key, found);
    this.#makeRoom();
    const slot: Slot = { starting: start(), instance: null, users: 0, idle: null };
    this.#slots.set(key, slot);
    slot.starting.then(
      (instance) => {
        slot.instance = instance;
      },
      () => this.#drop(key, slot),
    );
    return slot;
  }

  #makeRoom(): void {
    if (this.#slots.size < UPSTREAM.instances) return;
    let oldest: [string, Slot] | undefined;
    for (const entry of this.#slots) {
      const [, slot] = entry;
      if (slot.users > 0 || !slot.instance) continue;
      if (!oldest?.[1].instance || slot.instance.usedAt < oldest[1].instance.usedAt) oldest = entry;
    }
    if (!oldest) {
      const text = `All ${UPSTREAM.instances} instances of the tool server are busy.`;
      throw new FailureError(failure("rate_limited", "not_started", text, { retryAfterMs: UPSTREAM.retryMs }));
    }
    this.#drop(...oldest);
    void this.#end(oldest[1]);
  }

  #rest(key: string, slot: Slot): void {
    if (this.#slots.get(key) !== slot) return;
    slot.idle = setTimeout(() => {
      if (slot.instance && !slot.instance.isClosed && this.#isHeld(slot.instance)) return this.#rest(key, slot);
      this.#drop(key, slot);
      void this.#end(slot);
    }, UPSTREAM.idleMs);
    slot.idle.unref();
  }

  #drop(key: string, slot: Slot): void {
    if (slot.idle) clearTimeout(slot.idle);
    if (this.#slots.get(key) === slot) this.#slots.delete(key);
  }

  async #end(slot: Slot): Promise<void> {
    try {
      await (await slot.starting).close();
    } catch {
      // It never started; there is nothing to end.
    }
  }
}

/** A key for a grant and capabilities: equal sets have equal keys, whatever the order of their members. */
export function instanceKey(grant: string, capabilities: unknown): string {
  return `${grant}\n${JSON.stringify(sorted(capabilities))}`;
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  return Object.entries(value)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, member]) => [key, sorted(member)]);
}
