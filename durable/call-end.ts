/** How a call ends, and everything that hangs on it: its place in line, its credit, its session's idle time. */
import type { Failure } from "../src/errors.ts";
import { JOURNAL } from "../src/limits.ts";
import type { CancelReason } from "../src/tunnel/frames.ts";
import { callRow } from "./audit-rows.ts";
import { beginNotes, noteFailure } from "./call-notes.ts";
import type { Desk } from "./desk.ts";
import type { ParkedCall } from "./parked-calls.ts";
import type { PendingCall, Wait } from "./pending-calls.ts";

/** Lets a call wait for something until `at` (epoch ms). */
export function waitFor(desk: Desk, call: PendingCall, wait: Wait, at: number): void {
  call.waits.set(wait, at);
  desk.ticker.by(at, desk.now());
}

/** Ends a call in the tables, and says so to the audit unless it only goes to sleep. True for the one time that it ends. */
export function endCall(desk: Desk, call: PendingCall, isParked = false): boolean {
  if (!desk.pending.remove(call)) return false;
  if (!isParked) desk.audit.add(callRow(desk, call));
  desk.watchers.ended(call, isParked);
  desk.flow.close(call.id);
  desk.held.give(call.id);
  desk.held.give(asksOf(call));
  leaveQueue(desk, call);
  remember(desk, call);
  const now = desk.now();
  if (call.session !== undefined) desk.sessions.release(call.session, now);
  if (desk.pending.size === 0) desk.ticker.next(Infinity, now);
  giveRoom(desk);
  return true;
}

/** Who holds a call's questions and answers on the books: they stay when its request is gone. */
export function asksOf({ id }: Pick<PendingCall, "id">): string {
  return `${id} asks`;
}

function remember(desk: Desk, call: PendingCall): void {
  desk.settled.set(call.id, call.grant);
  if (desk.settled.size <= JOURNAL.entries) return;
  const oldest = desk.settled.keys().next();
  if (oldest.done !== true) desk.settled.delete(oldest.value);
}

/** Takes a call out of the queue, if it stands there. */
export function leaveQueue(desk: Desk, call: PendingCall): void {
  const turn = desk.turns.get(call.id);
  if (turn === undefined) return;
  desk.turns.delete(call.id);
  desk.queue.remove(turn.grant, turn);
  call.waits.delete("queue");
}

/** Ends a call with a failure of ours. The agent is not told: use `cancelCall` while it may still work on it. */
export function failCall(desk: Desk, call: PendingCall, failure: Failure, cancelled?: CancelReason): void {
  noteFailure(call.notes, failure, cancelled);
  if (!endCall(desk, call)) return;
  call.sink?.fail(failure, call.seq);
}

/** Stops a call at the agent and ends it with a failure of ours. */
export function cancelCall(desk: Desk, call: PendingCall, reason: CancelReason, failure: Failure): void {
  if (wasSent(call) && !call.isComplete) tellCancel(desk, call.id, reason);
  failCall(desk, call, failure, reason);
}

/** Tells the agent to stop a call, now or when it is back. */
export function tellCancel(desk: Desk, callId: string, reason: CancelReason): void {
  const sent = desk.links.current()?.send({ type: "cancel", callId, reason }) === true;
  if (!sent) desk.delivered.cancelled(callId, reason);
}

/** A parked call ends without having been taken up again: its row is written now. */
export function endParkedRow(desk: Desk, parked: ParkedCall, failure: Failure, cancelled?: CancelReason): void {
  const notes = parked.notes ?? beginNotes(desk.now());
  noteFailure(notes, failure, cancelled);
  desk.audit.add(callRow(desk, { id: parked.id, grant: parked.grant, notes }));
}

/** Ends a parked call at the agent. */
export function unparkCall(desk: Desk, callId: string, reason: CancelReason): void {
  const parked = desk.parked.get(callId);
  if (parked !== undefined && !parked.isExpired) endParkedRow(desk, parked, { reason: "cancelled", outcome: "unknown" }, reason);
  desk.parked.remove(callId);
  desk.countSlots();
  planParked(desk);
  tellCancel(desk, callId, reason);
  giveRoom(desk);
}

/** Plans the alarm for the parked call that waits longest. */
export function planParked(desk: Desk): void {
  desk.alarms.plan("parked", desk.parked.nextAt());
}

/** Whether the agent may have heard of a call. */
export function wasSent(call: PendingCall): boolean {
  return call.generation !== 0 || call.request === undefined;
}

/** Room became free: the next in line, and senders without any credit. */
export function giveRoom(desk: Desk): void {
  while (desk.queue.size > 0 && desk.flow.canOpen()) desk.queue.shift()?.go();
  if (!desk.flow.hasStarved) return;
  const link = desk.links.current();
  for (const call of desk.pending.all()) {
    if (link !== null && call.generation === link.generation && desk.flow.isStarved(call.id) && call.sink !== undefined)
      grantCredit(desk, call);
  }
}

/** Lends a call's sender what it may send next, if that is worth a frame. */
export function grantCredit(desk: Desk, call: PendingCall): void {
  const link = desk.links.current();
  if (link === null || call.generation !== link.generation || call.isComplete) return;
  const bytes = call.outcomeBytes === undefined ? desk.flow.refill(call.id) : desk.flow.topUp(call.id, call.outcomeBytes - call.offset);
  if (bytes > 0) link.send({ type: "credit", stream: call.id, bytes });
}
