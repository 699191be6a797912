/** Owner API: the settings of a device that change how its callers are answered. */
import { Hono } from "hono";
import { audited } from "../auth/admin-audit.ts";
import { changeSettings } from "../auth/change-device.ts";
import { ownersOnly } from "../auth/owner.ts";
import type { AppEnv } from "../env.ts";
import { ApiError } from "../errors.ts";
import { DeviceSettingsChange, shownSettings } from "../policy/device-settings.ts";
import { deviceNamed } from "./api-devices.ts";
import { readBody } from "./body.ts";

/** `PATCH /devices/:name`, below `/api` and behind the owner's door. */
export function deviceSettingsRoutes(): Hono<AppEnv> {
  return new Hono<AppEnv>().patch("/devices/:name", ownersOnly, async (c) => {
    const change = await readBody(c, DeviceSettingsChange);
    if (Object.keys(change).length === 0) throw new ApiError("bad_request", "Name a setting to change.");
    const device = await deviceNamed(c.env, c.req.param("name"));
    await audited(c, { name: "device.settings", target: device.name, device }, () => changeSettings(c.env, device, change));
    const { name, id, settings } = await deviceNamed(c.env, device.name);
    return c.json({ device: name, id, settings: shownSettings(settings) });
  });
}
