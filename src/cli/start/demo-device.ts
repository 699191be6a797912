/** Makes sure that this machine is a device of the relay, with a token to call it; reuses what an earlier start made. */
import { hostname } from "node:os";
import { ApiError } from "../../errors.ts";
import { CLI, NAMES } from "../../limits.ts";
import type { OwnerApi } from "../owner-api.ts";
import { readKept, writeKept, type Kept, type KeptGrant } from "./kept.ts";

/** The label of the token that `start` shows. */
const LABEL = "npm start";
/** Names tried for the device when others are taken. */
const NAME_TRIES = 20;

/** A device with its key and a usable token. */
export type DemoDevice = Kept & { grant: KeptGrant };

/** The device and the token of an earlier start when they are still good, otherwise new ones. */
export async function ensureDemoDevice(api: OwnerApi, dataDir: string, now: number): Promise<DemoDevice> {
  const kept = await keptDevice(api, dataDir);
  const device = kept ?? (await addDevice(api, deviceName(hostname())));
  if (kept === undefined) await writeKept(dataDir, device);
  const grant = (await keptGrant(api, device, now)) ?? (await newGrant(api, device.device));
  const complete: DemoDevice = { ...device, grant };
  await writeKept(dataDir, complete);
  return complete;
}

/** A machine's name as a device name: lower-case letters, digits and hyphens. */
export function deviceName(host: string): string {
  const label = host.split(".")[0] ?? "";
  const name = label
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .slice(0, NAMES.device - 3)
    .replace(/^-+|-+$/g, "");
  return name === "" || name === "localhost" ? "this-machine" : name;
}

async function keptDevice(api: OwnerApi, dataDir: string): Promise<Kept | undefined> {
  const kept = await readKept(dataDir);
  if (kept === undefined) return undefined;
  const devices = await api.listDevices();
  return devices.some((device) => device.device === kept.device) ? kept : undefined;
}

/** Adds the device under the first free name: `name`, `name-2`, … */
async function addDevice(api: OwnerApi, name: string): Promise<Kept> {
  for (let n = 1; ; n++) {
    try {
      const { device, deviceKey } = await api.addDevice(n === 1 ? name : `${name}-${n}`);
      return { device, deviceKey };
    } catch (error) {
      if (!(error instanceof ApiError && error.code === "conflict") || n === NAME_TRIES) throw error;
    }
  }
}

/** The kept token, if its grant still stands, it lives for a while, and it names the relay's present address. */
async function keptGrant(api: OwnerApi, { device, grant }: Kept, now: number): Promise<KeptGrant | undefined> {
  if (grant === undefined || grant.expiresAt < now + CLI.renewTokenMs) return undefined;
  if (new URL(grant.mcpUrl).origin !== api.relay.origin) return undefined;
  const row = (await api.listTokens(device)).find((token) => token.grant === grant.id);
  return row?.state === "active" ? grant : undefined;
}

async function newGrant(api: OwnerApi, device: string): Promise<KeptGrant> {
  const { grant, token, mcpUrl, expiresAt } = await api.createToken(device, { for: LABEL });
  return { id: grant, token, mcpUrl, expiresAt };
}
