/** What happens when a call has waited too long, by what it waited for. Run by the one timer of the calls in flight. */
import { CALL } from "../src/limits.ts";
import { cancelCall, endCall, waitFor } from "./call-end.ts";
import { refuseBusy } from "./call-start.ts";
import type { Desk } from "./desk.ts";
import { abandonCall, linkFrozen, restarted } from "./link-changes.ts";
import type { PendingCall, Wait } from "./pending-calls.ts";

/** Ends what is due and sets the timer for the next. */
export function runDeadlines(desk: Desk): void {
  for (const { call, wait } of desk.pending.due(desk.now()).expired) {
    // An earlier one of these may have ended this call, or what it waited for.
    const at = call.waits.get(wait);
    if (at === undefined || desk.pending.get(call.id) !== call) continue;
    call.waits.delete(wait);
    if (wait === "ack" && isOwnDelay(desk, call, at)) continue;
    expire(desk, call, wait);
  }
  const now = desk.now();
  desk.ticker.next(desk.pending.due(now).next, now);
}

/**
 * When this look itself is late, the relay was busy, and the acknowledgement may wait in line behind it: the agent gets
 * as much time again. True when it does.
 */
function isOwnDelay(desk: Desk, call: PendingCall, at: number): boolean {
  const now = desk.now();
  if (now - at < CALL.lateMs) return false;
  waitFor(desk, call, "ack", now + Math.min(now - at, CALL.ackMs));
  return true;
}

function expire(desk: Desk, call: PendingCall, wait: Wait): void {
  switch (wait) {
    case "ack":
      return linkFrozen(desk, call);
    case "end": {
      const data = { limitMs: call.timeoutMs, setBy: "relay" };
      return cancelCall(desk, call, "deadline", { reason: "device_timeout", outcome: "unknown", data });
    }
    case "input":
      return cancelCall(desk, call, "deadline", { reason: "input_expired", outcome: "unknown" });
    case "link":
      return abandonCall(desk, call);
    case "attach":
      if (!call.isComplete) return cancelCall(desk, call, "caller_left", { reason: "cancelled", outcome: "unknown" });
      if (endCall(desk, call)) desk.delivered.add(call.id);
      return;
    case "flow": {
      const data = { limitMs: CALL.stallMs, setBy: "relay" };
      return cancelCall(desk, call, "caller_left", { reason: "device_timeout", outcome: "unknown", data });
    }
    case "held":
      return restarted(desk, call);
    case "beat":
      waitFor(desk, call, "beat", desk.now() + CALL.replyBeatMs);
      return call.sink?.beat();
    case "queue":
      return refuseBusy(desk, call);
  }
}
