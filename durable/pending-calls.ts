/**
 * The calls in flight, by edge-minted id. Pure: a table with counts and deadlines, no platform types. What becomes of
 * a call is decided elsewhere; what is in here still waits for something.
 */
import type { Failure } from "../src/errors.ts";
import type { AgentFrame, ClientFacts } from "../src/tunnel/frames.ts";
import type { CallNotes } from "./call-notes.ts";
import type { Received } from "./request-body.ts";
import type { Upload } from "./uploads.ts";

/** What a call can wait for, with the epoch ms when it has waited too long. */
export type Wait =
  /** Its acknowledgement: a frozen link. */
  | "ack"
  /** Its outcome: the call's own deadline. Stands still while a person is asked. */
  | "end"
  /** A person's answer. */
  | "input"
  /** The agent to come back after the link was lost. */
  | "link"
  /** Somebody to attach after the edge gave the reply up. */
  | "attach"
  /** The next bytes of an outcome that began to flow. */
  | "flow"
  /** A sign that the agent holds a call it was asked to continue. */
  | "held"
  /** The time to see whether somebody still reads its reply. */
  | "beat"
  /** Its turn in the queue in front of a busy agent. */
  | "queue";

/** Where the answer of a call goes. Kept apart from how it gets to the edge. */
export interface Sink {
  /** A message of the call as the agent sent it. `bytes` is its payload; `isLast` ends the answer. */
  deliver(delivery: Delivery): void;
  /** Ends the answer without an outcome of the agent. */
  fail(failure: Failure, seq: number): void;
  /** Gives the answer up in favour of another sink. */
  drop(): void;
  /** Shows whether somebody still reads; a reader that is gone is told by the sink's own events. */
  beat(): void;
}

export interface Delivery {
  frame: AgentFrame;
  payload: string | Uint8Array | undefined;
  message: string | Uint8Array;
  bytes: number;
  isLast: boolean;
}

/** A client's answer to an input request. */
export interface GivenAnswer {
  kind: "result" | "error";
  payload: string;
  /** Generation of the link it was sent on; 0 while none was there. */
  generation: number;
}

/** A request as admitted, with the client behind it. */
export interface Outgoing {
  call: Received;
  client: ClientFacts;
}

export interface PendingCall {
  readonly id: string;
  readonly grant: string;
  readonly session: string | undefined;
  /** JSON text of the client's JSON-RPC id; legacy sessions cancel by it. */
  readonly clientId: string | undefined;
  /** Undefined when the object was reset since and cannot know. */
  readonly era: ClientFacts["era"] | undefined;
  /** Of a call that another instance sent: epoch ms when it was made, as the edge says. */
  readonly madeAt: number | undefined;
  readonly canStream: boolean;
  readonly timeoutMs: number;
  /** What to send, until the agent has it: it is sent again should the link break before. */
  request: Outgoing | undefined;
  /** What is left to send of a large request, on the link the call lives on. */
  upload: Upload | undefined;
  /** All of the request was written to some link: from then on the agent may have started the call. */
  wasWhole: boolean;
  /** Generation of the link the call lives on; 0 while it is not on one. */
  generation: number;
  /** Position of the last frame taken, from 1. */
  seq: number;
  /** Payload bytes of the outcome taken, and how many it has once its header came. */
  offset: number;
  outcomeBytes: number | undefined;
  isAcknowledged: boolean;
  /** The agent has sent everything. */
  isComplete: boolean;
  /** `Link.writtenBytes` after the call was written: what its acknowledgement proves to have arrived. */
  mark: number;
  /** Open input requests by ask id: the message, to show it again. */
  readonly asks: Map<string, string | Uint8Array>;
  /** Answers given, kept because a link can break before the agent has them. */
  readonly answers: Map<string, GivenAnswer>;
  /** What the audit will say. */
  readonly notes: CallNotes;
  /** ms left of the call's own time while it stands still. */
  remainingMs: number;
  sink: Sink | undefined;
  readonly waits: Map<Wait, number>;
}

export class PendingCalls {
  readonly #calls = new Map<string, PendingCall>();
  readonly #perGrant = new Map<string, number>();
  readonly #perSession = new Map<string, number>();
  readonly #onAdded: (call: PendingCall) => void;

  /** `onAdded` hears of every call that is in flight from now on. */
  constructor(onAdded: (call: PendingCall) => void = () => undefined) {
    this.#onAdded = onAdded;
  }

  get size(): number {
    return this.#calls.size;
  }

  get(id: string): PendingCall | undefined {
    return this.#calls.get(id);
  }

  /** Adds a call. False when its id is in flight already. */
  add(call: PendingCall): boolean {
    if (this.#calls.has(call.id)) return false;
    this.#calls.set(call.id, call);
    count(this.#perGrant, call.grant, 1);
    if (call.session !== undefined) count(this.#perSession, call.session, 1);
    this.#onAdded(call);
    return true;
  }

  /** Takes a call out. False when it is over already, so that each call ends once. */
  remove(call: PendingCall): boolean {
    if (this.#calls.get(call.id) !== call) return false;
    this.#calls.delete(call.id);
    count(this.#perGrant, call.grant, -1);
    if (call.session !== undefined) count(this.#perSession, call.session, -1);
    return true;
  }

  ofGrant(grant: string): number {
    return this.#perGrant.get(grant) ?? 0;
  }

  ofSession(session: string): number {
    return this.#perSession.get(session) ?? 0;
  }

  /** All calls as they are now; ending some while looking at them is safe. */
  all(): PendingCall[] {
    return [...this.#calls.values()];
  }

  /** What has waited too long at `now`, and when (epoch ms) to look again. */
  due(now: number): { expired: { call: PendingCall; wait: Wait }[]; next: number } {
    const expired: { call: PendingCall; wait: Wait }[] = [];
    let next = Infinity;
    for (const call of this.#calls.values()) {
      for (const [wait, at] of call.waits) {
        if (at <= now) expired.push({ call, wait });
        else if (at < next) next = at;
      }
    }
    return { expired, next };
  }
}

function count(counts: Map<string, number>, key: string, change: number): void {
  const next = (counts.get(key) ?? 0) + change;
  if (next === 0) counts.delete(key);
  else counts.set(key, next);
}
