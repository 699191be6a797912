import { createExecutionContext } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { Hono } from "hono";
import { exportJWK, generateKeyPair, importJWK, type JWTPayload, SignJWT } from "jose";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { mintAccessToken, verifyAccessToken } from "../../src/auth/access-token.ts";
import { authenticate, insufficientScope } from "../../src/auth/authenticate.ts";
import { deviceStub, forgetDevice } from "../../src/auth/device-stub.ts";
import { hostAndOrigin } from "../../src/auth/host-origin.ts";
import { seal, unseal } from "../../src/auth/sealing.ts";
import { randomId } from "../../src/auth/secrets.ts";
import { forgetSigningKeys, rotateSigningKey, signingKey } from "../../src/auth/signing-keys.ts";
import { findDevice, insertDevice, markBorn, removeDevice } from "../../src/db/devices.ts";
import type { AppEnv, Env } from "../../src/env.ts";
import { EDGE } from "../../src/limits.ts";

const HOUR_S = 3600;
const ROOT_KEY = env.LONGLINE_ROOT_KEY;

/** `/mcp/:device` reduced to its door: 200 with who came in, or the door's own refusal. */
const door = new Hono<AppEnv>();
door.use("*", hostAndOrigin);
door.all("/mcp/:device", async (c) => {
  const who = await authenticate(c);
  return who.ok ? c.json(who) : who.response;
});
door.get("/beyond/:device", (c) => insufficientScope(c, ["device:read", "device:call", 'tool:a "b\\ é'], { id: 7 }));

function knock(url: string, token?: string, bindings: Env = env): Promise<Response> {
  const headers: Record<string, string> = token === undefined ? {} : { Authorization: `Bearer ${token}` };
  return Promise.resolve(door.fetch(new Request(url, { method: "POST", headers }), bindings, createExecutionContext()));
}

const DEVICE = { deviceId: "0123", deviceName: "pi", grant: "g1", member: "m1" };
const URL_OF_PI = "https://relay.test/mcp/pi";

function validToken(expiresAt = Date.now() + HOUR_S * 1000): Promise<string> {
  return mintAccessToken(env, { ...DEVICE, expiresAt });
}

interface Forgery {
  header?: Record<string, unknown>;
  claims?: Record<string, unknown>;
}

/** A token signed with the relay's own key, with members replaced. */
async function signed({ header = {}, claims = {} }: Forgery): Promise<string> {
  const { kid, key } = await signingKey(env);
  const now = Math.floor(Date.now() / 1000);
  const payload = {
    iss: "https://relay.test",
    aud: URL_OF_PI,
    sub: "m1",
    device: "0123",
    grant: "g1",
    jti: "j",
    iat: now,
    exp: now + HOUR_S,
  };
  const full = Object.fromEntries(Object.entries({ ...payload, ...claims }).filter(([, value]) => value !== undefined));
  return new SignJWT(full).setProtectedHeader({ alg: "EdDSA", typ: "longline+jwt", kid, ...header }).sign(key);
}

function encoded(value: object): string {
  return btoa(JSON.stringify(value)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

describe("a valid token", () => {
  it("opens its device on every listed origin and on the loopback names of one", async () => {
    const token = await validToken();
    for (const origin of ["https://relay.test", "http://localhost:8787", "http://127.0.0.1:8787", "http://[::1]:8787"]) {
      const response = await knock(`${origin}/mcp/pi`, token);
      expect(response.status).toBe(200);
      expect(await response.json()).toEqual({ ok: true, grant: "g1", member: "m1", deviceId: "0123" });
    }
  });

  it("names this relay, its device and an id of its own, and no rights", async () => {
    const [first, second] = await Promise.all([validToken(), validToken()]);
    const claims = await verifyAccessToken(env, first);
    expect(claims).toMatchObject({ iss: "https://relay.test", aud: URL_OF_PI, sub: "m1", device: "0123", grant: "g1" });
    expect((await verifyAccessToken(env, second))?.jti).not.toBe(claims?.jti);
    const [header = ""] = first.split(".");
    expect(JSON.parse(atob(header))).toEqual({ alg: "EdDSA", typ: "longline+jwt", kid: expect.any(String) });
  });

  it("is accepted under any capitalisation of the scheme, and only from the header", async () => {
    const token = await validToken();
    const lower = await door.fetch(
      new Request(URL_OF_PI, { headers: { Authorization: `bearer ${token}` } }),
      env,
      createExecutionContext(),
    );
    expect(lower.status).toBe(200);
    expect((await knock(`${URL_OF_PI}?access_token=${token}`)).status).toBe(401);
  });

  it("needs no storage once the isolate knows its key", async () => {
    const token = await validToken();
    await knock(URL_OF_PI, token);
    const unreadable = new Proxy(env.DB, {
      get: () => {
        throw new Error("D1 was read");
      },
    });
    const fresh = await validToken();
    for (const known of [token, fresh]) expect((await knock(URL_OF_PI, known, { ...env, DB: unreadable })).status).toBe(200);
  });

  it("stops at its expiry, also when it was verified before", async () => {
    const token = await validToken(Date.now() + HOUR_S * 1000);
    expect((await knock(URL_OF_PI, token)).status).toBe(200);
    vi.useFakeTimers({ now: Date.now() + HOUR_S * 1000 + 1000, toFake: ["Date"] });
    try {
      expect((await knock(URL_OF_PI, token)).status).toBe(401);
    } finally {
      vi.useRealTimers();
    }
  });
});

describe("a forged or foreign token", () => {
  const forgeries: Record<string, () => Promise<string>> = {
    "no token at all": async () => "",
    "text that is no JWT": async () => "abc.def.ghi",
    "alg none": async () => {
      const [, payload = ""] = (await validToken()).split(".");
      return `${encoded({ alg: "none", typ: "longline+jwt", kid: (await signingKey(env)).kid })}.${payload}.`;
    },
    "HS256 with the public key as the secret": async () => {
      const { kid } = await signingKey(env);
      const row = await env.DB.prepare("SELECT public_jwk FROM signing_keys WHERE kid = ?").bind(kid).first<{ public_jwk: string }>();
      const secret = new TextEncoder().encode(row?.public_jwk);
      const [, payload = ""] = (await validToken()).split(".");
      const claims: JWTPayload = JSON.parse(atob(payload.replaceAll("-", "+").replaceAll("_", "/")));
      return new SignJWT(claims).setProtectedHeader({ alg: "HS256", typ: "longline+jwt", kid }).sign(secret);
    },
    "another key under our key id": async () => {
      const { kid } = await signingKey(env);
      const { privateKey } = await generateKeyPair("EdDSA");
      const [, payload = ""] = (await validToken()).split(".");
      const claims: JWTPayload = JSON.parse(atob(payload.replaceAll("-", "+").replaceAll("_", "/")));
      return new SignJWT(claims).setProtectedHeader({ alg: "EdDSA", typ: "longline+jwt", kid }).sign(privateKey);
    },
    "an unknown key id": () => signed({ header: { kid: "nobody" } }),
    "no key id": () => signed({ header: { kid: undefined } }),
    "an embedded key": async () => {
      const { publicKey, privateKey } = await generateKeyPair("EdDSA", { extractable: true });
      const header = { alg: "EdDSA", typ: "longline+jwt", jwk: await exportJWK(publicKey) };
      return new SignJWT({ aud: URL_OF_PI }).setProtectedHeader(header).sign(privateKey);
    },
    "another type": () => signed({ header: { typ: "JWT" } }),
    "no type": () => signed({ header: { typ: undefined } }),
    "another device's audience": () => signed({ claims: { aud: "https://relay.test/mcp/other" } }),
    "a foreign relay's audience": () => signed({ claims: { aud: "https://elsewhere.test/mcp/pi" } }),
    "an audience that is longer than the URL": () => signed({ claims: { aud: `${URL_OF_PI}/more` } }),
    "a list of audiences": () => signed({ claims: { aud: [URL_OF_PI] } }),
    "no audience": () => signed({ claims: { aud: undefined } }),
    "another issuer": () => signed({ claims: { iss: "https://elsewhere.test" } }),
    "no issuer": () => signed({ claims: { iss: undefined } }),
    expired: () => signed({ claims: { exp: Math.floor(Date.now() / 1000) - 1 } }),
    "without an end": () => signed({ claims: { exp: undefined } }),
    "not valid yet": () => signed({ claims: { nbf: Math.floor(Date.now() / 1000) + HOUR_S } }),
    "no grant": () => signed({ claims: { grant: undefined } }),
    "no device": () => signed({ claims: { device: undefined } }),
    oversized: () => signed({ claims: { padding: "x".repeat(EDGE.maxTokenLength) } }),
    "two credentials": async () => `${await validToken()}, Bearer ${await validToken()}`,
    "a changed payload": async () => {
      const [header, , signature] = (await validToken()).split(".");
      return `${header}.${encoded({ iss: "https://relay.test", aud: URL_OF_PI, grant: "g2" })}.${signature}`;
    },
  };

  it.each(Object.keys(forgeries))("%s is 401", async (name) => {
    const token = await forgeries[name]?.();
    const response = await knock(URL_OF_PI, token);
    expect(response.status).toBe(401);
    expect(response.headers.get("www-authenticate")).toContain('error="invalid_token"');
  });

  it("is refused although its unchanged twin is accepted", async () => {
    expect((await knock(URL_OF_PI, await signed({}))).status).toBe(200);
  });
});

describe("the challenge", () => {
  it("names the metadata of the URL that was asked for, on the origin that was asked", async () => {
    const response = await knock("http://127.0.0.1:8787/mcp/pi");
    expect(response.headers.get("www-authenticate")).toBe(
      'Bearer resource_metadata="http://127.0.0.1:8787/.well-known/oauth-protected-resource/mcp/pi", scope="device:read"',
    );
  });

  it("is the same for a device that exists and one that does not, for every cause", async () => {
    const id = randomId();
    await insertDevice(env.DB, { id, name: "known", keyHash: randomId(), createdAt: 1 });
    const token = await mintAccessToken(env, { ...DEVICE, deviceId: id, deviceName: "pi", expiresAt: Date.now() + HOUR_S * 1000 });
    for (const credential of [undefined, "rubbish", token]) {
      const [known, unknown] = await Promise.all(["known", "unknown"].map((name) => knock(`https://relay.test/mcp/${name}`, credential)));
      if (known === undefined || unknown === undefined) throw new Error("no answer");
      expect([known.status, unknown.status]).toEqual([401, 401]);
      expect(await known.text()).toBe(await unknown.text());
      const challenges = [known, unknown].map((r) => r.headers.get("www-authenticate"));
      expect(challenges[0]?.replace("/known", "/unknown")).toBe(challenges[1]);
      const names = [known, unknown].map((r) => [...r.headers.keys()]);
      expect(names[0]).toEqual(names[1]);
    }
  });

  it("has one body whether a token was given or not", async () => {
    const bodies = await Promise.all([undefined, "rubbish"].map(async (token) => (await knock(URL_OF_PI, token)).text()));
    expect(bodies[0]).toBe(bodies[1]);
  });

  it("cannot be broken out of by a path", async () => {
    const response = await knock('https://relay.test/mcp/a%22%0d%0ax"', "rubbish");
    expect(response.status).toBe(401);
    expect(response.headers.get("www-authenticate")).toContain('/mcp/a%22%0D%0Ax%22", scope=');
  });

  it("of a call beyond the grant names all scopes in legal characters", async () => {
    const response = await door.fetch(new Request("https://relay.test/beyond/pi"), env, createExecutionContext());
    expect(response.status).toBe(403);
    expect(await response.json()).toEqual({ id: 7 });
    expect(response.headers.get("www-authenticate")).toBe(
      'Bearer error="insufficient_scope", scope="device:read device:call tool:a%20%22b%5C%20%C3%A9", ' +
        'resource_metadata="https://relay.test/.well-known/oauth-protected-resource/mcp/pi"',
    );
  });
});

describe("signing keys", () => {
  beforeEach(() => forgetSigningKeys());

  it("are made once, however many ask first", async () => {
    await env.DB.prepare("DELETE FROM signing_keys").run();
    const keys = await Promise.all(
      [1, 2, 3].map(async () => {
        forgetSigningKeys();
        return (await signingKey(env)).kid;
      }),
    );
    expect(new Set(keys).size).toBe(1);
    expect((await env.DB.prepare("SELECT kid FROM signing_keys").all()).results).toHaveLength(1);
  });

  it("lie in D1 without their private half in the clear", async () => {
    const { kid } = await signingKey(env);
    const row = await env.DB.prepare("SELECT * FROM signing_keys WHERE kid = ?").bind(kid).first<Record<string, string>>();
    expect(JSON.parse(row?.["public_jwk"] ?? "")).not.toHaveProperty("d");
    const opened: { d: string } = JSON.parse(await unseal(ROOT_KEY, "signing-key", kid, row?.["sealed_private"] ?? ""));
    expect(JSON.stringify(row)).not.toContain(opened.d);
    expect(await importJWK(opened, "EdDSA")).toBeDefined();
  });

  it("open neither with another root key nor in another row", async () => {
    const sealed = await seal(ROOT_KEY, "signing-key", "a", "text");
    expect(await unseal(ROOT_KEY, "signing-key", "a", sealed)).toBe("text");
    await expect(unseal(ROOT_KEY, "signing-key", "b", sealed)).rejects.toThrow();
    await expect(unseal("B".repeat(42) + "A", "signing-key", "a", sealed)).rejects.toThrow();
  });

  it("rotate without ending the tokens of the key before, until its overlap is over", async () => {
    const old = await validToken();
    const { kid } = await rotateSigningKey(env, HOUR_S * 1000);
    expect((await signingKey(env)).kid).toBe(kid);
    expect((await knock(URL_OF_PI, old)).status).toBe(200);
    expect((await knock(URL_OF_PI, await validToken())).status).toBe(200);
    await env.DB.prepare("UPDATE signing_keys SET retired_at = 1 WHERE kid <> ?").bind(kid).run();
    forgetSigningKeys();
    expect((await knock(URL_OF_PI, old)).status).toBe(401);
    expect((await knock(URL_OF_PI, await validToken())).status).toBe(200);
  });

  it("are read again for an unknown key id, but not for each of a flood", async () => {
    await knock(URL_OF_PI, await validToken());
    let reads = 0;
    const counting: D1Database = Object.create(env.DB, {
      prepare: {
        value: (sql: string) => {
          reads++;
          return env.DB.prepare(sql);
        },
      },
    });
    const bindings = { ...env, DB: counting };
    vi.useFakeTimers({ now: Date.now() + EDGE.unknownKeyMs, toFake: ["Date"] });
    try {
      for (let i = 0; i < 20; i++) await knock(URL_OF_PI, await signed({ header: { kid: `unknown-${i}` } }), bindings);
    } finally {
      vi.useRealTimers();
    }
    expect(reads).toBe(1);
  });
});

describe("the way to an object", () => {
  const never: Env["TUNNEL"] = {
    getByName: () => {
      throw new Error("an object was touched");
    },
    jurisdiction: () => never,
  };

  it("is closed for a device that was never born or is unknown", async () => {
    const id = randomId();
    await insertDevice(env.DB, { id, name: id, keyHash: randomId(), createdAt: 1 });
    const bindings = { ...env, TUNNEL: never };
    expect(await deviceStub(bindings, id)).toMatchObject({ born: false, device: { id } });
    expect(await deviceStub(bindings, "unknown")).toBeNull();
  });

  it("reads D1 only the first time, and again after the device was removed here", async () => {
    const id = randomId();
    await insertDevice(env.DB, { id, name: id, keyHash: randomId(), createdAt: 1 });
    await markBorn(env.DB, id, 2);
    let prepared = 0;
    const counting: D1Database = Object.create(env.DB, {
      prepare: {
        value: (sql: string) => {
          prepared++;
          return env.DB.prepare(sql);
        },
      },
    });
    const bindings = { ...env, DB: counting };
    for (let i = 0; i < 3; i++) expect(await deviceStub(bindings, id)).toMatchObject({ born: true });
    expect(prepared).toBe(1);
    await removeDevice(env.DB, id, 3);
    forgetDevice(id);
    expect(await deviceStub(bindings, id)).toBeNull();
    expect(await findDevice(env.DB, id)).toBeNull();
  });
});
