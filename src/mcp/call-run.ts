/**
 * One call at the object, as a sequence of steps. Loses nothing when the object is reset: it attaches again by call
 * id, from the last position it has, and repeats nothing. Knows frames, not eras.
 */
import type { AskedCall, CallReply, Refusal, SessionFacts } from "../../durable/rpc.ts";
import type { Failure } from "../errors.ts";
import { EDGE } from "../limits.ts";
import { split, type Payload } from "../tunnel/codec.ts";
import type { AgentFrame, Ask, Event, Result } from "../tunnel/frames.ts";
import { readRecords, type RecordReader } from "../tunnel/record.ts";
import { isOverloaded, OVERLOADED, UNREACHABLE, type EdgeTunnel, type TunnelAccess } from "./tunnel-access.ts";

/** What a call can do next. `released`: this side gave up reading. */
export type Step =
  | { kind: "event"; frame: Event; payload: Payload | undefined }
  | { kind: "ask"; frame: Ask; payload: Payload | undefined }
  | { kind: "result"; frame: Result; payload: Payload | undefined }
  | { kind: "error"; frame: Extract<AgentFrame, { type: "error" }>; payload: Payload | undefined }
  | { kind: "refused"; refusal: Refusal }
  | { kind: "released" };

/** A result that began and cannot be ended. */
export class BrokenPayloadError extends Error {
  override readonly name = "BrokenPayloadError";
  readonly failure: Failure;
  constructor(failure: Failure) {
    super("the result broke off");
    this.failure = failure;
  }
}

type Message = { kind: "message"; bytes: string | Uint8Array } | { kind: "refused"; refusal: Refusal } | { kind: "released" };
type Rpc = (tunnel: EdgeTunnel) => Promise<CallReply>;

const LOST: Failure = { reason: "tunnel_lost", outcome: "unknown" };

export class CallRun {
  /** The session's facts, once the object has answered. */
  session: SessionFacts | undefined;
  readonly grant: string;
  readonly callId: string;
  readonly #access: TunnelAccess;
  #open: Rpc | null;
  #reader: RecordReader | null = null;
  /** Last event, ask or outcome taken; replays repeat the number. */
  #seq: number;
  /** Asks already shown by this run. */
  readonly #asked = new Set<string>();
  #offset = 0;
  /** Losses without a message in between. */
  #losses = 0;
  #isReleased = false;

  /** What was asked; an object that lost the call hears it again, for the audit. */
  asked: AskedCall | undefined;

  /** `open` starts or continues the call; `seq` is the last position a continued call has already shown. */
  constructor(access: TunnelAccess, grant: string, callId: string, open: Rpc, seq = 0) {
    this.#access = access;
    this.grant = grant;
    this.callId = callId;
    this.#open = open;
    this.#seq = seq;
  }

  /** Last position taken. */
  get seq(): number {
    return this.#seq;
  }

  /** The next step; never rejects. */
  async next(): Promise<Step> {
    for (;;) {
      const message = await this.#message(this.#seq);
      if (message.kind !== "message") return message;
      const read = readMessage(message.bytes);
      if (read === null) continue;
      const step = this.#step(read.frame, read.payload);
      if (step !== null) return step;
    }
  }

  /** The bytes of a result that comes in chunks, in order. Rejects with BrokenPayloadError when they cannot be had. */
  async *payload(result: Result): AsyncGenerator<Uint8Array, void, void> {
    const total = result.bytes ?? 0;
    try {
      while (this.#offset < total) {
        // The header is asked for again with the bytes, so that a relay or agent without memory knows what it sends.
        const message = await this.#message(result.seq - 1);
        if (message.kind === "refused") throw new BrokenPayloadError(failureOf(message.refusal));
        if (message.kind === "released") throw new BrokenPayloadError({ reason: "cancelled", outcome: "unknown" });
        const piece = this.#piece(message.bytes, total);
        if (piece !== null) yield piece;
      }
    } finally {
      this.release();
    }
  }

  /** Stops reading: the object learns that nobody is attached any more. */
  release(): void {
    this.#isReleased = true;
    // Fire and forget: `cancel` never rejects, and nobody waits for its end.
    void this.#reader?.cancel("released");
    this.#reader = null;
  }

  /** Null for a replay after attaching, and for frames that are none of a caller's business. */
  #step(frame: AgentFrame, payload: Payload | undefined): Step | null {
    if (frame.type !== "event" && frame.type !== "ask" && frame.type !== "result" && frame.type !== "error") return null;
    if (frame.type === "event" && frame.seq <= this.#seq) return null;
    if (frame.type === "ask") {
      // By id, not by position: a resumed call asks again what was not answered, under the old position.
      if (this.#asked.has(frame.askId)) return null;
      this.#asked.add(frame.askId);
    }
    const step = this.#seq > 0 ? started(frame) : frame;
    this.#seq = Math.max(this.#seq, frame.seq);
    // SAFETY: `kind` is the frame's own type, which TypeScript does not follow through the union.
    return { kind: frame.type, frame: step, payload } as Step;
  }

  #piece(message: string | Uint8Array, total: number): Uint8Array | null {
    const read = readMessage(message);
    if (read === null) return null;
    const { frame, payload } = read;
    if (frame.type === "error" && frame.origin === "agent") {
      // Its result has begun, so it ran, whatever an agent without memory of it says.
      throw new BrokenPayloadError({ reason: frame.reason, outcome: "unknown", message: frame.message, data: frame.data ?? {} });
    }
    if (frame.type === "result" && frame.bytes !== total) throw new BrokenPayloadError(LOST);
    if (frame.type !== "chunk" || payload === undefined || typeof payload === "string") return null;
    if (frame.offset > this.#offset || frame.offset + payload.length > total) throw new BrokenPayloadError(LOST);
    const known = this.#offset - frame.offset;
    if (known >= payload.length) return null;
    this.#offset += payload.length - known;
    return payload.subarray(known);
  }

  async #message(seq: number): Promise<Message> {
    for (;;) {
      if (this.#isReleased) return { kind: "released" };
      if (this.#reader !== null) {
        const bytes = await this.#read(this.#reader);
        if (bytes !== null) {
          this.#losses = 0;
          return { kind: "message", bytes };
        }
        this.#reader = null;
        continue;
      }
      const open = this.#open;
      this.#open = null;
      const reply = await this.#reach(open, (tunnel) => tunnel.attach(this.grant, this.callId, seq, this.#offset, this.asked));
      if ("kind" in reply) return reply;
      if (reply.session !== undefined) this.session = reply.session;
      if (!reply.ok) return { kind: "refused", refusal: reply.refusal };
      this.#reader = reply.rest === null ? null : readRecords(reply.rest);
      if (this.#isReleased) this.release();
      return { kind: "message", bytes: reply.first };
    }
  }

  /** Null when the stream ended or broke: either way the outcome is still to come. */
  async #read(reader: RecordReader): Promise<Uint8Array | null> {
    try {
      return await reader.next();
    } catch {
      return null; // a broken stream carries no flags; attaching again is the answer to all of them
    }
  }

  async #reach(open: Rpc | null, attach: Rpc): Promise<CallReply | Message> {
    let rpc = open;
    for (;;) {
      try {
        if (rpc !== null) return await rpc(this.#access.tunnel);
        this.#losses += 1;
        if (this.#losses > EDGE.attachTries) return { kind: "refused", refusal: UNREACHABLE };
        if (this.#losses > 1) await this.#access.pause(EDGE.attachPauseMs);
        this.#access.tunnel = await this.#access.fresh();
        return await attach(this.#access.tunnel);
      } catch (error) {
        if (isOverloaded(error)) return { kind: "refused", refusal: OVERLOADED };
        this.#access.report(error);
        if (this.#isReleased) return { kind: "released" };
        rpc = null;
      }
    }
  }
}

/** A call that has said something has begun: an agent that has lost its journal since cannot know that. */
function started(frame: AgentFrame): AgentFrame {
  return frame.type === "error" && frame.origin === "agent" ? { ...frame, outcome: "unknown" } : frame;
}

function failureOf(refusal: Refusal): Failure {
  return refusal.kind === "failure" ? refusal.failure : LOST;
}

/** The object has checked the frame; only the header is parsed here. */
function readMessage(message: string | Uint8Array): { frame: AgentFrame; payload: Payload | undefined } | null {
  const parts = split(message);
  if (parts === null) return null;
  try {
    return { frame: JSON.parse(parts.header) as AgentFrame, payload: parts.payload };
  } catch {
    return null; // cannot be: the object decodes every message before it passes one on
  }
}
