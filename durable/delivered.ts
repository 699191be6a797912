/**
 * Call ids whose outcome the edge has written, gathered so that the agent hears of many in one frame. The timer lasts
 * a quarter of a second, so it never keeps an idle object in memory. What cannot be told is kept for the next link.
 */
import { JOURNAL, TUNNEL } from "../src/limits.ts";
import type { CancelReason } from "../src/tunnel/frames.ts";
import type { Link, Links } from "./links.ts";

export class Delivered {
  readonly #links: Links;
  /** Whether the audit row of a call is stored; the agent keeps the outcome until then. */
  readonly #isStored: (callId: string) => boolean;
  #ids: string[] = [];
  #timer: number | null = null;
  /** Runs after each flush; off the path of any call. */
  readonly #afterFlush: () => void;
  /** Ends that no link was there for: a cancellation with its reason, or null for an outcome that was delivered. */
  readonly #untold = new Map<string, CancelReason | null>();

  constructor(links: Links, isStored: (callId: string) => boolean, afterFlush: () => void) {
    this.#links = links;
    this.#isStored = isStored;
    this.#afterFlush = afterFlush;
  }

  /** The outcome is written, or nobody will ask for it again. */
  add(callId: string): void {
    this.#ids.push(callId);
    if (this.#ids.length >= TUNNEL.deliveredBatch) this.flush();
    else this.#timer ??= setTimeout(() => this.flush(), TUNNEL.deliveredDelayMs);
  }

  /** The call was cancelled while no link was there. */
  cancelled(callId: string, reason: CancelReason): void {
    this.#remember(callId, reason);
  }

  /** Tells what is gathered now and stored; the rest goes when its rows are. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = null;
    const ids = this.#ids.filter((id) => this.#isStored(id));
    this.#ids = this.#ids.filter((id) => !this.#isStored(id));
    if (ids.length === 0) return;
    const sent = this.#links.current()?.send({ type: "delivered", callIds: ids }) === true;
    if (!sent) for (const id of ids) this.#remember(id, null);
    this.#afterFlush();
  }

  /** Tells a new link what ended while it was away, as far as the agent still holds it. */
  tell(link: Link, held: ReadonlySet<string>): void {
    const delivered: string[] = [];
    for (const [callId, reason] of this.#untold) {
      if (!held.has(callId)) continue;
      if (reason === null) delivered.push(callId);
      else link.send({ type: "cancel", callId, reason });
    }
    this.#untold.clear();
    for (let from = 0; from < delivered.length; from += TUNNEL.deliveredBatch) {
      link.send({ type: "delivered", callIds: delivered.slice(from, from + TUNNEL.deliveredBatch) });
    }
  }

  #remember(callId: string, reason: CancelReason | null): void {
    this.#untold.set(callId, reason);
    if (this.#untold.size <= JOURNAL.entries) return;
    const oldest = this.#untold.keys().next();
    if (oldest.done !== true) this.#untold.delete(oldest.value);
  }
}
