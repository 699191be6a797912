import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { verifyAccessToken } from "../../src/auth/access-token.ts";
import { forgetSigningKeys } from "../../src/auth/signing-keys.ts";
import { recordPresence } from "../../src/db/devices.ts";
import { grantsSince } from "../../src/db/grants.ts";
import { API } from "../../src/limits.ts";
import { altered } from "../support/altered.ts";
import { addDevice, addToken, dial, errorCode, freshName, startRelay, tokenFor } from "./api-support.ts";

describe("the owner's door", () => {
  it("refuses a missing, malformed, unknown and query-string token with 401", async () => {
    const relay = await startRelay();
    const token = await tokenFor("owner");
    const unknown = altered(token);
    for (const headers of [
      {},
      { Authorization: "Bearer x" },
      { Authorization: `Basic ${token}` },
      { Authorization: `Bearer ${unknown}` },
    ]) {
      const response = await relay.send(`/api/devices?access_token=${token}`, { headers });
      expect(response.status).toBe(401);
      expect(response.headers.get("www-authenticate")).toBe("Bearer");
      expect(await errorCode(response)).toBe("not_authorised");
    }
  });

  it("refuses a member with 403, and a revoked owner token with 401", async () => {
    const relay = await startRelay();
    const member = await relay.send("/api/devices", {
      method: "POST",
      headers: { Authorization: `Bearer ${await tokenFor("member")}` },
      body: JSON.stringify({ name: freshName() }),
    });
    expect(member.status).toBe(403);
    await env.DB.prepare("UPDATE owner_tokens SET revoked_at = 1").run();
    expect((await relay.asOwner("GET", "/api/devices")).status).toBe(401);
  });

  it("refuses a body over the limit before it is parsed, with and without a declared length", async () => {
    const relay = await startRelay();
    const atLimit = JSON.stringify({ name: "" }).padEnd(API.maxBodyBytes, " ");
    expect((await relay.asOwner("POST", "/api/devices", atLimit)).status).toBe(400);
    expect((await relay.asOwner("POST", "/api/devices", `${atLimit} `)).status).toBe(413);
    const chunks = new ReadableStream({
      pull(controller) {
        controller.enqueue(new Uint8Array(API.maxBodyBytes));
      },
    });
    const token = await tokenFor("owner");
    const chunked = await relay.send("/api/devices", { method: "POST", headers: { Authorization: `Bearer ${token}` }, body: chunks });
    expect(chunked.status).toBe(413);
    expect(await errorCode(chunked)).toBe("too_large");
  });
});

describe("devices", () => {
  it("adds one and lists it as never connected", async () => {
    const relay = await startRelay();
    const name = freshName();
    const added = await relay.asOwner("POST", "/api/devices", { name });
    expect(added.status).toBe(201);
    const { id, deviceKey, ...rest } = await added.json<Record<string, string>>();
    expect(rest).toEqual({ device: name, mcpUrl: `https://relay.test/mcp/${name}` });
    expect(deviceKey).toMatch(new RegExp(`^llk_${id}_[A-Za-z0-9_-]{43}$`));

    const { devices } = await (await relay.asOwner("GET", "/api/devices")).json<{ devices: { device: string }[] }>();
    expect(devices.find((d) => d.device === name)).toEqual({
      device: name,
      id,
      state: "never",
      lastSeenAt: null,
      createdAt: expect.any(Number),
      mcpUrl: `https://relay.test/mcp/${name}`,
      agentVersion: null,
    });
  });

  it("keeps no device key, only its hash", async () => {
    const relay = await startRelay();
    const { deviceKey } = await addDevice(relay);
    const { results } = await env.DB.prepare("SELECT * FROM device_keys").all();
    expect(JSON.stringify(results)).not.toContain(deviceKey.slice(-43));
  });

  it("refuses a taken name with 409 and leaves the first device's key alone", async () => {
    const relay = await startRelay();
    const first = await addDevice(relay);
    const second = await relay.asOwner("POST", "/api/devices", { name: first.device });
    expect(second.status).toBe(409);
    expect(await errorCode(second)).toBe("conflict");
    expect((await dial(relay, first.deviceKey)).status).toBe(101);
  });

  it.each(["", "-a", "a-", "A", "a_b", "a.b", "é", "a".repeat(64), 7, null])("refuses the name %j and says where", async (name) => {
    const relay = await startRelay();
    const response = await relay.asOwner("POST", "/api/devices", { name });
    expect(response.status).toBe(400);
    const { error } = await response.json<{ error: { message: string } }>();
    expect(error.message).toMatch(/^name: /);
  });

  it.each(["a", "0", "a-b", "a".repeat(63)])("takes the name %j", async (name) => {
    const relay = await startRelay();
    expect((await relay.asOwner("POST", "/api/devices", { name })).status).toBe(201);
  });

  it("refuses an unknown member and a body that is no JSON", async () => {
    const relay = await startRelay();
    expect((await relay.asOwner("POST", "/api/devices", { name: freshName(), id: "chosen" })).status).toBe(400);
    const broken = await relay.asOwner("POST", "/api/devices", "{secret");
    expect(broken.status).toBe(400);
    expect(await broken.text()).not.toContain("secret");
  });

  it("removes one: keys first, then tunnel and storage, then the name is free for another object", async () => {
    const relay = await startRelay();
    const first = await addDevice(relay);
    await dial(relay, first.deviceKey);
    relay.objects.before = async (method) => {
      if (method === "closeTunnel") expect((await dial(relay, first.deviceKey)).status).toBe(401);
    };
    const removed = await relay.asOwner("DELETE", `/api/devices/${first.device}`);
    expect(removed.status).toBe(200);
    expect(relay.objects.methods()).toEqual(["fetch", "closeTunnel", "destroy"]);
    expect((await relay.asOwner("GET", `/api/devices/${first.device}/status`)).status).toBe(404);
    const second = await addDevice(relay, first.device);
    expect(second.id).not.toBe(first.id);
  });

  it("keeps listing a device whose object did not confirm its end, and finishes on the second try", async () => {
    const relay = await startRelay();
    const { device, deviceKey } = await addDevice(relay);
    await dial(relay, deviceKey);
    relay.objects.failing.add("destroy");
    const failed = await relay.asOwner("DELETE", `/api/devices/${device}`);
    expect(failed.status).toBe(502);
    expect(await errorCode(failed)).toBe("incomplete");
    const status = await (await relay.asOwner("GET", `/api/devices/${device}/status`)).json<{ state: string }>();
    expect(status.state).toBe("revoked");
    relay.objects.failing.clear();
    expect((await relay.asOwner("DELETE", `/api/devices/${device}`)).status).toBe(200);
  });

  it("never touches an object of a device that was never born", async () => {
    const relay = await startRelay();
    const { device, id } = await addDevice(relay);
    const { grant } = await addToken(relay, device);
    await relay.asOwner("GET", `/api/devices/${device}/status`);
    await relay.asOwner("GET", "/api/status");
    await relay.asOwner("DELETE", `/api/tokens/${grant}`);
    await relay.asOwner("DELETE", `/api/devices/${device}`);
    expect(relay.objects.notes.filter((note) => note.id === id)).toEqual([]);
  });
});

describe("status", () => {
  it("of a device that never connected comes from the registry", async () => {
    const relay = await startRelay();
    const { device } = await addDevice(relay);
    const response = await relay.asOwner("GET", `/api/devices/${device}/status`);
    expect(await response.json()).toEqual({
      device,
      state: "never",
      generation: 0,
      agentVersion: null,
      lastSeenAt: null,
      upstreams: [],
      lastCallAt: null,
      sessions: 0,
      inFlight: 0,
      rivalAt: null,
      settings: { headerOnlyModern: false, initializedModern: false, sessionExpiry: "sleep" },
    });
  });

  it("of a born device comes from its object, in exactly the public shape", async () => {
    const relay = await startRelay();
    const { device, deviceKey } = await addDevice(relay);
    await dial(relay, deviceKey);
    const expected = {
      device,
      state: "online",
      generation: 3,
      agentVersion: "0.1.0",
      lastSeenAt: 1_700_000_000_000,
      upstreams: [{ alias: "main", state: "ready", era: "modern", lastRoundTripMs: 12, lastRoundTripAt: 1_700_000_000_000, problem: null }],
      lastCallAt: 1_700_000_000_001,
      sessions: 2,
      inFlight: 1,
      rivalAt: null,
      settings: { headerOnlyModern: false, initializedModern: false, sessionExpiry: "sleep" },
    };
    expect(await (await relay.asOwner("GET", `/api/devices/${device}/status`)).json()).toEqual(expected);
    const all = await (await relay.asOwner("GET", "/api/status")).json<{ device: string }[]>();
    expect(all.find((s) => s.device === device)).toEqual(expected);
  });

  it("falls back to the recorded presence when the object does not answer", async () => {
    const relay = await startRelay();
    const { device, id, deviceKey } = await addDevice(relay);
    await dial(relay, deviceKey);
    await recordPresence(env.DB, id, { generation: 5, online: false, lastSeenAt: 77, agentVersion: "0.0.9" });
    relay.objects.failing.add("status");
    const status = await (await relay.asOwner("GET", `/api/devices/${device}/status`)).json();
    expect(status).toMatchObject({ state: "offline", generation: 5, lastSeenAt: 77, agentVersion: "0.0.9", upstreams: [] });
  });

  it("of an unknown device is 404", async () => {
    const relay = await startRelay();
    const response = await relay.asOwner("GET", "/api/devices/nobody/status");
    expect(response.status).toBe(404);
    expect(await errorCode(response)).toBe("not_found");
  });
});

describe("tokens", () => {
  it("creates one that names its grant and device, and lists what it may do", async () => {
    const relay = await startRelay();
    const { device, id } = await addDevice(relay);
    const before = Date.now();
    const made = await addToken(relay, device, {
      for: "Ada",
      tools: ["screenshot", "!shell"],
      expiresMs: 90_000,
      callsPerMinute: 30,
      inFlight: 2,
    });
    expect(Object.keys(made).sort()).toEqual(["expiresAt", "grant", "mcpUrl", "token"]);
    expect(made.mcpUrl).toBe(`https://relay.test/mcp/${device}`);
    expect(made.expiresAt).toBeGreaterThanOrEqual(before + 90_000);
    expect(await verifyAccessToken(env, made.token)).toMatchObject({
      iss: "https://relay.test",
      aud: made.mcpUrl,
      device: id,
      grant: made.grant,
      exp: made.expiresAt / 1000,
    });

    const { tokens } = await (await relay.asOwner("GET", `/api/tokens?device=${device}`)).json<{ tokens: unknown[] }>();
    expect(tokens).toEqual([
      {
        grant: made.grant,
        device,
        for: "Ada",
        kind: "token",
        client: null,
        member: expect.any(String),
        memberName: "owner",
        createdAt: expect.any(Number),
        expiresAt: made.expiresAt,
        state: "active",
        rights: { tools: ["screenshot", "!shell"] },
        caps: { callsPerMinute: 30, inFlight: 2, parked: 4, listeners: 16 },
        note: null,
      },
    ]);
    expect(JSON.stringify(tokens)).not.toContain(made.token);
  });

  it("makes a full grant with the default caps and life when nothing is said", async () => {
    const relay = await startRelay();
    const { device, id } = await addDevice(relay);
    const { grant, expiresAt } = await addToken(relay, device);
    const [stored] = await grantsSince(env.DB, id, 0);
    expect(stored).toMatchObject({ id: grant, rights: {}, caps: { callsPerMinute: null, inFlight: 8, parked: 4, listeners: 16 } });
    expect(Math.round((expiresAt - Date.now()) / 86_400_000)).toBe(90);
  });

  it.each([
    [{}, "for"],
    [{ for: " " }, "for"],
    [{ for: "a".repeat(101) }, "for"],
    [{ for: "a", tools: "screenshot" }, "tools"],
    [{ for: "a", tools: ["!"] }, "tools.0"],
    [{ for: "a", expiresMs: 0 }, "expiresMs"],
    [{ for: "a", expiresMs: API.maxExpiresMs + 1 }, "expiresMs"],
    [{ for: "a", inFlight: 65 }, "inFlight"],
    [{ for: "a", callsPerMinute: -1 }, "callsPerMinute"],
    [[], "body"],
  ])("refuses %j and names the path", async (body, path) => {
    const relay = await startRelay();
    const { device } = await addDevice(relay);
    const response = await relay.asOwner("POST", `/api/devices/${device}/tokens`, body);
    expect(response.status).toBe(400);
    const { error } = await response.json<{ error: { message: string } }>();
    expect(error.message).toContain(`${path}: `);
  });

  it("widens in D1 first, then at the object", async () => {
    const relay = await startRelay();
    const { device, id, deviceKey } = await addDevice(relay);
    await dial(relay, deviceKey);
    let recorded: unknown[] = [];
    relay.objects.before = async (method) => {
      if (method === "putGrant") recorded = await grantsSince(env.DB, id, 0);
    };
    const { grant } = await addToken(relay, device);
    expect(recorded).toMatchObject([{ id: grant, revokedAt: null }]);
    expect(relay.objects.notes.at(-1)).toMatchObject({ id, method: "putGrant", argument: { id: grant, revokedAt: null } });
  });

  it("makes no token when the object does not take the grant, and takes the record back", async () => {
    const relay = await startRelay();
    const { device, id, deviceKey } = await addDevice(relay);
    await dial(relay, deviceKey);
    relay.objects.failing.add("putGrant");
    const response = await relay.asOwner("POST", `/api/devices/${device}/tokens`, { for: "Ada" });
    expect(response.status).toBe(502);
    const text = await response.text();
    expect(text).toContain("incomplete");
    expect(text).not.toContain("eyJ");
    expect(await grantsSince(env.DB, id, 0)).toMatchObject([{ revokedAt: expect.any(Number) }]);
  });

  it("leaves no grant behind when the relay cannot sign, and says what to do", async () => {
    const relay = await startRelay();
    const { device, id } = await addDevice(relay);
    await addToken(relay, device);
    forgetSigningKeys();
    const other = await startRelay({ LONGLINE_ROOT_KEY: "B".repeat(42) + "A" });
    const response = await other.asOwner("POST", `/api/devices/${device}/tokens`, { for: "Ada" });
    expect(response.status).toBe(500);
    expect(await response.text()).toContain("LONGLINE_ROOT_KEY");
    expect(await grantsSince(env.DB, id, 0)).toHaveLength(1);
  });

  it("revokes at the object first, then in D1", async () => {
    const relay = await startRelay();
    const { device, id, deviceKey } = await addDevice(relay);
    await dial(relay, deviceKey);
    const { grant } = await addToken(relay, device);
    const [before] = await grantsSince(env.DB, id, 0);
    let recorded: unknown[] = [];
    relay.objects.before = async (method) => {
      if (method === "putGrant") recorded = await grantsSince(env.DB, id, 0);
    };
    const response = await relay.asOwner("DELETE", `/api/tokens/${grant}`);
    expect(response.status).toBe(200);
    expect(recorded).toMatchObject([{ id: grant, revokedAt: null }]);
    expect(relay.objects.notes.at(-1)).toMatchObject({ id, method: "putGrant", argument: { id: grant, revokedAt: expect.any(Number) } });
    const changed = await grantsSince(env.DB, id, before?.revision ?? 0);
    expect(changed).toMatchObject([{ id: grant, revokedAt: expect.any(Number) }]);
    const { tokens } = await (await relay.asOwner("GET", `/api/tokens?device=${device}`)).json<{ tokens: { state: string }[] }>();
    expect(tokens.map((t) => t.state)).toEqual(["revoked"]);
  });

  it("says incomplete when the object did not confirm, records the revocation all the same, and can be repeated", async () => {
    const relay = await startRelay();
    const { device, id, deviceKey } = await addDevice(relay);
    await dial(relay, deviceKey);
    const { grant } = await addToken(relay, device);
    relay.objects.failing.add("putGrant");
    const failed = await relay.asOwner("DELETE", `/api/tokens/${grant}`);
    expect(failed.status).toBe(502);
    expect(await errorCode(failed)).toBe("incomplete");
    const [first] = await grantsSince(env.DB, id, 0);
    expect(first?.revokedAt).toEqual(expect.any(Number));
    relay.objects.failing.clear();
    expect((await relay.asOwner("DELETE", `/api/tokens/${grant}`)).status).toBe(200);
    expect(relay.objects.notes.at(-1)).toMatchObject({ method: "putGrant", argument: { revokedAt: first?.revokedAt } });
  });

  it("tells an object that was born while the revocation was recorded", async () => {
    const relay = await startRelay();
    const { device, deviceKey } = await addDevice(relay);
    const { grant } = await addToken(relay, device);
    const db = env.DB;
    // The agent dials in right before the revocation is written.
    const racing: D1Database = Object.create(db, {
      prepare: { value: (sql: string) => db.prepare(sql) },
      batch: {
        value: async (statements: D1PreparedStatement[]) => {
          await dial(relay, deviceKey);
          return db.batch(statements);
        },
      },
    });
    const other = await startRelay({ DB: racing });
    expect((await other.asOwner("DELETE", `/api/tokens/${grant}`)).status).toBe(200);
    expect(other.objects.notes).toMatchObject([{ method: "putGrant", argument: { id: grant, revokedAt: expect.any(Number) } }]);
  });

  it("answers 404 for an unknown grant and an unknown device", async () => {
    const relay = await startRelay();
    expect((await relay.asOwner("DELETE", "/api/tokens/nothing")).status).toBe(404);
    expect((await relay.asOwner("GET", "/api/tokens?device=nobody")).status).toBe(404);
    expect((await relay.asOwner("POST", "/api/devices/nobody/tokens", { for: "a" })).status).toBe(404);
  });
});
