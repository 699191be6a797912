/** Owner API: the settings of a device that change how its callers are answered. */
import { Hono } from "hono";
import { forgetDevice } from "../auth/device-stub.ts";
import { ownersOnly } from "../auth/owner.ts";
import { changeDeviceSettings } from "../db/devices.ts";
import { configOf, type AppEnv } from "../env.ts";
import { ApiError } from "../errors.ts";
import { DeviceSettingsChange, shownSettings } from "../policy/device-settings.ts";
import { wakeUrlProblem } from "../policy/wake-url.ts";
import { deviceNamed } from "./api-devices.ts";
import { readBody } from "./body.ts";

/** `PATCH /devices/:name`, below `/api` and behind the owner's door. Other isolates follow within EDGE.registryCacheMs. */
export function deviceSettingsRoutes(): Hono<AppEnv> {
  return new Hono<AppEnv>().patch("/devices/:name", ownersOnly, async (c) => {
    const change = await readBody(c, DeviceSettingsChange);
    if (Object.keys(change).length === 0) throw new ApiError("bad_request", "Name a setting to change.");
    const problem = typeof change.wakeUrl === "string" ? wakeUrlProblem(change.wakeUrl, configOf(c.env).runtime) : undefined;
    if (problem !== undefined) throw new ApiError("bad_request", problem);
    const { id } = await deviceNamed(c.env, c.req.param("name"));
    await changeDeviceSettings(c.env.DB, id, change);
    forgetDevice(id);
    const device = await deviceNamed(c.env, c.req.param("name"));
    return c.json({ device: device.name, id: device.id, settings: shownSettings(device.settings) });
  });
}
