/**
 * Changing a grant in both places. What only narrows reaches the object first, so that it holds even while D1 is away;
 * everything else is recorded first. The command succeeds only when both have it; repeating it is safe.
 */
import type { Env } from "../env.ts";
import { findDevice } from "../db/devices.ts";
import { type GrantRecord, updateGrant } from "../db/grants.ts";
import { ApiError } from "../errors.ts";
import { log } from "../log.ts";
import type { Grant } from "../policy/grant.ts";
import { isAtMost } from "../policy/narrowing.ts";
import { tellObject } from "./tell-object.ts";

/** What can change of a grant; what is left out stays. */
export type GrantChange = Partial<Pick<Grant, "label" | "rights" | "caps" | "expiresAt" | "pausedAt">> & { note?: string | null };

/** Applies a change to a grant and returns its record afterwards. */
export async function changeGrant(env: Env, record: GrantRecord, { note = record.note, ...change }: GrantChange): Promise<GrantRecord> {
  if (record.grant.revokedAt !== null) throw new ApiError("conflict", "This grant is revoked for good. Create another one.");
  const next: Grant = { ...record.grant, ...change };
  const changed = isAtMost(next, record.grant) ? await narrow(env, record, next, note) : await widen(env, record, next, note);
  return { ...record, note, grant: changed };
}

function incomplete(message: string): ApiError {
  return new ApiError("incomplete", message);
}

async function widen(env: Env, record: GrantRecord, next: Grant, note: string | null): Promise<Grant> {
  const updated = await updateGrant(env.DB, record.deviceId, next, note);
  if (updated === null) throw new ApiError("conflict", "This grant was revoked in the meantime.");
  const told = await tellObject(env, record.deviceId, (stub) => stub.putGrant(updated));
  if (told.state === "failed") throw incomplete("The change is recorded, but the device's object did not confirm it. Repeat the command.");
  return updated;
}

async function narrow(env: Env, record: GrantRecord, next: Grant, note: string | null): Promise<Grant> {
  // The revision D1 is about to give: the object takes nothing that is not newer than what it has.
  const revision = (await nextRevision(env, record)) ?? next.revision + 1;
  const expected: Grant = { ...next, revision };
  let told = await tellObject(env, record.deviceId, (stub) => stub.putGrant(expected));
  const updated = await tryUpdate(env, record, next, note);
  // Born in the meantime, or D1 gave another revision: the object has to hear what is recorded.
  const isStale = updated !== null && (told.state === "unborn" || updated.revision !== revision);
  if (isStale) told = await tellObject(env, record.deviceId, (stub) => stub.putGrant(updated));
  if (updated === null)
    throw told.state === "failed"
      ? incomplete("Neither the registry nor the device's object took the change. Try again.")
      : incomplete("The device obeys the change, but it is not recorded. Repeat the command.");
  if (told.state === "failed") throw incomplete("The change is recorded, but the device's object did not confirm it. Repeat the command.");
  return updated;
}

async function nextRevision(env: Env, record: GrantRecord): Promise<number | undefined> {
  try {
    const device = await findDevice(env.DB, record.deviceId);
    return device === null ? undefined : device.grantRevision + 1;
  } catch (error) {
    log("warn", "grant.revision-unknown", { grant: record.grant.id, error });
    return undefined;
  }
}

async function tryUpdate(env: Env, record: GrantRecord, next: Grant, note: string | null): Promise<Grant | null> {
  try {
    return await updateGrant(env.DB, record.deviceId, next, note);
  } catch (error) {
    log("error", "grant.change-not-recorded", { grant: record.grant.id, error });
    return null;
  }
}
