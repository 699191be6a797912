/**
 * What one call has to say, in order: events, asks, the outcome. It is kept until it is delivered, so that it can be
 * said again on a new link from any position, and it is sent only as far as the relay's credit goes.
 */
import { AGENT, TUNNEL } from "../limits.ts";
import type { AgentError, Ask, Event, Result, UpstreamError } from "../tunnel/frames.ts";
import { wellFormed, type OutcomeMessage } from "./outcome-frames.ts";
import type { FramePort } from "./port.ts";

type ItemFrame = Event | Ask | Result | UpstreamError | AgentError;
interface Item {
  frame: ItemFrame;
  payload: Uint8Array | undefined;
}

const NOTHING = new Uint8Array();

export class CallOutput {
  readonly #callId: string;
  #items: Item[] = [];
  /** Position of the last item, and bytes of the events and asks that are kept. */
  #seq = 0;
  #eventBytes = 0;
  #outcome: Item | null = null;
  /** While attached: the position last sent, credit in bytes, and where the outcome's chunks are; null while none flow. */
  #isAttached = false;
  #sentSeq = 0;
  #credit = 0;
  #chunkAt: number | null = null;
  #resumeAt = 0;
  #hasSent = false;

  constructor(callId: string) {
    this.#callId = callId;
  }

  get isAttached(): boolean {
    return this.#isAttached;
  }

  /** Something of the call has left on this link, which acknowledges it. */
  get hasSent(): boolean {
    return this.#hasSent;
  }

  get hasOutcome(): boolean {
    return this.#outcome !== null;
  }

  /** Attached, and something was not sent yet. */
  get hasMore(): boolean {
    return this.#isAttached && (this.#chunkAt !== null || this.#items.some(({ frame }) => frame.seq > this.#sentSeq));
  }

  /** Bytes kept in memory. */
  get heldBytes(): number {
    return this.#eventBytes + (this.#outcome?.payload?.length ?? 0);
  }

  /** Adds an event. False when it is too large to be ever sent. */
  event(method: Event["method"], params: Uint8Array): boolean {
    const payload = wellFormed(params);
    if (payload.length > TUNNEL.initialCreditBytes) return false;
    this.#push({ type: "event", callId: this.#callId, seq: this.#next(), method }, payload);
    return true;
  }

  /** Adds an input request. False when it is too large to be ever sent. */
  ask(askId: string, method: Ask["method"], params: Uint8Array): boolean {
    const payload = wellFormed(params);
    if (payload.length > TUNNEL.initialCreditBytes) return false;
    this.#push({ type: "ask", callId: this.#callId, seq: this.#next(), askId, method }, payload);
    return true;
  }

  /** Sets the outcome; the first one counts. */
  outcome({ frame, payload }: OutcomeMessage): void {
    if (this.#outcome) return;
    // SAFETY: an outcome frame lacks only its position.
    this.#outcome = { frame: { ...frame, seq: this.#next() } as ItemFrame, payload };
    this.#items.push(this.#outcome);
  }

  /** Goes on a link: what comes after `seq`, and the outcome's payload from `offset`. */
  attach(seq: number, offset: number, credit: number): void {
    this.#isAttached = true;
    this.#sentSeq = seq;
    this.#credit = credit;
    this.#resumeAt = offset;
    this.#hasSent = false;
    const outcome = this.#outcome;
    const hasHeader = outcome !== null && outcome.frame.seq <= seq;
    this.#chunkAt = hasHeader && outcome.payload !== undefined && offset < outcome.payload.length ? offset : null;
  }

  detach(): void {
    this.#isAttached = false;
    this.#chunkAt = null;
  }

  /** Says that everything before this is known, as after an acknowledgement of its own. */
  markSent(): void {
    this.#hasSent = true;
  }

  addCredit(bytes: number): void {
    this.#credit += bytes;
  }

  /** Sends one message if there is one that may be sent. */
  pump(port: FramePort): boolean {
    if (!this.#isAttached) return false;
    if (this.#chunkAt !== null) return this.#sendChunk(port);
    const item = this.#items.find((candidate) => candidate.frame.seq > this.#sentSeq);
    if (!item) return false;
    return item === this.#outcome && item.frame.type === "result"
      ? this.#sendResult(port, item.frame, item.payload ?? NOTHING)
      : this.#sendWhole(port, item);
  }

  #next(): number {
    this.#seq += 1;
    return this.#seq;
  }

  #push(frame: Event | Ask, payload: Uint8Array): void {
    this.#items.push({ frame, payload });
    this.#eventBytes += payload.length;
    while (this.#eventBytes > AGENT.eventBytes) {
      // The oldest notification goes first; a question never does.
      const index = this.#items.findIndex((item) => item.frame.type === "event");
      const [gone] = index < 0 ? [] : this.#items.splice(index, 1);
      if (!gone) return;
      this.#eventBytes -= gone.payload?.length ?? 0;
    }
  }

  #sendWhole(port: FramePort, item: Item): boolean {
    const size = item.payload?.length ?? 0;
    if (size > this.#credit) return false;
    if (!this.#send(port, item.frame, item.payload)) {
      if (item.frame.type === "error" && item.payload) return this.#sendWhole(port, { frame: item.frame, payload: undefined });
      // Larger than this link takes: it is left out rather than everything behind it.
      this.#sentSeq = item.frame.seq;
      return true;
    }
    this.#credit -= size;
    this.#sentSeq = item.frame.seq;
    return true;
  }

  /** In one message when frame and credit allow, else as a header and chunks. */
  #sendResult(port: FramePort, frame: Result, payload: Uint8Array): boolean {
    const isWhole = this.#resumeAt === 0 && payload.length <= this.#credit && payload.length <= port.maxFrameBytes;
    if (isWhole && this.#send(port, frame, payload)) {
      this.#credit -= payload.length;
      this.#sentSeq = frame.seq;
      return true;
    }
    this.#sentSeq = frame.seq;
    if (this.#send(port, { ...frame, bytes: payload.length })) {
      if (this.#resumeAt < payload.length) this.#chunkAt = this.#resumeAt;
      return true;
    }
    const size = JSON.stringify(frame).length;
    const data = { size, cap: port.maxFrameBytes };
    const message = "The result's header is larger than a message of this link.";
    return this.#send(port, {
      type: "error",
      callId: this.#callId,
      seq: frame.seq,
      origin: "agent",
      reason: "too_large",
      outcome: "unknown",
      message,
      data,
    });
  }

  #sendChunk(port: FramePort): boolean {
    const payload = this.#outcome?.payload;
    if (this.#chunkAt === null || !payload) return false;
    const room = Math.min(this.#credit, port.maxFrameBytes - AGENT.chunkHeaderBytes);
    const piece = payload.subarray(this.#chunkAt, this.#chunkAt + Math.max(0, room));
    if (piece.length === 0) return false;
    if (!port.send({ type: "chunk", stream: this.#callId, offset: this.#chunkAt }, piece)) return false;
    this.#credit -= piece.length;
    this.#chunkAt += piece.length;
    if (this.#chunkAt >= payload.length) this.#chunkAt = null;
    return true;
  }

  #send(port: FramePort, frame: ItemFrame, payload?: Uint8Array): boolean {
    const isSent = port.send(
      frame,
      payload === undefined ? undefined : Buffer.from(payload.buffer, payload.byteOffset, payload.length).toString("utf8"),
    );
    if (isSent) this.#hasSent = true;
    return isSent;
  }
}
