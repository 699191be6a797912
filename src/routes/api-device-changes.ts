/** Owner API: pausing, renaming and re-keying a device. Each action is recorded and safe to repeat. */
import { type Context, Hono } from "hono";
import { z } from "zod";
import { audited } from "../auth/admin-audit.ts";
import { pauseDevice, renameEverywhere, revokeKeysEverywhere, rotateDeviceKey } from "../auth/change-device.ts";
import { ownersOnly } from "../auth/owner.ts";
import type { Device } from "../db/devices.ts";
import type { AppEnv } from "../env.ts";
import { ApiError } from "../errors.ts";
import { DeviceName } from "../policy/device-name.ts";
import { deviceNamed, publicUrl } from "./api-devices.ts";
import { readBody } from "./body.ts";

const NewName = z.strictObject({ name: DeviceName });

async function act<T>(c: Context<AppEnv>, name: string, work: (device: Device) => Promise<T>): Promise<{ device: Device; result: T }> {
  const device = await deviceNamed(c.env, c.req.param("name") ?? "");
  return { device, result: await audited(c, { name, target: device.name, device }, () => work(device)) };
}

/** `/devices/:name/{pause,resume,rename,keys}`, below `/api`, for owners. */
export function deviceChangeRoutes(): Hono<AppEnv> {
  const app = new Hono<AppEnv>();
  for (const isPaused of [true, false]) {
    app.post(`/devices/:name/${isPaused ? "pause" : "resume"}`, ownersOnly, async (c) => {
      const { device } = await act(c, isPaused ? "device.pause" : "device.resume", (found) => pauseDevice(c.env, found, isPaused));
      return c.json({ device: device.name, id: device.id, paused: isPaused });
    });
  }
  app.post("/devices/:name/rename", ownersOnly, async (c) => {
    const { name } = await readBody(c, NewName);
    if (name === c.req.param("name")) throw new ApiError("conflict", `The device is called "${name}" already.`);
    const { device, result } = await act(c, "device.rename", (found) => renameEverywhere(c.env, found, name));
    return c.json({ device: name, id: device.id, formerName: device.name, formerNameUntil: result.until, mcpUrl: publicUrl(c.env, name) });
  });
  app.post("/devices/:name/keys", ownersOnly, async (c) => {
    const { device, result } = await act(c, "device.rotate-key", (found) => rotateDeviceKey(c.env, found));
    return c.json({ device: device.name, id: device.id, deviceKey: result.deviceKey, olderKeysUntil: result.olderUntil }, 201);
  });
  app.delete("/devices/:name/keys", ownersOnly, async (c) => {
    const { device } = await act(c, "device.revoke-keys", (found) => revokeKeysEverywhere(c.env, found));
    return c.json({ device: device.name, id: device.id, state: "revoked" });
  });
  return app;
}
