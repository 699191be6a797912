/** What strangers may cost: counted by address where it is known, else for the relay, and never at the cost of the rightful. */
import { env } from "cloudflare:workers";
import { beforeEach, describe, expect, it } from "vitest";
import { addressGroup } from "../../src/auth/address.ts";
import { forgetCounts, MinuteCounts } from "../../src/auth/rate-limit.ts";
import { ABUSE } from "../../src/limits.ts";
import { addDevice, addToken, dial, startRelay, tokenFor } from "./api-support.ts";
import { browser } from "./web-support.ts";

const { failures, pairings } = ABUSE.perMinute;

beforeEach(async () => {
  forgetCounts();
  await env.DB.prepare("DELETE FROM pairings").run();
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
    expect((await dial(relay, `${deviceKey.slice(0, -4)}AAAA`)).status).toBe(429);
    expect((await relay.send(`/mcp/${device}`, { method: "POST", headers: { Authorization: "Bearer x" }, body: "{}" })).status).toBe(429);
    expect((await browser(relay).post("/sign-in", { token: `llo_${"A".repeat(43)}`, next: "/" })).status).toBe(429);
    expect((await browser(relay).post("/join", { code: `lli_${"A".repeat(43)}`, next: "/" })).status).toBe(429);
  }, 30_000);
});
