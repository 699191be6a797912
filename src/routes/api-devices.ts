/** Owner API: devices and their status. */
import { Hono } from "hono";
import { z } from "zod";
import { deviceState, statusOf, statusOfAll } from "../auth/device-status.ts";
import { mcpUrl } from "../auth/origins.ts";
import { removeEverywhere } from "../auth/record-and-copy.ts";
import { hashSecret, mintDeviceKey, randomId } from "../auth/secrets.ts";
import { type Device, findDeviceByName, insertDevice, listDevices } from "../db/devices.ts";
import { type AppEnv, configOf, type Env } from "../env.ts";
import { ApiError } from "../errors.ts";
import { API } from "../limits.ts";
import { DeviceName } from "../policy/device-name.ts";
import { readBody } from "./body.ts";

const NewDevice = z.strictObject({ name: DeviceName });

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

async function addDevice(env: Env, name: string) {
  const id = randomId();
  const deviceKey = mintDeviceKey(id);
  const isNew = await insertDevice(env.DB, { id, name, keyHash: await hashSecret(deviceKey), createdAt: Date.now() });
  if (!isNew) throw new ApiError("conflict", `A device named "${name}" exists already.`);
  return { device: name, id, deviceKey, mcpUrl: publicUrl(env, name) };
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

/** `/devices…` and `/status`, below `/api` and behind the owner's door. */
export function deviceRoutes(): Hono<AppEnv> {
  const app = new Hono<AppEnv>();
  app.post("/devices", async (c) => {
    const { name } = await readBody(c, NewDevice);
    return c.json(await addDevice(c.env, name), 201);
  });
  app.get("/devices", async (c) => {
    const devices = await listDevices(c.env.DB, API.listRows);
    return c.json({ devices: devices.map((device) => listed(c.env, device)) });
  });
  app.delete("/devices/:name", async (c) => {
    const device = await deviceNamed(c.env, c.req.param("name"));
    await removeEverywhere(c.env, device);
    return c.json({ device: device.name, id: device.id, removed: true });
  });
  app.get("/devices/:name/status", async (c) => c.json(await statusOf(c.env, await deviceNamed(c.env, c.req.param("name")))));
  app.get("/status", async (c) => c.json(await statusOfAll(c.env, await listDevices(c.env.DB, API.listRows))));
  return app;
}
