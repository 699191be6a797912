/** The console's routes: who comes in, that looking changes nothing, and that a change needs a page of this relay. */
import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, it } from "vitest";
import { createApp } from "../../src/app.ts";
import { addDevice, memberWithToken, type Relay, startRelay, tokenFor } from "./api-support.ts";
import { browser, signedIn } from "./web-support.ts";

const ROUTES = createApp().routes.filter(({ path }) => path.startsWith("/console"));
const pathsOf = (method: string): string[] => [
  ...new Set(ROUTES.filter((route) => route.method === method).map(({ path }) => path.replace(":name", "lamp").replace(/:\w+/, "some-id"))),
];
/** Changes that a member may ask for; what is not theirs is not there. */
const MEMBERS_OWN = [
  "/console/devices/lamp/looked",
  "/console/devices/lamp/try",
  "/console/devices/lamp/cancel",
  "/console/grants/some-id/revoke",
];

let relay: Relay;
beforeAll(async () => {
  relay = await startRelay();
  await addDevice(relay, "lamp");
});

/** Everything that could have been changed. */
async function record(): Promise<string> {
  const tables = ["devices", "device_keys", "grants", "members", "invitations", "audit", "tool_looks", "web_sessions"];
  return JSON.stringify(
    await env.DB.batch(tables.map((table) => env.DB.prepare(`SELECT * FROM ${table}`))).then((all) => all.map(({ results }) => results)),
  );
}

it("has pages and changes to look at", () => {
  expect(pathsOf("GET").length).toBeGreaterThan(12);
  expect(pathsOf("POST").length).toBeGreaterThan(15);
});

describe("a stranger", () => {
  it.each(pathsOf("GET"))("is sent to sign in from %s", async (path) => {
    const response = await browser(relay).get(path);
    expect([response.status, response.headers.get("location")]).toEqual([
      303,
      `/sign-in?${new URLSearchParams({ next: path }).toString()}`,
    ]);
  });

  it("changes nothing", async () => {
    const before = await record();
    for (const path of pathsOf("POST")) expect((await browser(relay).post(path, {})).status).toBe(303);
    expect(await record()).toBe(before);
  });
});

describe("an owner", () => {
  it("changes nothing by looking", async () => {
    const owner = await signedIn(relay, await tokenFor("owner"));
    const before = await record();
    for (const path of pathsOf("GET")) expect((await owner.get(path)).status).toBeLessThan(500);
    expect(await record()).toBe(before);
    expect(relay.objects.methods().filter((method) => !["status", "offeredTools", "fetch"].includes(method))).toEqual([]);
  });

  it("changes nothing from a page of another origin, or of none", async () => {
    const owner = await signedIn(relay, await tokenFor("owner"));
    const before = await record();
    for (const path of pathsOf("POST"))
      for (const origin of ["https://evil.example", "null", null]) expect((await owner.post(path, {}, origin)).status, path).toBe(403);
    expect(await record()).toBe(before);
  });
});

describe("a member", () => {
  it.each(pathsOf("POST").filter((path) => !MEMBERS_OWN.includes(path)))("may not change anything at %s", async (path) => {
    const member = await signedIn(relay, (await memberWithToken("member")).token);
    expect((await member.post(path, {})).status).toBe(403);
  });

  it("is told that a device that is not shared with them does not exist", async () => {
    const member = await signedIn(relay, (await memberWithToken("member")).token);
    for (const path of [
      "/console/devices/lamp",
      "/console/devices/lamp/setup",
      "/console/devices/lamp/live",
      "/console/devices/lamp/try?tool=x",
    ])
      expect((await member.get(path)).status, path).toBe(404);
    for (const path of MEMBERS_OWN) expect((await member.post(path, {})).status, path).toBe(404);
    expect(await (await member.get("/console")).text()).toContain("No device is shared with you yet");
    expect(await (await member.get("/console/audit.csv")).text()).not.toContain("lamp");
  });
});
