/** A grant by D1's record, for the one case where no object can decide: a device that was never born. */
import { findGrant } from "../db/grants.ts";
import type { Env } from "../env.ts";
import { isUsable } from "../policy/grant.ts";

/** Whether a grant exists, belongs to this device and can be used now. */
export async function isGrantOfRecord(env: Env, deviceId: string, grant: string): Promise<boolean> {
  const record = await findGrant(env.DB, grant);
  return record !== null && record.deviceId === deviceId && isUsable(record.grant, Date.now());
}
