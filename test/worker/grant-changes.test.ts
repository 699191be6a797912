/** Changing grants and devices in both places, with each half failing in turn. */
import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { findGrant, grantsSince } from "../../src/db/grants.ts";
import { areRightsAtMost, isAtMost } from "../../src/policy/narrowing.ts";
import type { Rights } from "../../src/policy/grant.ts";
import { addDevice, addToken, dial, errorCode, memberWithToken, type Relay, startRelay } from "./api-support.ts";
import { grantOf } from "./support/fake-agent.ts";

async function bornDevice(relay: Relay) {
  const device = await addDevice(relay);
  await dial(relay, device.deviceKey);
  return device;
}

describe("what counts as narrower", () => {
  it.each<[Rights, Rights, boolean]>([
    [{}, {}, true],
    [{ tools: ["a"] }, {}, true],
    [{}, { tools: ["a"] }, false],
    [{ tools: ["a"] }, { tools: ["a", "b"] }, true],
    [{ tools: ["a", "c"] }, { tools: ["a", "b"] }, false],
    [{ tools: ["*", "!shell"] }, { tools: ["*"] }, true],
    [{ tools: ["*"] }, { tools: ["*", "!shell"] }, false],
    [{ tools: ["a"] }, { tools: ["!shell"] }, false],
    [{ tools: ["a", "!shell"] }, { tools: ["!shell"] }, true],
    [{ tools: ["!shell"] }, { tools: ["a", "!shell"] }, false],
    [{ tools: [] }, { prompts: ["x"] }, true],
    [{ tools: ["a"], prompts: ["x"] }, { tools: ["a"] }, false],
  ])("%j against %j: %j", (after, before, isNarrower) => {
    expect(areRightsAtMost(after, before)).toBe(isNarrower);
  });

  it("looks at caps, life and pause too", () => {
    const grant = grantOf({ caps: { callsPerMinute: 5, inFlight: 2, parked: 1, listeners: 1 } });
    expect(isAtMost({ ...grant, pausedAt: 1 }, grant)).toBe(true);
    expect(isAtMost(grant, { ...grant, pausedAt: 1 })).toBe(false);
    expect(isAtMost({ ...grant, caps: { ...grant.caps, callsPerMinute: null } }, grant)).toBe(false);
    expect(isAtMost({ ...grant, expiresAt: grant.expiresAt + 1 }, grant)).toBe(false);
  });
});

describe("a narrower grant", () => {
  it("reaches the object before the record, with the revision the record will have", async () => {
    const relay = await startRelay();
    const { device, id } = await bornDevice(relay);
    const { grant } = await addToken(relay, device);
    let recorded: unknown;
    relay.objects.before = async (method) => {
      if (method === "putGrant") recorded = (await findGrant(env.DB, grant))?.grant.rights;
    };
    const response = await relay.asOwner("PATCH", `/api/tokens/${grant}`, { rights: { tools: ["screenshot"] }, inFlight: 1 });
    expect(response.status).toBe(200);
    expect(recorded).toEqual({});
    const [stored] = await grantsSince(env.DB, id, 0);
    expect(stored).toMatchObject({ rights: { tools: ["screenshot"] }, caps: { inFlight: 1, parked: 4 } });
    const told = relay.objects.notes.filter((note) => note.method === "putGrant");
    expect(told.at(-1)?.argument).toEqual(stored);
  });

  it("is recorded although the object does not confirm, and says so", async () => {
    const relay = await startRelay();
    const { device } = await bornDevice(relay);
    const { grant } = await addToken(relay, device);
    relay.objects.failing.add("putGrant");
    const failed = await relay.asOwner("PATCH", `/api/tokens/${grant}`, { paused: true });
    expect([failed.status, await errorCode(failed)]).toEqual([502, "incomplete"]);
    expect((await findGrant(env.DB, grant))?.grant.pausedAt).toEqual(expect.any(Number));
    relay.objects.failing.clear();
    expect((await relay.asOwner("PATCH", `/api/tokens/${grant}`, { paused: true })).status).toBe(200);
    expect(relay.objects.notes.at(-1)).toMatchObject({ method: "putGrant", argument: { pausedAt: expect.any(Number) } });
  });

  it("is obeyed by the object although D1 does not record it, and says so", async () => {
    const relay = await startRelay();
    const { device } = await bornDevice(relay);
    const { grant } = await addToken(relay, device);
    const broken: D1Database = Object.create(env.DB, {
      prepare: { value: (sql: string) => env.DB.prepare(sql) },
      batch: { value: () => Promise.reject(new Error("D1 is away")) },
    });
    const other = await startRelay({ DB: broken });
    const failed = await other.asOwner("PATCH", `/api/tokens/${grant}`, { rights: { tools: [] } });
    expect([failed.status, await errorCode(failed)]).toEqual([502, "incomplete"]);
    expect(other.objects.notes).toMatchObject([{ method: "putGrant", argument: { id: grant, rights: { tools: [] } } }]);
  });

  it("of a device that never connected is recorded without touching an object", async () => {
    const relay = await startRelay();
    const { device } = await addDevice(relay);
    const { grant } = await addToken(relay, device);
    expect((await relay.asOwner("PATCH", `/api/tokens/${grant}`, { paused: true })).status).toBe(200);
    expect(relay.objects.notes).toEqual([]);
  });
});

describe("a wider grant", () => {
  it("is recorded before the object hears of it", async () => {
    const relay = await startRelay();
    const { device } = await bornDevice(relay);
    const { grant } = await addToken(relay, device, { for: "Ada", tools: ["screenshot"] });
    let recorded: unknown;
    relay.objects.before = async () => {
      recorded = (await findGrant(env.DB, grant))?.grant.rights;
    };
    await relay.asOwner("PATCH", `/api/tokens/${grant}`, { rights: {} });
    expect(recorded).toEqual({});
  });

  it("with a longer life comes with a new token; a label or note alone does not", async () => {
    const relay = await startRelay();
    const { device } = await addDevice(relay);
    const { grant } = await addToken(relay, device, { for: "Ada", expiresMs: 60_000 });
    const longer = await (await relay.asOwner("PATCH", `/api/tokens/${grant}`, { expiresMs: 120_000 })).json<Record<string, unknown>>();
    expect(longer["token"]).toMatch(/^eyJ/);
    const named = await (await relay.asOwner("PATCH", `/api/tokens/${grant}`, { for: "Ada L.", note: "desk 4" })).json();
    expect(named).toMatchObject({ for: "Ada L.", note: "desk 4" });
    expect(named).not.toHaveProperty("token");
  });

  it("cannot be made of a revoked one", async () => {
    const relay = await startRelay();
    const { device } = await addDevice(relay);
    const { grant } = await addToken(relay, device);
    await relay.asOwner("DELETE", `/api/tokens/${grant}`);
    expect((await relay.asOwner("PATCH", `/api/tokens/${grant}`, { paused: false })).status).toBe(409);
  });
});

describe("a member", () => {
  it("lists and revokes only their own grants, sees only devices shared with them, and changes nothing else", async () => {
    const relay = await startRelay();
    const mine = await addDevice(relay);
    const other = await addDevice(relay);
    const { token, memberId } = await memberWithToken("member");
    const own = await addToken(relay, mine.device, { for: "mine", member: memberId });
    const theirs = await addToken(relay, mine.device, { for: "theirs" });
    const as = (method: string, path: string, body?: unknown): Promise<Response> =>
      relay.send(path, {
        method,
        headers: { Authorization: `Bearer ${token}` },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
    const { tokens } = await (await as("GET", "/api/tokens")).json<{ tokens: { grant: string }[] }>();
    expect(tokens.map((row) => row.grant)).toEqual([own.grant]);
    const { devices } = await (await as("GET", "/api/devices")).json<{ devices: { device: string }[] }>();
    expect(devices.map((row) => row.device)).toEqual([mine.device]);
    expect((await as("GET", `/api/devices/${other.device}/status`)).status).toBe(404);
    expect((await as("DELETE", `/api/tokens/${theirs.grant}`)).status).toBe(404);
    for (const [method, path] of [
      ["PATCH", `/api/tokens/${own.grant}`],
      ["POST", `/api/devices/${mine.device}/tokens`],
      ["DELETE", `/api/devices/${mine.device}`],
      ["POST", `/api/devices/${mine.device}/keys`],
      ["POST", "/api/keys/rotate"],
      ["GET", "/api/members"],
      ["DELETE", `/api/members/${memberId}`],
      ["POST", "/api/invitations"],
      ["GET", "/api/owner-tokens"],
      ["POST", "/api/setup-links"],
    ] as const)
      expect([path, (await as(method, path, method === "GET" ? undefined : {})).status]).toEqual([path, 403]);
    expect((await as("DELETE", `/api/tokens/${own.grant}`)).status).toBe(200);
  });
});

describe("a device", () => {
  it("is paused at the object first and resumed in D1 first; either half failing is said", async () => {
    const relay = await startRelay();
    const { device } = await bornDevice(relay);
    relay.objects.failing.add("configure");
    const failed = await relay.asOwner("POST", `/api/devices/${device}/pause`);
    expect([failed.status, await errorCode(failed)]).toEqual([502, "incomplete"]);
    relay.objects.failing.clear();
    expect((await relay.asOwner("POST", `/api/devices/${device}/pause`)).status).toBe(200);
    const state = async (): Promise<string> =>
      (await (await relay.asOwner("GET", `/api/devices/${device}/status`)).json<{ state: string }>()).state;
    expect(await state()).toBe("paused");
    expect((await relay.asOwner("POST", `/api/devices/${device}/resume`)).status).toBe(200);
    expect(relay.objects.notes.filter((note) => note.method === "configure").at(-1)?.argument).toEqual({ pausedAt: null });
    expect(await state()).toBe("online");
  });

  it("keeps its old key until the new one is used, and no key after a revocation, which closes the tunnel", async () => {
    const relay = await startRelay();
    const { device, deviceKey } = await bornDevice(relay);
    const rotated = await (
      await relay.asOwner("POST", `/api/devices/${device}/keys`)
    ).json<{ deviceKey: string; olderKeysUntil: number }>();
    expect(Math.round((rotated.olderKeysUntil - Date.now()) / 3_600_000)).toBe(24);
    expect((await dial(relay, deviceKey)).status).toBe(101);
    expect((await dial(relay, rotated.deviceKey)).status).toBe(101);
    expect((await dial(relay, deviceKey)).status).toBe(401);
    const revoked = await relay.asOwner("DELETE", `/api/devices/${device}/keys`);
    expect(revoked.status).toBe(200);
    expect(relay.objects.notes.at(-1)).toMatchObject({ method: "closeTunnel", argument: "revoked" });
    expect((await dial(relay, rotated.deviceKey)).status).toBe(401);
  });

  it("loses an unused old key after 24 hours", async () => {
    const relay = await startRelay();
    const { device, id, deviceKey } = await bornDevice(relay);
    await relay.asOwner("POST", `/api/devices/${device}/keys`);
    await env.DB.prepare("UPDATE device_keys SET expires_at = ?2 WHERE device_id = ?1 AND expires_at IS NOT NULL")
      .bind(id, Date.now())
      .run();
    expect((await dial(relay, deviceKey)).status).toBe(401);
  });

  it("says when a revoked key's tunnel was not confirmed closed", async () => {
    const relay = await startRelay();
    const { device, deviceKey } = await bornDevice(relay);
    relay.objects.failing.add("closeTunnel");
    const failed = await relay.asOwner("DELETE", `/api/devices/${device}/keys`);
    expect([failed.status, await errorCode(failed)]).toEqual([502, "incomplete"]);
    expect((await dial(relay, deviceKey)).status).toBe(401);
  });
});

describe("signing keys", () => {
  it("rotate with tokens of before still good, or at once with none", async () => {
    const relay = await startRelay();
    const { device } = await addDevice(relay);
    const { token, expiresAt } = await addToken(relay, device);
    const call = async (): Promise<number> =>
      (
        await relay.send(`/mcp/${device}`, {
          method: "POST",
          headers: {
            Authorization: `Bearer ${token}`,
            "Content-Type": "application/json",
            Accept: "application/json, text/event-stream",
            "MCP-Protocol-Version": "2025-06-18",
          },
          body: `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`,
        })
      ).status;
    expect(await call()).toBe(200);
    const { olderVerifyUntil } = await (await relay.asOwner("POST", "/api/keys/rotate", {})).json<{ olderVerifyUntil: number }>();
    expect(olderVerifyUntil).toBeGreaterThanOrEqual(expiresAt);
    expect(await call()).toBe(200);
    expect((await relay.asOwner("POST", "/api/keys/rotate", { overlapMs: 0 })).status).toBe(200);
    // The key that signed is the one before last: it ends too, although it had been given longer.
    expect(await call()).toBe(401);
  });
});
