/** What `status` shows of a device: D1 says who it is, its object (once born) how it is now. */
import type { DeviceStatus } from "../../durable/rpc.ts";
import type { Env } from "../env.ts";
import type { Device } from "../db/devices.ts";
import { API } from "../limits.ts";
import { type DeviceSettings, shownSettings } from "../policy/device-settings.ts";
import type { UpstreamState } from "../tunnel/frames.ts";
import { tellObject } from "./tell-object.ts";

/** `never`: no agent ever dialled in. `revoked`: no key is left. */
export type DeviceState = "online" | "offline" | "never" | "paused" | "revoked";

/** One device's status as the API and the command line print it. Times are epoch ms. */
export interface StatusView {
  device: string;
  state: DeviceState;
  generation: number;
  agentVersion: string | null;
  lastSeenAt: number | null;
  upstreams: UpstreamView[];
  lastCallAt: number | null;
  sessions: number;
  inFlight: number;
  /** When another machine last tried to use this device's key while its own agent was there; null for never. */
  rivalAt: number | null;
  settings: DeviceSettings;
}

/** One upstream; `unknown` while the device is away, as only its agent could say. */
export interface UpstreamView extends Pick<UpstreamState, "alias" | "era" | "lastRoundTripMs" | "lastRoundTripAt" | "problem"> {
  state: UpstreamState["state"] | "unknown";
}

/** The state of a device; `online` as its object says, or as D1 recorded it. */
export function deviceState(device: Device, online: boolean): DeviceState {
  if (!device.hasKey) return "revoked";
  if (device.pausedAt !== null) return "paused";
  if (device.bornAt === null) return "never";
  return online ? "online" : "offline";
}

function recorded(device: Device): StatusView {
  return {
    device: device.name,
    state: deviceState(device, device.online),
    generation: device.generation,
    agentVersion: device.agentVersion,
    lastSeenAt: device.lastSeenAt,
    upstreams: [],
    lastCallAt: null,
    sessions: 0,
    inFlight: 0,
    rivalAt: null,
    settings: shownSettings(device.settings),
  };
}

function live(device: Device, status: DeviceStatus): StatusView {
  return {
    device: device.name,
    state: deviceState(device, status.online),
    generation: status.generation,
    agentVersion: status.agentVersion ?? device.agentVersion,
    lastSeenAt: status.lastSeenAt ?? device.lastSeenAt,
    upstreams: status.upstreams.map((upstream) => upstreamView(upstream, status.online)),
    lastCallAt: status.lastCallAt,
    sessions: status.sessions,
    inFlight: status.inFlight,
    rivalAt: status.rival?.at ?? null,
    settings: shownSettings(device.settings),
  };
}

function upstreamView(upstream: UpstreamState, isOnline: boolean): UpstreamView {
  const { alias, state, era, lastRoundTripMs, lastRoundTripAt, problem } = upstream;
  if (isOnline) return { alias, state, era, lastRoundTripMs, lastRoundTripAt, problem };
  return { alias, state: "unknown", era, lastRoundTripMs: null, lastRoundTripAt, problem: null };
}

/** The status of one device. An object that does not answer in time leaves what D1 recorded. */
export async function statusOf(env: Env, device: Device): Promise<StatusView> {
  if (device.bornAt === null) return recorded(device);
  const told = await tellObject(env, device.id, (stub) => stub.status());
  return told.state === "told" ? live(device, told.value) : recorded(device);
}

/** The status of many devices, in order, asking a few objects at a time. */
export async function statusOfAll(env: Env, devices: readonly Device[]): Promise<StatusView[]> {
  const views: StatusView[] = [];
  for (let at = 0; at < devices.length; at += API.objectsAtOnce) {
    views.push(...(await Promise.all(devices.slice(at, at + API.objectsAtOnce).map((device) => statusOf(env, device)))));
  }
  return views;
}
