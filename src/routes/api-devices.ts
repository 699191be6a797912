/** Owner API: devices and their status. */
import { type Context, Hono } from "hono";
import { z } from "zod";
import { audited } from "../auth/admin-audit.ts";
import { nameTaken } from "../auth/change-device.ts";
import { deviceState, statusOf, statusOfAll } from "../auth/device-status.ts";
import { mcpUrl } from "../auth/origins.ts";
import { ownersOnly } from "../auth/owner.ts";
import { removeEverywhere } from "../auth/record-and-copy.ts";
import { hashSecret, mintDeviceKey, randomId } from "../auth/secrets.ts";
import { type Device, findDeviceByName, insertDevice, listDevices, listDevicesOf } from "../db/devices.ts";
import { type AppEnv, configOf, type Env } from "../env.ts";
import { ApiError } from "../errors.ts";
import { API } from "../limits.ts";
import { DeviceName } from "../policy/device-name.ts";
import { readBody } from "./body.ts";

/** What a new device is made from. */
export const NewDevice = z.strictObject({ name: DeviceName });

/** The public MCP URL of a device, on the canonical origin. */
export function publicUrl(env: Env, name: string): string {
  return mcpUrl(configOf(env).origins[0] ?? "", name);
}

/** The device that has this name, or `not_found`. */
export async function deviceNamed(env: Env, name: string): Promise<Device> {
  const device = await findDeviceByName(env.DB, name);
  if (device === null) throw new ApiError("not_found", "There is no device with this name.");
  return device;
}

/** Adds a device and mints its first key. Throws `conflict` when the name is taken. */
export async function addDevice(env: Env, name: string) {
  const id = randomId();
  const deviceKey = mintDeviceKey(id);
  const isNew = await insertDevice(env.DB, { id, name, keyHash: await hashSecret(deviceKey), createdAt: Date.now() });
  if (!isNew) throw await nameTaken(env, name, Date.now());
  return { device: name, id, deviceKey, mcpUrl: publicUrl(env, name) };
}

/** The devices the signed-in person may see: all for an owner, those shared with them for a member. */
export async function visibleDevices(c: Context<AppEnv>): Promise<Device[]> {
  const { id, role } = c.get("member");
  return role === "owner" ? listDevices(c.env.DB, API.listRows) : listDevicesOf(c.env.DB, id, API.listRows);
}

/** A device the signed-in person may see, or `not_found`. */
export async function visibleDevice(c: Context<AppEnv>, name: string): Promise<Device> {
  const device = (await visibleDevices(c)).find((visible) => visible.name === name);
  // SECURITY: a device that is not shared with a member is answered like one that does not exist.
  if (device === undefined) throw new ApiError("not_found", "There is no device with this name.");
  return device;
}

function listed(env: Env, device: Device) {
  return {
    device: device.name,
    id: device.id,
    state: deviceState(device, device.online),
    lastSeenAt: device.lastSeenAt,
    createdAt: device.createdAt,
    mcpUrl: publicUrl(env, device.name),
    agentVersion: device.agentVersion,
  };
}

/** `/devices…` and `/status`, below `/api`. */
export function deviceRoutes(): Hono<AppEnv> {
  const app = new Hono<AppEnv>();
  app.post("/devices", ownersOnly, async (c) => {
    const { name } = await readBody(c, NewDevice);
    return c.json(await audited(c, { name: "device.add", target: name }, () => addDevice(c.env, name)), 201);
  });
  app.get("/devices", async (c) => {
    const devices = await visibleDevices(c);
    return c.json({ devices: devices.map((device) => listed(c.env, device)) });
  });
  app.delete("/devices/:name", ownersOnly, async (c) => {
    const device = await deviceNamed(c.env, c.req.param("name"));
    await audited(c, { name: "device.remove", target: device.name, device }, () => removeEverywhere(c.env, device));
    return c.json({ device: device.name, id: device.id, removed: true });
  });
  app.get("/devices/:name/status", async (c) => c.json(await statusOf(c.env, await visibleDevice(c, c.req.param("name")))));
  app.get("/devices/:name/ready", async (c) => {
    const device = await visibleDevice(c, c.req.param("name"));
    const { state, upstreams } = await statusOf(c.env, device);
    const isReady = state === "online" && upstreams.length > 0 && upstreams.every((upstream) => upstream.state === "ready");
    return c.json({ device: device.name, ready: isReady, state, upstreams }, isReady ? 200 : 503);
  });
  app.get("/status", async (c) => c.json(await statusOfAll(c.env, await visibleDevices(c))));
  return app;
}
