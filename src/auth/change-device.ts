/** Owner commands that change a device in D1 and at its object: settings, pause, name, keys. */
import type { Env } from "../env.ts";
import { addDeviceKey, revokeDeviceKeys } from "../db/device-keys.ts";
import { findFormerName, renameDevice } from "../db/device-names.ts";
import { changeDeviceSettings, type Device, setDevicePaused } from "../db/devices.ts";
import { configOf } from "../env.ts";
import { ApiError } from "../errors.ts";
import { DEVICE } from "../limits.ts";
import { log } from "../log.ts";
import type { DeviceSettingsChange } from "../policy/device-settings.ts";
import { wakeUrlProblem } from "../policy/wake-url.ts";
import { forgetDevice } from "./device-stub.ts";
import { mcpUrl } from "./origins.ts";
import { hashSecret, mintDeviceKey } from "./secrets.ts";
import { tellObject } from "./tell-object.ts";

/** Changes settings of a device in D1. Other isolates follow within EDGE.registryCacheMs. */
export async function changeSettings(env: Env, device: Device, change: DeviceSettingsChange): Promise<void> {
  const problem = typeof change.wakeUrl === "string" ? wakeUrlProblem(change.wakeUrl, configOf(env).runtime) : undefined;
  if (problem !== undefined) throw new ApiError("bad_request", problem);
  await changeDeviceSettings(env.DB, device.id, change);
  forgetDevice(device.id);
}

/**
 * Pauses or resumes a device. Pausing narrows: the object first, and D1 whatever becomes of that; resuming is recorded
 * first.
 */
export async function pauseDevice(env: Env, device: Device, isPaused: boolean): Promise<void> {
  const pausedAt = isPaused ? (device.pausedAt ?? Date.now()) : null;
  const tell = () => tellObject(env, device.id, (stub) => stub.configure({ pausedAt }));
  if (!isPaused) {
    await setDevicePaused(env.DB, device.id, null);
    if ((await tell()).state === "failed")
      throw new ApiError("incomplete", "The device is recorded as running, but its object did not confirm it. Repeat the command.");
    return;
  }
  let told = await tell();
  const isRecorded = await tryRecordPause(env, device, pausedAt);
  if (told.state === "unborn") told = await tell();
  if (!isRecorded)
    throw new ApiError("incomplete", "The device's object refuses calls, but the pause is not recorded. Repeat the command.");
  if (told.state === "failed")
    throw new ApiError("incomplete", "The pause is recorded, but the device's object did not confirm it. Repeat the command.");
}

async function tryRecordPause(env: Env, device: Device, pausedAt: number | null): Promise<boolean> {
  try {
    await setDevicePaused(env.DB, device.id, pausedAt);
    return true;
  } catch (error) {
    log("error", "device.pause-not-recorded", { deviceId: device.id, error });
    return false;
  }
}

/** Gives a device another name. Its old URL, and tokens made for it, go on working until the returned time (epoch ms). */
export async function renameEverywhere(env: Env, device: Device, to: string): Promise<{ until: number }> {
  const at = Date.now();
  const until = at + DEVICE.formerNameMs;
  if (!(await renameDevice(env.DB, { deviceId: device.id, from: device.name, to, at, until }))) throw await nameTaken(env, to, at);
  forgetDevice(device.id);
  const name = { name: to, mcpUrl: mcpUrl(configOf(env).origins[0] ?? "", to) };
  const told = await tellObject(env, device.id, (stub) => stub.configure(name));
  if (told.state === "failed")
    throw new ApiError("incomplete", `The device is "${to}" now, but its object did not hear it; it will when the agent dials in again.`);
  return { until };
}

/** Why a name cannot be had. */
export async function nameTaken(env: Env, name: string, now: number): Promise<ApiError> {
  const former = await findFormerName(env.DB, name, now);
  if (former === null) return new ApiError("conflict", `A device named "${name}" exists already.`);
  const until = new Date(former.until).toISOString().slice(0, 10);
  return new ApiError("conflict", `"${name}" is the former name of another device, whose URL works until ${until}. Choose another name.`);
}

/** Makes a new device key. The ones before it work until the new one is used, for DEVICE.keyOverlapMs at most. */
export async function rotateDeviceKey(env: Env, device: Device): Promise<{ deviceKey: string; olderUntil: number }> {
  const createdAt = Date.now();
  const olderUntil = createdAt + DEVICE.keyOverlapMs;
  const deviceKey = mintDeviceKey(device.id);
  await addDeviceKey(env.DB, { hash: await hashSecret(deviceKey), deviceId: device.id, createdAt, olderUntil });
  return { deviceKey, olderUntil };
}

/** Revokes every key of a device and closes its tunnel for good. Keys first, so that nobody dials in again. */
export async function revokeKeysEverywhere(env: Env, device: Device): Promise<void> {
  await revokeDeviceKeys(env.DB, device.id, Date.now());
  const told = await tellObject(env, device.id, (stub) => stub.closeTunnel("revoked"));
  if (told.state === "failed")
    throw new ApiError("incomplete", "The device's keys are revoked, but its tunnel was not confirmed closed. Repeat the command.");
}
