/** Requests that arrive in chunks, put together under a bound for each and for all. Pure. */
import { AGENT, CALL, EDGE } from "../limits.ts";
import type { Call } from "../tunnel/frames.ts";

interface Arriving {
  frame: Call;
  parts: Uint8Array[];
  received: number;
  /** Bytes the relay may send, counted from the beginning. */
  granted: number;
  /** Epoch ms since when its link is gone; null while its chunks come. */
  lostAt: number | null;
}

/** What a chunk did: `more` to come, with the bytes of credit that are due, the whole payload, or why its call ends. Null for a stream nobody expects. */
export type Arrival =
  | { kind: "more"; credit: number }
  | { kind: "whole"; frame: Call; payload: Uint8Array }
  | { kind: "broken"; frame: Call; problem: string }
  | null;

export class Inbox {
  readonly #arriving = new Map<string, Arriving>();
  #announced = 0;

  /**
   * Expects `bytes` for a call, and gives the first credit, 0 when that is too much. What came of the same call on an
   * earlier link is kept: the rest is expected from `offset`.
   */
  open(frame: Call, bytes: number): { credit: number; offset: number } {
    const known = this.#arriving.get(frame.callId);
    if (known?.frame.bytes === bytes && known.lostAt !== null) return this.#goOn(known, frame, bytes);
    this.drop(frame.callId);
    if (bytes > EDGE.maxRequestBytes || this.#announced + bytes > AGENT.assembleBytes) return { credit: 0, offset: 0 };
    this.#announced += bytes;
    const granted = Math.min(bytes, AGENT.requestWindowBytes);
    this.#arriving.set(frame.callId, { frame, parts: [], received: 0, granted, lostAt: null });
    return { credit: granted, offset: 0 };
  }

  #goOn(arriving: Arriving, frame: Call, bytes: number): { credit: number; offset: number } {
    const offset = arriving.received;
    const granted = Math.min(bytes, offset + AGENT.requestWindowBytes);
    Object.assign(arriving, { frame, granted, lostAt: null });
    return { credit: granted - offset, offset };
  }

  chunk(stream: string, offset: number, piece: Uint8Array): Arrival {
    const arriving = this.#arriving.get(stream);
    if (!arriving || arriving.lostAt !== null) return null;
    const { frame } = arriving;
    const bytes = frame.bytes ?? 0;
    if (offset !== arriving.received || piece.length === 0 || offset + piece.length > bytes) {
      this.drop(stream);
      return { kind: "broken", frame, problem: "a chunk of the request is out of place" };
    }
    arriving.parts.push(piece);
    arriving.received += piece.length;
    if (arriving.received < bytes) return { kind: "more", credit: this.#due(arriving, bytes) };
    this.drop(stream);
    return { kind: "whole", frame, payload: Buffer.concat(arriving.parts) };
  }

  /** A window more whenever half of it is used up, so that the relay never waits for a round trip on a good link. */
  #due(arriving: Arriving, bytes: number): number {
    if (arriving.granted - arriving.received > AGENT.requestWindowBytes / 2) return 0;
    const granted = Math.min(bytes, arriving.received + AGENT.requestWindowBytes);
    const credit = granted - arriving.granted;
    arriving.granted = granted;
    return credit;
  }

  /** Forgets one request. True when it was expected. */
  drop(callId: string): boolean {
    const arriving = this.#arriving.get(callId);
    if (!arriving) return false;
    this.#arriving.delete(callId);
    this.#announced -= arriving.frame.bytes ?? 0;
    return true;
  }

  /** The link is gone: what is half here waits for the relay to come back with the rest. */
  lost(now: number): void {
    for (const arriving of this.#arriving.values()) arriving.lostAt ??= now;
  }

  /** Forgets what the relay does not come back for any more. */
  sweep(now: number): void {
    for (const [callId, { lostAt }] of this.#arriving) if (lostAt !== null && now - lostAt > CALL.attachWindowMs) this.drop(callId);
  }

  /** Forgets all requests, and gives their headers. */
  clear(): Call[] {
    const frames = [...this.#arriving.values()].map(({ frame }) => frame);
    this.#arriving.clear();
    this.#announced = 0;
    return frames;
  }
}
