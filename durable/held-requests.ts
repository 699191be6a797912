/** How much the object holds of requests that do not fit one message, all calls together. Pure accounting. */
import { TUNNEL } from "../src/limits.ts";

/** Bytes of the large requests that are held, by call. Pure. */
export class HeldRequests {
  readonly #sizes = new Map<string, number>();
  #total = 0;

  get totalBytes(): number {
    return this.#total;
  }

  /** Books a request. False when there is no room: nothing is booked then. */
  take(callId: string, bytes: number): boolean {
    if (this.#sizes.has(callId)) return true;
    if (this.#total + bytes > TUNNEL.heldRequestBytes) return false;
    this.#sizes.set(callId, bytes);
    this.#total += bytes;
    return true;
  }

  /** The agent has the request, or nobody wants it any more. */
  give(callId: string): void {
    this.#total -= this.#sizes.get(callId) ?? 0;
    this.#sizes.delete(callId);
  }
}
