/**
 * The answer of a call on its way to the edge: one value for the first message, then a byte stream of records, made
 * only when the first message is not the whole outcome. The stream is pulled: what the edge does not read stays here,
 * and what it reads is told, so that the agent gets credit for it.
 */
import { type Failure, REASONS } from "../src/errors.ts";
import { encode } from "../src/tunnel/codec.ts";
import { writeRecord } from "../src/tunnel/record.ts";
import type { Delivery, Sink } from "./pending-calls.ts";
import type { CallReply } from "./rpc.ts";

export interface ReplyEvents {
  /** A stream was made: the answer takes more than its first message. */
  onStream(): void;
  /** Bytes of payload left the object. */
  onRead(bytes: number): void;
  /** The edge took the last message: the whole answer has left the object. */
  onEnd(): void;
  /** The edge gave the stream up before its end: nobody is attached. */
  onGone(): void;
}

export class Reply implements Sink {
  readonly #callId: string;
  readonly #events: ReplyEvents;
  readonly #first = Promise.withResolvers<CallReply>();
  #state: "waiting" | "streaming" | "ended" = "waiting";
  /** Records that wait to be pulled, and the payload bytes they count. */
  #records: Uint8Array[] = [];
  #bytes = 0;
  #hasLast = false;
  #isCancelled = false;
  #wake: (() => void) | undefined;

  constructor(callId: string, events: ReplyEvents) {
    this.#callId = callId;
    this.#events = events;
  }

  /** Settles with the first message, or with what kept it from coming. */
  get reply(): Promise<CallReply> {
    return this.#first.promise;
  }

  deliver({ message, bytes, isLast }: Delivery): void {
    if (this.#state === "waiting") this.#begin(message, bytes, isLast);
    else if (this.#state === "streaming") this.#push(writeRecord(message), bytes, isLast);
  }

  fail(failure: Failure, seq: number): void {
    if (this.#state === "waiting") {
      this.#state = "ended";
      this.#first.resolve({ ok: false, refusal: { kind: "failure", failure } });
      return;
    }
    if (this.#state !== "streaming") return;
    // What a stalled reader has left unread is given up with the call.
    this.#records = [];
    this.#bytes = 0;
    this.#push(writeRecord(failureMessage(this.#callId, failure, seq)), 0, true);
  }

  beat(): void {
    // A record without a message. The platform tells only who writes that the reader is gone.
    if (this.#state === "streaming" && this.#records.length === 0) this.#push(writeRecord(""), 0, false);
  }

  drop(): void {
    if (this.#state === "waiting") this.fail({ reason: "cancelled", outcome: "unknown" }, 0);
    this.#state = "ended";
    this.#records = [];
    this.#bytes = 0;
    this.#hasLast = true;
    this.#wake?.();
  }

  #begin(message: string | Uint8Array, bytes: number, isLast: boolean): void {
    this.#state = isLast ? "ended" : "streaming";
    this.#first.resolve({ ok: true, first: message, rest: isLast ? null : this.#stream() });
    if (!isLast) this.#events.onStream();
    this.#events.onRead(bytes);
    if (isLast) this.#events.onEnd();
  }

  #push(record: Uint8Array, bytes: number, isLast: boolean): void {
    this.#records.push(record);
    this.#bytes += bytes;
    this.#hasLast ||= isLast;
    this.#wake?.();
  }

  #stream(): ReadableStream<Uint8Array> {
    return new ReadableStream({
      type: "bytes",
      pull: async (controller) => {
        while (this.#records.length === 0 && !this.#hasLast) await this.#arrival();
        if (this.#isCancelled) return;
        const bytes = this.#take();
        if (bytes !== null) controller.enqueue(bytes);
        if (!this.#hasLast) return;
        const wasRead = this.#state === "streaming";
        this.#state = "ended";
        controller.close();
        controller.byobRequest?.respond(0);
        if (wasRead) this.#events.onEnd();
      },
      cancel: () => {
        const wasOpen = this.#state === "streaming";
        this.#isCancelled = true;
        this.drop();
        if (wasOpen) this.#events.onGone();
      },
    });
  }

  async #arrival(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    await promise;
    this.#wake = undefined;
  }

  /** Everything that waits, as one block. */
  #take(): Uint8Array | null {
    const records = this.#records;
    if (records.length === 0) return null;
    this.#records = [];
    const read = this.#bytes;
    this.#bytes = 0;
    this.#events.onRead(read);
    const [only] = records;
    if (only !== undefined && records.length === 1) return only;
    const block = new Uint8Array(records.reduce((size, record) => size + record.length, 0));
    let at = 0;
    for (const record of records) {
      block.set(record, at);
      at += record.length;
    }
    return block;
  }
}

/** A failure of ours as the message an agent would have sent, for a reply that has begun. */
export function failureMessage(callId: string, failure: Failure, seq: number): string | Uint8Array {
  return encode({
    type: "error",
    callId,
    seq: seq + 1,
    origin: "agent",
    reason: failure.reason,
    outcome: failure.outcome,
    message: failure.message ?? REASONS[failure.reason].text,
    ...(failure.data === undefined ? {} : { data: failure.data }),
  });
}
