/** Connects a call with the reply that carries its answer to the edge. */
import { CALL } from "../src/limits.ts";
import { parkCall } from "./call-asks.ts";
import { endCall, giveRoom, grantCredit, waitFor } from "./call-end.ts";
import type { Desk } from "./desk.ts";
import type { PendingCall } from "./pending-calls.ts";
import { Reply } from "./reply.ts";

/** Gives a call a reply. What an earlier one still does counts for nothing. */
export function openReply(desk: Desk, call: PendingCall): Reply {
  const isCurrent = (): boolean => call.sink === reply && desk.pending.get(call.id) === call;
  const reply: Reply = new Reply(call.id, {
    onStream: () => {
      if (isCurrent()) waitFor(desk, call, "beat", desk.now() + CALL.replyBeatMs);
    },
    onRead: (bytes) => {
      if (isCurrent()) onRead(desk, call, bytes);
    },
    onEnd: () => {
      if (isCurrent()) endCall(desk, call);
    },
    onGone: () => {
      if (isCurrent()) detachCall(desk, call);
    },
  });
  call.sink = reply;
  return reply;
}

function onRead(desk: Desk, call: PendingCall, bytes: number): void {
  desk.flow.read(call.id, bytes);
  if (call.waits.has("flow")) waitFor(desk, call, "flow", desk.now() + CALL.stallMs);
  if (call.isComplete) giveRoom(desk);
  else grantCredit(desk, call);
}

/**
 * The edge gave the reply up: nobody is attached. A modern client that was asked something comes back with the answer;
 * otherwise its call is cancelled unless the edge attaches in time. A legacy call runs to its end.
 */
export function detachCall(desk: Desk, call: PendingCall): void {
  call.sink?.drop();
  call.sink = undefined;
  call.waits.delete("beat");
  if (call.era === "modern" && call.asks.size > 0) return parkCall(desk, call);
  if (call.era === "modern") waitFor(desk, call, "attach", desk.now() + CALL.attachWindowMs);
  else if (call.isComplete || call.outcomeBytes !== undefined) {
    endCall(desk, call);
    desk.delivered.add(call.id);
    return;
  }
  if (call.isComplete) desk.flow.close(call.id);
  else desk.flow.discard(call.id);
  call.waits.delete("flow");
}
