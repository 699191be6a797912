/** What the object's one alarm does, by kind of work. Work that fails is planned again; it never stops the rest. */
import { TUNNEL } from "../src/limits.ts";
import { describeError, log } from "../src/log.ts";
import type { Work } from "./alarms.ts";
import { expireParked } from "./call-asks.ts";
import type { Desk } from "./desk.ts";
import { expireGrants } from "./grant-changes.ts";
import { closeSilent } from "./hello.ts";

const WORK: Readonly<Record<Work, (desk: Desk) => void>> = {
  hello: closeSilent,
  parked: expireParked,
  grants: expireGrants,
  sync: (desk) => desk.presence.sync(),
  audit: (desk) => desk.ctx.waitUntil(desk.audit.retry()),
};

/** Does what is due and sets the alarm for what is next. Never throws, as the platform gives up after six failures. */
export function runAlarm(desk: Desk): void {
  for (const work of desk.alarms.take(desk.now())) {
    try {
      WORK[work](desk);
    } catch (error) {
      log("error", "alarm.failed", { work, error: describeError(error) });
      desk.alarms.planBy(work, desk.now() + TUNNEL.syncRetryMs);
    }
  }
  desk.alarms.rearm();
}
