/**
 * Changes that live in two places: D1 holds the record, a device's object decides by its copy. Widening goes to D1
 * first, narrowing to the object first, and a change counts as made only when both have it.
 */
import type { Env } from "../env.ts";
import { type Device, removeDevice } from "../db/devices.ts";
import { revokeDeviceKeys } from "../db/device-keys.ts";
import { findGrant, type GrantRecord, insertGrant, revokeGrant } from "../db/grants.ts";
import { ApiError } from "../errors.ts";
import { log } from "../log.ts";
import type { Grant } from "../policy/grant.ts";
import { forgetDevice } from "./device-stub.ts";
import { tellObject } from "./tell-object.ts";

/** Adds a grant: D1, then the object if there is one. When the object cannot be told, the record is taken back. */
export async function addGrant(
  env: Env,
  device: Device,
  grant: Omit<Grant, "revision" | "pausedAt" | "revokedAt">,
  note: string | null = null,
): Promise<Grant> {
  const now = Date.now();
  const added = await insertGrant(env.DB, device.id, grant, now, note);
  if (added === null) throw new ApiError("not_found", `There is no device "${device.name}".`);
  const told = await tellObject(env, device.id, (stub) => stub.putGrant(added));
  if (told.state !== "failed") return added;
  await revokeGrant(env.DB, device.id, added.id, now);
  throw new ApiError("incomplete", "The device's object did not take the grant, so no token was made. Try again.");
}

async function recordRevocation(env: Env, record: GrantRecord, at: number): Promise<boolean> {
  try {
    await revokeGrant(env.DB, record.deviceId, record.grant.id, at);
    return true;
  } catch (error) {
    log("error", "grant.revoke-not-recorded", { grant: record.grant.id, error });
    return false;
  }
}

/**
 * Revokes a grant: the object first, then D1; both are tried whatever becomes of the other. Throws `incomplete` when
 * one half failed: repeating the command is safe, and does what is missing.
 */
export async function revokeEverywhere(env: Env, id: string): Promise<GrantRecord> {
  const record = await findGrant(env.DB, id);
  if (record === null) throw new ApiError("not_found", "There is no grant with this id.");
  const at = record.grant.revokedAt ?? Date.now();
  const revoked: Grant = { ...record.grant, revokedAt: at };
  let told = await tellObject(env, record.deviceId, (stub) => stub.putGrant(revoked));
  const isRecorded = await recordRevocation(env, record, at);
  // A device that was born in the meantime may have pulled the grant before it was revoked.
  if (told.state === "unborn") told = await tellObject(env, record.deviceId, (stub) => stub.putGrant(revoked));
  if (told.state === "failed")
    throw new ApiError("incomplete", "The revocation is recorded, but the device's object did not confirm it. Repeat the command.");
  if (!isRecorded)
    throw new ApiError("incomplete", "The device refuses the token, but the revocation is not recorded. Repeat the command.");
  return { ...record, grant: revoked };
}

/**
 * Removes a device: first its keys, so that nobody dials in again; then tunnel and storage of its object; then the
 * record, which frees the name. Stops at the first half that fails, with the device still listed, so that repeating
 * the command finishes it.
 */
export async function removeEverywhere(env: Env, device: Device): Promise<void> {
  const now = Date.now();
  await revokeDeviceKeys(env.DB, device.id, now);
  const told = await tellObject(env, device.id, async (stub) => {
    await stub.closeTunnel("removed");
    await stub.destroy();
  });
  if (told.state === "failed")
    throw new ApiError("incomplete", "The device's keys are revoked, but its object did not confirm its end. Repeat the command.");
  await removeDevice(env.DB, device.id, now);
  forgetDevice(device.id);
}
