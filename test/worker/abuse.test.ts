/** What strangers may cost: counted by address where it is known, else for the relay, and never at the cost of the rightful. */
import { env } from "cloudflare:workers";
import { beforeEach, describe, expect, it } from "vitest";
import { addressGroup } from "../../src/auth/address.ts";
import { forgetCounts, MinuteCounts } from "../../src/auth/rate-limit.ts";
import { forgetRefusedAttempts } from "../../src/auth/refused-attempts.ts";
import { addRefusedAttempts } from "../../src/db/refused-attempts.ts";
import { ABUSE, AUDIT, PAIRING } from "../../src/limits.ts";
import { altered } from "../support/altered.ts";
import { addDevice, addToken, dial, type Relay, startRelay, tokenFor } from "./api-support.ts";
import { publicClient, register } from "./oauth-support.ts";
import { eventually } from "./support/device.ts";
import { browser } from "./web-support.ts";

const { authorizations, exchanges, failures, pairings, registrations } = ABUSE.perMinute;

beforeEach(async () => {
  forgetCounts();
  forgetRefusedAttempts();
  await env.DB.prepare("DELETE FROM pairings").run();
  await env.DB.prepare("DELETE FROM audit").run();
});

const CLOUD = { LONGLINE_RUNTIME: "cloudflare" };

describe("a minute's counts", () => {
  it("end with their minute, and are bounded", () => {
    const counts = new MinuteCounts(2);
    expect([counts.add("a", 0), counts.add("a", 59_999), counts.get("a", 59_999)]).toEqual([1, 2, 2]);
    expect(counts.get("a", 60_000)).toBe(0);
    counts.add("b", 0);
    counts.add("c", 0);
    expect([counts.get("a", 0), counts.get("b", 0), counts.get("c", 0)]).toEqual([0, 1, 1]);
  });
});

describe("an address", () => {
  it.each([
    ["192.0.2.7", "192.0.2.7"],
    ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2"],
    ["2001:db8:1:2::9", "2001:db8:1:2"],
    ["2001:DB8::1", "2001:db8:0:0"],
    ["::1", "0:0:0:0"],
  ])("%s counts as %s", (address, group) => {
    expect(addressGroup(address)).toBe(group);
  });

  it("that fails too often waits a minute before its next token is looked at; others do not", async () => {
    const relay = await startRelay(CLOUD);
    const token = await tokenFor("owner");
    const as = (address: string, bearer: string): Promise<Response> =>
      relay.send("/api/me", { headers: { Authorization: `Bearer ${bearer}`, "CF-Connecting-IP": address } });
    for (let i = 0; i < failures.address; i++) expect((await as("192.0.2.1", `llo_${"A".repeat(43)}`)).status).toBe(401);
    const refused = await as("192.0.2.1", token);
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "60"]);
    expect((await as("192.0.2.2", token)).status).toBe(200);
  });

  it("is never taken from a header on the embedded relay, unless its owner named one; then from its last entry", async () => {
    const plain = await startRelay();
    for (let i = 0; i <= pairings.address; i++) {
      const response = await plain.send("/pair/start", {
        method: "POST",
        headers: { "CF-Connecting-IP": "192.0.2.1", "X-Forwarded-For": "192.0.2.1" },
        body: JSON.stringify({ host: "h", system: "s", agentVersion: "v", name: "n" }),
      });
      expect(response.status).toBe(201);
    }
    forgetCounts();
    await env.DB.prepare("DELETE FROM pairings").run();
    const proxied = await startRelay({ LONGLINE_PROXY_HEADER: "X-Forwarded-For" });
    const begin = async (forwarded: string): Promise<number> =>
      (
        await proxied.send("/pair/start", {
          method: "POST",
          headers: { "X-Forwarded-For": forwarded },
          body: JSON.stringify({ host: "h", system: "s", agentVersion: "v", name: "n" }),
        })
      ).status;
    for (let i = 0; i < pairings.address; i++) expect(await begin(`10.0.0.${i}, 192.0.2.9`)).toBe(201);
    expect(await begin("10.0.0.99, 192.0.2.9")).toBe(429);
    expect(await begin("192.0.2.9, 192.0.2.10")).toBe(201);
  });
});

describe("without an address", () => {
  it("failures are counted for the relay, and a valid credential still opens", async () => {
    const relay = await startRelay();
    const { device, deviceKey } = await addDevice(relay);
    const { token } = await addToken(relay, device);
    const bad = (): Promise<Response> => relay.send("/api/me", { headers: { Authorization: `Bearer llo_${"A".repeat(43)}` } });
    for (let i = 0; i < failures.relay; i++) await bad();
    expect((await bad()).status).toBe(429);
    expect((await relay.asOwner("GET", "/api/me")).status).toBe(200);
    expect((await dial(relay, deviceKey)).status).toBe(101);
    expect(
      (await relay.send(`/mcp/${device}`, { method: "POST", headers: { Authorization: `Bearer ${token}` }, body: "{}" })).status,
    ).not.toBe(429);
    expect((await dial(relay, altered(deviceKey, deviceKey.length - 4))).status).toBe(429);
    expect((await relay.send(`/mcp/${device}`, { method: "POST", headers: { Authorization: "Bearer x" }, body: "{}" })).status).toBe(429);
    expect((await browser(relay).post("/sign-in", { token: `llo_${"A".repeat(43)}`, next: "/" })).status).toBe(429);
    expect((await browser(relay).post("/join", { code: `lli_${"A".repeat(43)}`, next: "/" })).status).toBe(429);
  }, 30_000);
});

/** A request of an address, as Cloudflare names it. */
function from(relay: Relay, address: string, path: string, init: Omit<RequestInit, "headers"> & { headers?: Record<string, string> } = {}) {
  return relay.send(path, { redirect: "manual", ...init, headers: { ...init.headers, "CF-Connecting-IP": address } });
}

describe("the token endpoint", () => {
  const exchange = (relay: Relay, address: string, path = "/oauth/token"): Promise<Response> =>
    from(relay, address, path, {
      method: "POST",
      headers: { "Content-Type": "application/x-www-form-urlencoded" },
      body: new URLSearchParams({ grant_type: "refresh_token", refresh_token: "a:b:c", client_id: "nobody" }).toString(),
    });

  it.each(["/oauth/token", "/oauth/revoke"])(
    "makes an address wait after failures at %s, in the form of OAuth; others do not",
    async (path) => {
      const relay = await startRelay(CLOUD);
      for (let i = 0; i < exchanges.address; i++) expect([400, 401]).toContain((await exchange(relay, "192.0.2.1", path)).status);
      const refused = await exchange(relay, "192.0.2.1", path);
      expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "60"]);
      expect(await refused.json()).toMatchObject({ error: "temporarily_unavailable" });
      expect((await exchange(relay, "192.0.2.2", path)).status).not.toBe(429);
    },
  );
});

describe("who is not signed in", () => {
  it("may ask for an authorization so many times a minute; who is may go on", async () => {
    const relay = await startRelay(CLOUD);
    const asking = "/oauth/authorize?response_type=code&client_id=https%3A%2F%2Fclient.test%2Fgood.json";
    for (let i = 0; i < authorizations.address; i++) expect((await from(relay, "192.0.2.1", asking)).status).not.toBe(429);
    expect((await from(relay, "192.0.2.1", asking)).status).toBe(429);
    const signIn = await from(relay, "192.0.2.1", "/sign-in", {
      method: "POST",
      headers: { Origin: "https://relay.test", "Content-Type": "application/x-www-form-urlencoded" },
      body: new URLSearchParams({ token: await tokenFor("owner"), next: "/account" }).toString(),
    });
    const cookie = signIn.headers.getSetCookie()[0]?.split(";")[0] ?? "";
    expect((await from(relay, "192.0.2.1", asking, { headers: { Cookie: cookie } })).status).not.toBe(429);
  });

  it("may register so many clients a minute", async () => {
    const relay = await startRelay();
    await publicClient(relay);
    for (let i = 1; i < registrations.relay; i++) await register(relay, { redirect_uris: [] });
    expect(await (await register(relay)).json()).toMatchObject({ error: "temporarily_unavailable" });
  });

  it("may let five devices of one address wait, so that others find a place", async () => {
    const relay = await startRelay(CLOUD);
    const begin = async (address: string): Promise<number> => {
      forgetCounts();
      const body = JSON.stringify({ host: "h", system: "s", agentVersion: "v", name: "n" });
      return (await from(relay, address, "/pair/start", { method: "POST", body })).status;
    };
    const all = await Promise.all(Array.from({ length: 3 * PAIRING.pendingPerAddress }, () => begin("192.0.2.1")));
    expect(all.filter((status) => status === 201)).toHaveLength(PAIRING.pendingPerAddress);
    expect(await begin("192.0.2.2")).toBe(201);
  });
});

describe("what strangers tried", () => {
  const rows = async (relay: Relay): Promise<Record<string, unknown>[]> =>
    (await (await relay.asOwner("GET", "/api/audit?limit=100")).json<{ rows: Record<string, unknown>[] }>()).rows;

  it("is on record as one row for each door and reason, without what they sent", async () => {
    const relay = await startRelay(CLOUD);
    const { device } = await addDevice(relay);
    await env.DB.prepare("DELETE FROM audit").run();
    const knock = (i: number): Promise<Response> =>
      from(relay, `192.0.2.${i}`, `/mcp/${device}`, { method: "POST", headers: { Authorization: `Bearer canary-${i}` }, body: "{}" });
    expect((await knock(1)).status).toBe(401);
    await from(relay, "192.0.2.1", `/mcp/${device}`, { method: "POST", body: "{}" });
    await eventually(async () => expect(await rows(relay)).toHaveLength(1));
    const [row] = await rows(relay);
    expect(row).toMatchObject({
      kind: "refused",
      method: "/mcp/:device",
      outcome: "refused",
      reason: "not_authorised",
      attempts: 1,
      device: null,
      target: null,
    });
    // The next ones wait for each other; the window's row counts them all.
    for (let i = 2; i < 40; i++) await knock(i);
    expect(JSON.stringify(await rows(relay))).not.toMatch(/canary|192\.0\.2/);
    expect(await rows(relay)).toHaveLength(1);
  });

  it("fills no table: a window has one row for a door and a reason, from whatever isolate", async () => {
    const now = 1_700_000_000_000;
    const add = (door: string, count: number, at: number): Promise<unknown> =>
      addRefusedAttempts(env.DB, [{ door, reason: "not_authorised", count }], at).run();
    for (let i = 0; i < 50; i++) await add("/tunnel", 3, now + i);
    await add("/api/*", 1, now);
    await add("/tunnel", 7, now + AUDIT.strangerWindowMs);
    const { results } = await env.DB.prepare("SELECT method, attempts FROM audit ORDER BY seq").all();
    expect(results).toEqual([
      { method: "/tunnel", attempts: 150 },
      { method: "/api/*", attempts: 1 },
      { method: "/tunnel", attempts: 7 },
    ]);
  });

  it("is answered although D1 takes no record of it", async () => {
    const batch = (): never => {
      throw new Error("D1 is away");
    };
    const away = new Proxy(env.DB, { get: (db, name) => (name === "batch" ? batch : Reflect.get(db, name).bind(db)) });
    const relay = await startRelay({ DB: away });
    expect((await relay.send("/mcp/pi", { method: "POST", headers: { Authorization: "Bearer x" }, body: "{}" })).status).toBe(401);
  });
});
