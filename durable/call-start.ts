/** From an admitted request to its turn: liveness of the link, and the queue in front of a busy agent. */
import { QUEUE, TUNNEL } from "../src/limits.ts";
import { CLOSE } from "../src/tunnel/close-codes.ts";
import { failCall, leaveQueue, waitFor } from "./call-end.ts";
import { offline, sendCall } from "./call-send.ts";
import type { Desk, Turn } from "./desk.ts";
import { dropLink } from "./link-changes.ts";
import type { Link } from "./links.ts";
import type { PendingCall } from "./pending-calls.ts";

/** The live link, probed first when it was silent for long; null when there is none that answers. */
export async function usableLink(desk: Desk): Promise<Link | null> {
  const link = desk.links.current();
  if (link === null) {
    desk.presence.correct();
    return null;
  }
  const seenAt = link.lastSeenAt(desk.ctx);
  if (desk.now() - seenAt <= TUNNEL.probeAfterMs) return link;
  // Whatever it says proves that it is alive; an answer to the probe may have to wait for an upstream.
  if ((await link.probe()) || link.lastSeenAt(desk.ctx) > seenAt) return desk.links.current();
  dropLink(desk, link, CLOSE.unresponsive, "no answer to a probe");
  return desk.links.current();
}

/** The link of a device that was woken for this call; null when it has no wake URL or did not come. */
async function wokenLink(desk: Desk, call: PendingCall): Promise<Link | null> {
  const url = call.request?.call.wakeUrl;
  if (url === undefined) return null;
  await desk.waker.wake(url);
  return desk.links.current();
}

/** Sends a call that is in the table, at once or when its turn comes. The sink hears how it went. */
export async function startCall(desk: Desk, call: PendingCall): Promise<void> {
  const link = (await usableLink(desk)) ?? (await wokenLink(desk, call));
  if (desk.pending.get(call.id) !== call) return; // Cancelled while it waited for the link.
  if (link === null) failCall(desk, call, offline(desk));
  else if (desk.flow.canOpen()) sendCall(desk, call);
  else queueCall(desk, call);
}

function queueCall(desk: Desk, call: PendingCall): void {
  const turn: Turn = {
    grant: call.grant,
    go: () => {
      leaveQueue(desk, call);
      sendCall(desk, call);
    },
  };
  if (!desk.queue.push(call.grant, turn)) {
    refuseBusy(desk, call);
    return;
  }
  desk.turns.set(call.id, turn);
  waitFor(desk, call, "queue", desk.now() + QUEUE.waitMs);
}

/** The agent is busy with other calls, and this one has waited enough. */
export function refuseBusy(desk: Desk, call: PendingCall): void {
  failCall(desk, call, { reason: "rate_limited", outcome: "not_started", data: { retryAfterMs: QUEUE.waitMs } });
}
