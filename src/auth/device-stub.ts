/**
 * The way from a device id to its object. Only an authenticated dial-in brings an object into being, near the device;
 * until then D1 answers for it, and no look-up may touch it.
 */
import { waitUntil } from "cloudflare:workers";
import { type Env, tunnelOf, type TunnelStub } from "../env.ts";
import { type Device, findDevice } from "../db/devices.ts";
import { EDGE } from "../limits.ts";
import { log } from "../log.ts";
import type { DeviceNames } from "../policy/device-name.ts";
import type { DeviceSettings } from "../policy/device-settings.ts";

/** What an isolate knows of a born device, and when (epoch ms) D1 last said so. Being born is final, so only removal can make it wrong. */
interface Known {
  seenAt: number;
  settings: DeviceSettings;
  names: DeviceNames;
}

const born = new Map<string, Known>();

function remember(deviceId: string, known: Known): void {
  born.delete(deviceId);
  born.set(deviceId, known);
  if (born.size <= EDGE.bornDevices) return;
  const oldest = born.keys().next();
  if (oldest.done !== true) born.delete(oldest.value);
}

/** Forgets a device that was removed or has other settings. Other isolates find out within EDGE.registryCacheMs of their next call. */
export function forgetDevice(deviceId: string): void {
  born.delete(deviceId);
}

function namesOf({ name, formerNames }: Device): DeviceNames {
  return { name, formerNames };
}

async function look(env: Env, deviceId: string): Promise<Device | null> {
  const device = await findDevice(env.DB, deviceId);
  if (device !== null && device.bornAt !== null)
    remember(deviceId, { seenAt: Date.now(), settings: device.settings, names: namesOf(device) });
  else forgetDevice(deviceId);
  return device;
}

function lookBeside(env: Env, deviceId: string, known: Known): void {
  remember(deviceId, known);
  waitUntil(look(env, deviceId).catch((error: unknown) => log("warn", "device.refresh-failed", { deviceId, error })));
}

/**
 * The stub of a born device with its settings; the D1 row of one that never connected; null for an unknown or removed
 * one. D1 is read only while this isolate does not know that the device was born.
 */
export async function deviceStub(
  env: Env,
  deviceId: string,
): Promise<{ born: true; stub: TunnelStub; settings: DeviceSettings; names: DeviceNames } | { born: false; device: Device } | null> {
  let known: Omit<Known, "seenAt"> | undefined = born.get(deviceId);
  const seenAt = born.get(deviceId)?.seenAt ?? 0;
  const now = Date.now();
  if (known === undefined) {
    const device = await look(env, deviceId);
    if (device === null) return null;
    if (device.bornAt === null) return { born: false, device };
    known = { settings: device.settings, names: namesOf(device) };
  } else if (now - seenAt >= EDGE.registryCacheMs) {
    lookBeside(env, deviceId, { ...known, seenAt: now });
  }
  // A fresh stub each time: after an object was lost, an old stub stays broken.
  return { born: true, stub: tunnelOf(env, deviceId), settings: known.settings, names: known.names };
}
