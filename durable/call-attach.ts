/**
 * Taking up a call again: after the object was lost (`attach`), or with the answers a parked call waits for (`resume`).
 * Only the grant that made a call may do so. After a reset nobody here knows it; then the edge, which verified the
 * token and remembers its own call ids, is believed.
 */
import { CALL } from "../src/limits.ts";
import { answerAsk, NO_ROOM } from "./call-asks.ts";
import { asksOf, planParked, waitFor } from "./call-end.ts";
import { beginNotes } from "./call-notes.ts";
import { openReply } from "./call-reply.ts";
import { newCall } from "./call-send.ts";
import type { Desk } from "./desk.ts";
import { askForCall, reattach } from "./link-changes.ts";
import type { ParkedCall } from "./parked-calls.ts";
import type { PendingCall } from "./pending-calls.ts";
import type { Reply } from "./reply.ts";
import { payloadBytes } from "../src/tunnel/codec.ts";
import type { AskedCall, CallReply, Refusal } from "./rpc.ts";

const RESTARTED: Refusal = { kind: "failure", failure: { reason: "agent_restarted", outcome: "unknown" } };

/** Where the edge stands with a call. */
export interface Attachment {
  grant: string;
  callId: string;
  seq: number;
  offset: number;
  asked?: AskedCall | undefined;
}

/** Continues a call from what the edge has of it: frames after `seq`, the outcome's payload from `offset`. */
export function attachCall(desk: Desk, { grant, callId, seq, offset, asked }: Attachment): Promise<CallReply> {
  const known = desk.pending.get(callId);
  const owner = known?.grant ?? desk.settled.get(callId) ?? desk.parked.get(callId)?.grant;
  if (owner !== undefined && owner !== grant) return refused(RESTARTED);
  if (known === undefined && desk.parked.get(callId) !== undefined)
    return refused({ kind: "params", message: "This call waits for an answer." });
  const call =
    known ?? newCall({ id: callId, grant, seq, offset, madeAt: asked?.at, notes: beginNotes(desk.now(), asked, asked?.client) }, undefined);
  if (known === undefined) desk.pending.add(call);
  else moveTo(desk, call, seq, offset);
  const sink = openReply(desk, call);
  continueCall(desk, call);
  return sink.reply;
}

/** Takes back what an earlier reply had; the agent repeats what the edge does not have. */
function moveTo(desk: Desk, call: PendingCall, seq: number, offset: number): void {
  call.sink?.drop();
  call.sink = undefined;
  call.seq = seq;
  call.offset = offset;
  call.outcomeBytes = undefined;
  call.isComplete = false;
  call.waits.delete("attach");
  call.waits.delete("beat");
  call.waits.delete("flow");
  desk.flow.close(call.id);
}

function continueCall(desk: Desk, call: PendingCall): void {
  if (call.request !== undefined && call.generation === 0) return; // Not written yet: it goes its way, now towards this reply.
  const link = desk.links.current();
  if (link === null) return waitFor(desk, call, "link", desk.now() + CALL.attachWindowMs);
  const isFromElsewhere = call.generation !== link.generation;
  // A call of before this link or this instance may be over: the agent goes on with it, or its journal says what it was.
  if (isFromElsewhere && link.held?.has(call.id) !== true) askForCall(desk, link, call);
  else reattach(desk, link, call);
}

/** What a client comes back with: its answers by ask id, and the asks it was shown. */
interface Retry {
  answers: Readonly<Record<string, string>>;
  asked: readonly string[];
}

/** Continues a parked call with the client's answers. What was asked and not answered is asked again. */
export function resumeCall(desk: Desk, grant: string, callId: string, { answers, asked }: Retry): Promise<CallReply> {
  const pending = desk.pending.get(callId);
  const parked = pending === undefined ? desk.parked.get(callId) : undefined;
  const owner = pending?.grant ?? parked?.grant;
  if (owner === undefined || owner !== grant) return refused({ kind: "params", message: "No call waits for this answer." });
  if (parked !== undefined && (parked.isExpired || parked.inputBy <= desk.now())) {
    return refused({ kind: "failure", failure: { reason: "input_expired", outcome: "unknown" } });
  }
  const asks = pending?.asks ?? desk.parked.asks(callId);
  if (!asked.some((askId) => asks.has(askId))) {
    return refused({ kind: "params", message: "This question was answered already, and the call goes on." });
  }
  const bytes = parked === undefined ? 0 : [...asks.values()].reduce((sum, message) => sum + payloadBytes(message), 0);
  if (!desk.held.take(asksOf({ id: callId }), bytes)) return refused({ kind: "failure", failure: NO_ROOM });
  const given = Object.entries(answers).filter(([askId]) => asks.has(askId));
  const call = pending ?? (parked === undefined ? undefined : unpark(desk, parked, asks));
  if (call === undefined) return refused({ kind: "params", message: "No call waits for this answer." });
  return goOn(desk, call, given);
}

function goOn(desk: Desk, call: PendingCall, given: readonly [string, string][]): Promise<CallReply> {
  moveTo(desk, call, call.seq, 0);
  const sink = openReply(desk, call);
  continueCall(desk, call);
  for (const [askId, payload] of given) if (desk.pending.get(call.id) === call) answerAsk(desk, call, askId, "result", payload);
  if (desk.pending.get(call.id) === call) for (const [askId, message] of call.asks) askAgain(call, sink, askId, message);
  return sink.reply;
}

function askAgain(call: PendingCall, sink: Reply, askId: string, message: string | Uint8Array): void {
  // Only the message itself is shown; the frame beside it is for sinks that read frames.
  const frame = { type: "ask", callId: call.id, seq: Math.max(1, call.seq), askId, method: "roots/list" } as const;
  sink.deliver({ frame, payload: undefined, message, bytes: 0, isLast: false });
}

function unpark(desk: Desk, parked: ParkedCall, asks: ReadonlyMap<string, string | Uint8Array>): PendingCall {
  const { notes = beginNotes(desk.now()), ...facts } = parked;
  const call = newCall({ ...facts, notes }, undefined);
  for (const [askId, message] of asks) call.asks.set(askId, message);
  call.remainingMs = parked.remainingMs;
  call.generation = parked.generation;
  call.isAcknowledged = true;
  desk.parked.remove(parked.id);
  desk.countSlots();
  planParked(desk);
  desk.pending.add(call);
  waitFor(desk, call, "input", parked.inputBy);
  return call;
}

function refused(refusal: Refusal): Promise<CallReply> {
  return Promise.resolve({ ok: false, refusal });
}
