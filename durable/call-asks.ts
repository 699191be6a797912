/**
 * Input requests (design section 6). An open ask stops the call's own clock and starts the person's. A legacy client
 * answers in its session; a modern one goes away with `input_required`, which parks the call until the retry.
 */
import type { Failure } from "../src/errors.ts";
import { CALL, TUNNEL } from "../src/limits.ts";
import { utf8Length } from "../src/tunnel/utf8.ts";
import { asksOf, cancelCall, endCall, endParkedRow, planParked, waitFor } from "./call-end.ts";
import type { Desk } from "./desk.ts";
import { payloadBytes } from "../src/tunnel/codec.ts";
import type { PendingCall } from "./pending-calls.ts";

/** Nothing more of this kind can be held at present. */
export const NO_ROOM: Failure = {
  reason: "rate_limited",
  outcome: "unknown",
  message: "Too many questions are open at this device. Answer or cancel some, then call again.",
};

/** Takes a new ask into the call. False when that ended the call: the grant has enough calls that wait for a person. */
export function askOpened(desk: Desk, call: PendingCall, askId: string, message: string | Uint8Array): boolean {
  if (call.asks.size === 0 && call.era === "modern" && isParkingFull(desk, call)) {
    cancelCall(desk, call, "caller_left", {
      reason: "rate_limited",
      outcome: "unknown",
      message: "Too many calls of this grant wait for an answer. Answer or cancel one, then call again.",
    });
    return false;
  }
  if (!desk.held.take(asksOf(call), payloadBytes(message))) {
    cancelCall(desk, call, "caller_left", NO_ROOM);
    return false;
  }
  const now = desk.now();
  if (call.asks.size === 0) call.remainingMs = Math.max(0, (call.waits.get("end") ?? now) - now);
  call.asks.set(askId, message);
  call.waits.delete("end");
  waitFor(desk, call, "input", now + CALL.inputTimeoutMs);
  return true;
}

function isParkingFull(desk: Desk, call: PendingCall): boolean {
  const max = desk.grants.get(call.grant)?.caps.parked ?? 0;
  const waiting = desk.pending.all().filter((other) => other !== call && other.grant === call.grant && other.asks.size > 0);
  return desk.parked.count(call.grant) + waiting.length >= max;
}

/**
 * Takes a client's answer and sends it, now or when the agent is back. False when nothing waits for it (any more).
 * After a reset nobody here knows what was asked: the agent does, and ignores an answer it did not ask for.
 */
export function answerAsk(desk: Desk, call: PendingCall, askId: string, kind: "result" | "error", payload: string): boolean {
  const open = call.asks.get(askId);
  const isOpen = call.asks.delete(askId);
  if (open !== undefined) desk.held.give(asksOf(call), payloadBytes(open));
  if (!isOpen && (call.era !== undefined || call.answers.has(askId))) return false;
  const link = desk.links.current();
  const cap = link?.attachment.maxFrameBytes ?? TUNNEL.maxFrameBytes;
  const size = utf8Length(payload) + TUNNEL.answerHeaderBytes;
  if (size > cap) {
    cancelCall(desk, call, "caller_left", { reason: "too_large", outcome: "unknown", data: { size, cap } });
    return true;
  }
  if (!desk.held.take(asksOf(call), size)) {
    cancelCall(desk, call, "caller_left", NO_ROOM);
    return true;
  }
  const isSent = call.generation === link?.generation && link.send({ type: "answer", callId: call.id, askId, kind }, payload);
  call.answers.set(askId, { kind, payload, generation: isSent ? call.generation : 0 });
  if (call.asks.size === 0) restartClock(desk, call);
  return true;
}

/** The person has answered everything: the call's own time runs on. */
function restartClock(desk: Desk, call: PendingCall): void {
  if (!call.waits.delete("input") || call.outcomeBytes !== undefined) return;
  waitFor(desk, call, "end", desk.now() + call.remainingMs + CALL.deadlineGraceMs);
}

/** Nobody is attached, and the call waits for a person: it leaves memory, and the object may sleep. */
export function parkCall(desk: Desk, call: PendingCall): void {
  const inputBy = call.waits.get("input") ?? desk.now() + CALL.inputTimeoutMs;
  if (!endCall(desk, call, true)) return;
  desk.parked.put(
    {
      id: call.id,
      grant: call.grant,
      session: call.session,
      generation: call.generation,
      seq: call.seq,
      remainingMs: call.remainingMs,
      inputBy,
      isExpired: false,
      clientId: call.clientId,
      canStream: call.canStream,
      timeoutMs: call.timeoutMs,
      era: call.era,
      notes: call.notes,
    },
    call.asks,
  );
  desk.countSlots();
  planParked(desk);
}

/** The alarm's work: calls that waited too long for a person end at the agent. */
export function expireParked(desk: Desk): void {
  for (const call of desk.parked.expire(desk.now())) {
    const sent = desk.links.current()?.send({ type: "cancel", callId: call.id, reason: "deadline" }) === true;
    if (!sent) desk.delivered.cancelled(call.id, "deadline");
    endParkedRow(desk, call, { reason: "input_expired", outcome: "unknown" });
  }
  desk.countSlots();
  planParked(desk);
}
