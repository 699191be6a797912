/** Console: the list of devices, one device, and what its owner changes of it. */
import { type Context, Hono } from "hono";
import { audited } from "../auth/admin-audit.ts";
import { changeSettings, pauseDevice, renameEverywhere, revokeKeysEverywhere, rotateDeviceKey } from "../auth/change-device.ts";
import { statusOf, statusOfAll } from "../auth/device-status.ts";
import { ownersOnly } from "../auth/owner.ts";
import { removeEverywhere } from "../auth/record-and-copy.ts";
import { tellObject } from "../auth/tell-object.ts";
import { confirmPage } from "../console/confirm-page.tsx";
import { devicePage } from "../console/device-page.tsx";
import { addDevicePage, devicesPage } from "../console/devices-page.tsx";
import { keyPage } from "../console/key-page.tsx";
import { devicePath } from "../console/paths.ts";
import type { Device } from "../db/devices.ts";
import { listGrants } from "../db/grants.ts";
import { type AppEnv, configOf } from "../env.ts";
import { ApiError } from "../errors.ts";
import { API } from "../limits.ts";
import { DeviceSettingsChange } from "../policy/device-settings.ts";
import { addDevice, deviceNamed, NewDevice, publicUrl, visibleDevice, visibleDevices } from "./api-devices.ts";
import { doneAt, doneText } from "./console-done.ts";
import { lookAtTools, markedTools } from "./console-tools-of.ts";
import { readForm } from "./form.ts";

async function showAll(c: Context<AppEnv>): Promise<Response> {
  const devices = await statusOfAll(c.env, await visibleDevices(c));
  return devicesPage(c, { person: c.get("member"), devices, done: doneText(c) });
}

async function add(c: Context<AppEnv>): Promise<Response> {
  const form = await readForm(c);
  const person = c.get("member");
  const name = (form.get("name") ?? "").trim();
  const parsed = NewDevice.safeParse({ name });
  if (!parsed.success) return addDevicePage(c, { person, name, problem: `The name ${parsed.error.issues[0]?.message ?? "is not valid"}.` });
  try {
    const { device, deviceKey } = await audited(c, { name: "device.add", target: name }, () => addDevice(c.env, name));
    return keyPage(c, { person, device, deviceKey, relay: relayOf(c) });
  } catch (error) {
    if (error instanceof ApiError && error.code === "conflict") return addDevicePage(c, { person, name, problem: error.message });
    throw error;
  }
}

function relayOf(c: Context<AppEnv>): string {
  return configOf(c.env).origins[0] ?? "";
}

async function show(c: Context<AppEnv>): Promise<Response> {
  const person = c.get("member");
  const device = await visibleDevice(c, nameIn(c));
  const member = person.role === "owner" ? null : person.id;
  const [status, marked, grants, calls] = await Promise.all([
    statusOf(c.env, device),
    markedTools(c.env, device.id, person.id),
    listGrants(c.env.DB, device.id, API.listRows, member ?? undefined),
    tellObject(c.env, device.id, (stub) => stub.liveCalls(member)),
  ]);
  return devicePage(c, {
    person,
    status,
    mcpUrl: publicUrl(c.env, device.name),
    ...marked,
    grants,
    calls: calls.state === "told" ? calls.value : [],
    done: doneText(c),
  });
}

function nameIn(c: Context<AppEnv>): string {
  return c.req.param("name") ?? "";
}

/** What is asked about before it is done. */
const QUESTIONS = {
  pause: {
    verb: "Pause",
    text: "Calls are refused until you resume it. Its agent stays connected, and every grant stays.",
    isFinal: false,
  },
  "rotate-key": {
    verb: "Rotate the key of",
    text: "A new key is shown once. The one before it works until the new one is used, for a day at most.",
    isFinal: false,
  },
  "revoke-keys": {
    verb: "Revoke every key of",
    text: "Its tunnel closes at once, running calls end, and its agent cannot come back until you make a new key.",
    isFinal: true,
  },
  remove: {
    verb: "Remove",
    text: "Its tunnel closes, every grant on it ends, and its name becomes free. The audit keeps what happened. This cannot be undone.",
    isFinal: true,
  },
} as const;
type Asked = keyof typeof QUESTIONS;

async function ask(c: Context<AppEnv>, asked: Asked): Promise<Response> {
  const { name } = await deviceNamed(c.env, nameIn(c));
  const { verb, text, isFinal } = QUESTIONS[asked];
  return confirmPage(c, {
    person: c.get("member"),
    here: "devices",
    title: `${verb} ${name}?`,
    text,
    action: devicePath(name, asked),
    back: { to: devicePath(name), text: name },
    button: `${verb} ${name}`,
    isFinal,
  });
}

/** Reads the form for its Origin, then does something to the device of the path, recorded. */
async function change<T>(
  c: Context<AppEnv>,
  action: string,
  work: (device: Device, form: URLSearchParams) => Promise<T>,
): Promise<{ device: Device; result: T }> {
  const form = await readForm(c);
  const device = await deviceNamed(c.env, nameIn(c));
  return { device, result: await audited(c, { name: action, target: device.name, device }, () => work(device, form)) };
}

async function rename(c: Context<AppEnv>): Promise<Response> {
  let to = "";
  const { device } = await change(c, "device.rename", async (found, form) => {
    const parsed = NewDevice.safeParse({ name: (form.get("name") ?? "").trim() });
    if (!parsed.success) throw new ApiError("bad_request", `The name ${parsed.error.issues[0]?.message ?? "is not valid"}.`);
    to = parsed.data.name;
    if (to !== found.name) await renameEverywhere(c.env, found, to);
  });
  return to === device.name ? c.redirect(devicePath(to), 303) : doneAt(c, devicePath(to), "renamed");
}

async function saveSettings(c: Context<AppEnv>): Promise<Response> {
  const { device } = await change(c, "device.settings", async (found, form) => {
    const settings = DeviceSettingsChange.safeParse({
      headerOnlyModern: form.get("headerOnlyModern") === "yes",
      initializedModern: form.get("initializedModern") === "yes",
      sessionExpiry: form.get("sessionExpiry") ?? undefined,
    });
    if (!settings.success) throw new ApiError("bad_request", "This form is not of this page. Open it again.");
    await changeSettings(c.env, found, settings.data);
  });
  return doneAt(c, devicePath(device.name), "saved");
}

async function rotate(c: Context<AppEnv>): Promise<Response> {
  const { device, result } = await change(c, "device.rotate-key", (found) => rotateDeviceKey(c.env, found));
  return keyPage(c, { person: c.get("member"), device: device.name, relay: relayOf(c), ...result });
}

async function look(c: Context<AppEnv>): Promise<Response> {
  await readForm(c);
  const device = await visibleDevice(c, nameIn(c));
  await lookAtTools(c.env, device.id, c.get("member").id);
  return doneAt(c, devicePath(device.name), "looked");
}

/** The routes of devices. */
export function consoleDeviceRoutes(): Hono<AppEnv> {
  const app = new Hono<AppEnv>();
  app.get("/", showAll);
  app.get("/devices/new", ownersOnly, (c) => addDevicePage(c, { person: c.get("member") }));
  app.post("/devices", ownersOnly, add);
  app.get("/devices/:name", show);
  // From D1 alone: an object that no agent dialled into is not made by asking.
  app.get("/devices/:name/presence", async (c) => c.json({ online: (await visibleDevice(c, c.req.param("name"))).online }));
  app.post("/devices/:name/looked", look);
  for (const asked of Object.keys(QUESTIONS) as Asked[]) app.get(`/devices/:name/${asked}`, ownersOnly, (c) => ask(c, asked));
  for (const isPaused of [true, false]) {
    app.post(`/devices/:name/${isPaused ? "pause" : "resume"}`, ownersOnly, async (c) => {
      const { device } = await change(c, isPaused ? "device.pause" : "device.resume", (found) => pauseDevice(c.env, found, isPaused));
      return doneAt(c, devicePath(device.name), isPaused ? "paused" : "resumed");
    });
  }
  app.post("/devices/:name/rename", ownersOnly, rename);
  app.post("/devices/:name/settings", ownersOnly, saveSettings);
  app.post("/devices/:name/rotate-key", ownersOnly, rotate);
  app.post("/devices/:name/revoke-keys", ownersOnly, async (c) => {
    const { device } = await change(c, "device.revoke-keys", (found) => revokeKeysEverywhere(c.env, found));
    return doneAt(c, devicePath(device.name), "keys-revoked");
  });
  app.post("/devices/:name/remove", ownersOnly, async (c) => {
    await change(c, "device.remove", (found) => removeEverywhere(c.env, found));
    return doneAt(c, "/console", "removed");
  });
  return app;
}
