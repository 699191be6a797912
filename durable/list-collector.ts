/** The answer of a list, assembled in the object under the catalogue's bound, because lists are filtered by grant. */
import type { Failure } from "../src/errors.ts";
import { CATALOGUE } from "../src/limits.ts";
import { payloadText } from "../src/tunnel/codec.ts";
import type { Result } from "../src/tunnel/frames.ts";
import type { Delivery, Sink } from "./pending-calls.ts";

/** How a forwarded list ended. */
export type Collected =
  | { kind: "result"; frame: Result; text: string }
  /** The upstream's own JSON-RPC error, or the agent's failure, as it was sent. */
  | { kind: "error"; message: string | Uint8Array; failure: Failure | null }
  | { kind: "failure"; failure: Failure };

export interface CollectorEvents {
  /** Bytes were taken in: they count against the list's own bound from now on. */
  onRead(bytes: number): void;
  onEnd(): void;
  /** The list announces more than the bound. */
  onTooLarge(size: number): void;
}

export class ListCollector implements Sink {
  readonly #settled = Promise.withResolvers<Collected>();
  readonly #events: CollectorEvents;
  #header: Result | undefined;
  #parts: Uint8Array[] = [];

  constructor(events: CollectorEvents) {
    this.#events = events;
  }

  /** Settles once, when the list has ended in whatever way. */
  get collected(): Promise<Collected> {
    return this.#settled.promise;
  }

  deliver({ frame, payload, message, bytes, isLast }: Delivery): void {
    this.#events.onRead(bytes);
    if (frame.type === "error") this.#settle({ kind: "error", message, failure: failureOf(frame) });
    if (frame.type === "result") {
      if ((frame.bytes ?? bytes) > CATALOGUE.maxBytes) return this.#events.onTooLarge(frame.bytes ?? bytes);
      this.#header = frame;
    }
    if (payload instanceof Uint8Array) this.#parts.push(payload);
    if (isLast && this.#header !== undefined) this.#finish(this.#header, payload);
    if (isLast) this.#events.onEnd();
  }

  fail(failure: Failure): void {
    this.#settle({ kind: "failure", failure });
  }

  drop(): void {
    this.#settle({ kind: "failure", failure: { reason: "cancelled", outcome: "unknown" } });
  }

  beat(): void {
    // The object itself reads, for as long as it is there.
  }

  #finish(frame: Result, payload: string | Uint8Array | undefined): void {
    try {
      const text = typeof payload === "string" ? payload : payloadText(concat(this.#parts));
      this.#settle({ kind: "result", frame, text });
    } catch {
      // Bytes that are not UTF-8 cannot be a JSON result.
      this.fail({ reason: "upstream_failed", outcome: "unknown", message: "The device sent a list that is not UTF-8." });
    }
  }

  #settle(collected: Collected): void {
    this.#settled.resolve(collected);
    this.#parts = [];
  }
}

function failureOf(frame: Extract<Delivery["frame"], { type: "error" }>): Failure | null {
  return frame.origin === "agent" ? { reason: frame.reason, outcome: frame.outcome, message: frame.message } : null;
}

function concat(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((bytes, part) => bytes + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
