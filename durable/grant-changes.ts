/** What a change of a grant does to what runs under it. The object is told before D1 when rights get narrower. */
import { type Grant, isUsable } from "../src/policy/grant.ts";
import type { CancelReason } from "../src/tunnel/frames.ts";
import { cancelCall, unparkCall } from "./call-end.ts";
import type { Desk } from "./desk.ts";

/** Takes a grant over; when it is not usable (any more), everything under it ends. */
export function takeGrant(desk: Desk, grant: Grant): void {
  if (!desk.grants.put(grant)) return;
  const now = desk.now();
  desk.alarms.plan("grants", desk.grants.nextExpiry(now));
  const taken = desk.grants.get(grant.id);
  if (taken !== undefined && !isUsable(taken, now))
    endGrant(desk, grant.id, taken.revokedAt === null && taken.pausedAt === null ? "expired" : "revoked");
  else desk.listeners.keep();
}

/** Ends calls, parked calls, sessions and listeners of a grant. */
export function endGrant(desk: Desk, grant: string, reason: CancelReason): void {
  for (const call of desk.pending.all()) {
    if (call.grant === grant)
      cancelCall(desk, call, reason, {
        reason: "cancelled",
        outcome: call.generation === 0 && call.request !== undefined ? "not_started" : "unknown",
      });
  }
  for (const call of desk.parked.waiting(grant)) unparkCall(desk, call.id, reason);
  desk.sessions.endGrant(grant);
  desk.listeners.endGrant(grant);
  desk.rates.drop(grant);
}

/** The alarm's work: ends what expired since the last time, and plans the next. */
export function expireGrants(desk: Desk): void {
  const now = desk.now();
  for (const id of desk.grants.expiredBetween(desk.meta.get("expiredUntil") ?? 0, now)) endGrant(desk, id, "expired");
  desk.meta.set("expiredUntil", now);
  desk.alarms.plan("grants", desk.grants.nextExpiry(now));
}
