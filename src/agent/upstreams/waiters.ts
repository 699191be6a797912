/** Raw requests in flight on one connection, by our own ids: a random prefix per connection and a number. */
import { randomBytes } from "node:crypto";
import { failure, type AgentFailure } from "../failure.ts";
import type { RawListener, RawOutcome } from "./lane.ts";

interface Waiter {
  listener: RawListener;
  settle: (outcome: RawOutcome) => void;
}

export class Waiters {
  readonly #prefix = `ll-${randomBytes(6).toString("base64url")}-`;
  readonly #waiting = new Map<string, Waiter>();
  #count = 0;

  get size(): number {
    return this.#waiting.size;
  }

  /** A new id and the promise of its outcome. */
  add(listener: RawListener): { id: string; settled: Promise<RawOutcome> } {
    this.#count += 1;
    const id = `${this.#prefix}${this.#count}`;
    const settled = new Promise<RawOutcome>((resolve) => {
      this.#waiting.set(id, { listener, settle: resolve });
    });
    return { id, settled };
  }

  isOurs(id: string | undefined): id is string {
    return id !== undefined && id.startsWith(this.#prefix);
  }

  isWaiting(id: string): boolean {
    return this.#waiting.has(id);
  }

  listener(id: string | undefined): RawListener | undefined {
    return id === undefined ? undefined : this.#waiting.get(id)?.listener;
  }

  /** Ends one request; false when nobody waits for it any more. */
  settle(id: string, outcome: RawOutcome): boolean {
    const waiter = this.#waiting.get(id);
    if (!waiter) return false;
    this.#waiting.delete(id);
    waiter.listener.over?.();
    waiter.settle(outcome);
    return true;
  }

  cancel(id: string): boolean {
    return this.settle(id, { kind: "failed", failure: failure("cancelled", "unknown", "The call was cancelled.") });
  }

  failAll(reason: AgentFailure): void {
    for (const id of this.#waiting.keys()) this.settle(id, { kind: "failed", failure: reason });
  }

  /** The first of our ids in the edges of a message that was too large to keep. */
  findIn(...texts: readonly string[]): string | undefined {
    for (const text of texts) {
      const at = text.indexOf(`"${this.#prefix}`);
      const end = at < 0 ? -1 : text.indexOf('"', at + 1);
      if (end > 0) return text.slice(at + 1, end);
    }
    return undefined;
  }
}
