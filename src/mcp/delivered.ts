/**
 * Outcomes that are written, on their way to the object, which tells the agent that it may forget them. They travel
 * with the next call to the same device, so that a busy device costs no RPC more; a quiet one is told after a moment.
 * Loses ids when an isolate ends: the agent's journal forgets by time then.
 */
import { TUNNEL } from "../limits.ts";

interface Waiting {
  ids: string[];
  /** Epoch ms until which a promise to flush is believed: it ends with the request that made it. */
  plannedUntil: number;
}

export class DeliveredIds {
  readonly #waiting = new Map<string, Waiting>();

  /** The ids for a call that is about to be sent to the device. */
  take(deviceId: string): string[] {
    const waiting = this.#waiting.get(deviceId);
    if (waiting === undefined) return [];
    const { ids } = waiting;
    waiting.ids = [];
    return ids;
  }

  /** Adds an id. True when the caller has to flush after the usual delay, because nobody else is about to. */
  add(deviceId: string, callId: string, now: number): boolean {
    const waiting = this.#waiting.get(deviceId) ?? { ids: [], plannedUntil: 0 };
    this.#waiting.set(deviceId, waiting);
    if (waiting.ids.length < TUNNEL.deliveredBatch) waiting.ids.push(callId);
    if (now < waiting.plannedUntil) return false;
    waiting.plannedUntil = now + 2 * TUNNEL.deliveredDelayMs;
    return true;
  }

  /** The ids that no call took along. */
  flush(deviceId: string): string[] {
    const ids = this.take(deviceId);
    this.#waiting.delete(deviceId);
    return ids;
  }
}
