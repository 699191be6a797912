/** What a new, a lost or a frozen link means for the calls in flight. */
import { CALL, TUNNEL } from "../src/limits.ts";
import { CLOSE } from "../src/tunnel/close-codes.ts";
import type { Hello } from "../src/tunnel/frames.ts";
import { cancelCall, failCall, giveRoom, waitFor, wasSent } from "./call-end.ts";
import { offline, sendCall } from "./call-send.ts";
import { lostRow } from "./audit-rows.ts";
import type { Desk } from "./desk.ts";
import type { Link } from "./links.ts";
import type { PendingCall } from "./pending-calls.ts";
import { closeQuietly } from "./sockets.ts";

/** Closes the live link, which is lost from then on: what its socket still says counts for nothing. */
export function dropLink(desk: Desk, link: Link, code: number, reason: string): void {
  const isLive = desk.links.of(link.socket) !== null;
  const seenAt = link.lastSeenAt(desk.ctx);
  closeQuietly(link.socket, code, reason);
  if (isLive) linkLost(desk, link, seenAt);
}

/** The live link is gone. Calls that the agent may run wait for it to come back; those in the queue end at once. */
export function linkLost(desk: Desk, link: Link, seenAt: number): void {
  desk.links.clear();
  desk.watchers.link(false);
  desk.upstreamResources.linkLost();
  desk.meta.set("lastSeenAt", seenAt);
  const waitUntil = desk.now() + CALL.attachWindowMs;
  for (const call of desk.pending.all()) {
    if (call.waits.has("queue")) failCall(desk, call, offline(desk));
    else if (call.generation === link.generation && !call.isComplete) {
      for (const wait of ["ack", "held", "flow"] as const) call.waits.delete(wait);
      waitFor(desk, call, "link", waitUntil);
    }
  }
  desk.presence.sync();
}

/** A link was accepted: its calls of before go on where they were, as far as the agent holds them. */
export function linkUp(desk: Desk, link: Link, hello: Hello): void {
  const held = new Set(hello.held);
  const isSameRun = desk.lastInstance === hello.instance;
  const isSameMachine = desk.lastInstallation === hello.installation;
  link.held = held;
  desk.watchers.link(true);
  link.openAsks = new Set(hello.asks.map((ask) => `${ask.callId} ${ask.askId}`));
  desk.lastInstance = hello.instance;
  desk.lastInstallation = hello.installation;
  desk.countSlots();
  desk.waker.linked();
  desk.listChanges.linkUp();
  desk.listeners.keep();
  desk.delivered.tell(link, held);
  noteLost(desk, hello);
  for (const call of desk.pending.all()) {
    if (!wasSent(call) || call.isComplete) continue;
    call.waits.delete("link");
    if (held.has(call.id)) reattach(desk, link, call);
    else if (isSameRun && !call.isAcknowledged && call.request !== undefined) sendCall(desk, call);
    else if (isSameMachine || call.era === undefined) askForCall(desk, link, call);
    else restarted(desk, call);
  }
  giveRoom(desk);
}

/**
 * Calls that the agent holds and that nobody here knows: this instance did not see them. Their rows say so until somebody
 * comes back for the outcome, or stay as they are when the call had its row before.
 */
function noteLost(desk: Desk, { held }: Hello): void {
  for (const id of held) {
    const isKnown = desk.pending.get(id) !== undefined || desk.settled.has(id) || desk.audit.holds(id);
    if (!isKnown && desk.parked.get(id) === undefined) desk.audit.add(lostRow(desk, id));
  }
}

/**
 * Asks about a call that the agent did not list. Its journal may know that the call never came, which is worth more
 * than what can be said here. Another machine's journal knows nothing of it: that one is not asked, or, when nobody here
 * knows which machine the call was sent to, not believed (`isProof`).
 */
export function askForCall(desk: Desk, link: Link, call: PendingCall): void {
  reattach(desk, link, call);
  waitFor(desk, call, "held", desk.now() + CALL.ackMs + link.transitMs);
}

/** Whether this machine's word that a call never came says anything: the call was made while no other had the device. */
export function isProof(desk: Desk, call: PendingCall): boolean {
  if (call.era !== undefined) return true; // Sent from here, and only its own machine is asked.
  const since = desk.meta.get("installation")?.since;
  return since !== undefined && call.madeAt !== undefined && since + TUNNEL.clockSkewMs <= call.madeAt;
}

/** The agent does not hold the call any more: whether it ran is not known. */
export function restarted(desk: Desk, call: PendingCall): void {
  failCall(desk, call, { reason: "agent_restarted", outcome: "unknown" });
}

/**
 * Asks the agent to continue a call on a link, from where the call is. The last frame is asked for once more: should it
 * be the header of an outcome, then it says how much is still to come. Nothing is passed on twice.
 */
export function reattach(desk: Desk, link: Link, call: PendingCall): void {
  call.generation = link.generation;
  call.isAcknowledged = true;
  call.request = undefined;
  call.upload = undefined;
  desk.held.give(call.id);
  call.waits.delete("ack");
  if (call.sink === undefined) return; // Whoever attaches asks for it.
  const credit = desk.flow.restart(call.id);
  if (!link.send({ type: "attach", callId: call.id, seq: Math.max(0, call.seq - 1), offset: call.offset, credit })) return;
  repeatAnswers(link, call);
  const now = desk.now();
  if (call.outcomeBytes !== undefined) waitFor(desk, call, "flow", now + CALL.stallMs);
  else if (!call.waits.has("input") && !call.waits.has("end")) waitFor(desk, call, "end", now + call.timeoutMs + CALL.deadlineGraceMs);
}

/** Sends what was answered while no link was there, and what the agent says it still waits for. */
function repeatAnswers(link: Link, call: PendingCall): void {
  for (const [askId, answer] of call.answers) {
    if (answer.generation === link.generation) continue;
    if (answer.generation !== 0 && !link.openAsks.has(`${call.id} ${askId}`)) continue;
    if (link.send({ type: "answer", callId: call.id, askId, kind: answer.kind }, answer.payload)) answer.generation = link.generation;
  }
}

/** The link does not answer: it is closed, and the call that found out ends now rather than in forty seconds. */
export function linkFrozen(desk: Desk, call: PendingCall): void {
  const link = desk.links.current();
  abandonCall(desk, call);
  if (link !== null && link.generation === call.generation) dropLink(desk, link, CLOSE.unresponsive, "a call was not acknowledged");
}

/** The agent stops in order, and has said all it can: nobody comes back for what it left open. */
export function agentLeft(desk: Desk, link: Link): void {
  for (const call of desk.pending.all()) {
    if (call.generation !== link.generation || call.isComplete) continue;
    const message = "The agent on the device was stopped during the call.";
    failCall(desk, call, { reason: "agent_restarted", outcome: call.wasWhole ? "unknown" : "not_started", message });
  }
}

/** Nobody waits for the call any more, and the agent is not there to hear it: it is told when it comes back with it. */
export function abandonCall(desk: Desk, call: PendingCall): void {
  // Without the whole request nothing can have started.
  failCall(desk, call, { reason: "tunnel_lost", outcome: call.wasWhole ? "unknown" : "not_started" });
  if (call.era === "legacy") desk.delivered.add(call.id);
  else desk.delivered.cancelled(call.id, "caller_left");
}

/** Ends everything in flight because the link is closed for good. */
export function endAll(desk: Desk): void {
  for (const call of desk.pending.all()) {
    cancelCall(desk, call, "revoked", wasSent(call) ? { reason: "tunnel_lost", outcome: "unknown" } : offline(desk));
  }
}
