import { env } from "cloudflare:workers";
import { describe, expect, it, vi } from "vitest";
import { LAYERS } from "../../src/app.ts";
import { findDevice } from "../../src/db/devices.ts";
import { VERSION } from "../../src/version.ts";
import { addDevice, addToken, dial, errorCode, startRelay } from "./api-support.ts";

async function logOf(work: () => Promise<unknown>): Promise<Record<string, unknown>[]> {
  const spy = vi.spyOn(console, "log").mockImplementation(() => {});
  try {
    await work();
    return spy.mock.calls.map(([line]): Record<string, unknown> => JSON.parse(String(line)));
  } finally {
    spy.mockRestore();
  }
}

describe("the layers", () => {
  it("stand in this order", () => {
    expect(LAYERS.map(([name]) => name)).toEqual([
      "request id",
      "log",
      "rest of the body",
      "security headers",
      "known origins",
      "host and origin",
    ]);
  });

  it("all apply to what the innermost refuses", async () => {
    const relay = await startRelay({ LONGLINE_RUNTIME: "cloudflare" });
    let response: Response | undefined;
    const lines = await logOf(async () => {
      response = await relay.send("https://elsewhere.test/health?secret=1", { headers: { "X-Request-Id": "chosen" } });
    });
    expect(response?.status).toBe(421);
    expect(response?.headers.get("x-content-type-options")).toBe("nosniff");
    const id = response?.headers.get("x-request-id");
    expect(id).toMatch(/^[0-9a-f-]{36}$/);
    expect(lines).toMatchObject([{ event: "request", id, method: "GET", path: "/health", status: 421 }]);
    expect(JSON.stringify(lines)).not.toContain("secret");
  });

  it("keep the embedded relay's log for failures", async () => {
    const relay = await startRelay();
    expect(await logOf(() => relay.send("/nothing"))).toEqual([]);
  });

  it("answer an unknown path with JSON and safe headers", async () => {
    const relay = await startRelay();
    const response = await relay.send("/nothing");
    expect(response.status).toBe(404);
    expect(await errorCode(response)).toBe("not_found");
    expect(response.headers.get("content-security-policy")).toBe("default-src 'none'; frame-ancestors 'none'");
    expect(response.headers.get("cache-control")).toBe("no-store");
    expect(response.headers.get("strict-transport-security")).toContain("max-age=");
    expect((await relay.send("http://localhost:8787/nothing")).headers.has("strict-transport-security")).toBe(false);
  });

  it("turn an unknown error into one constant answer with the request's id, and keep the detail for the log", async () => {
    const broken = new Proxy(env.DB, {
      get: () => {
        throw new Error("reason llk_0123_abcdef of a failure");
      },
    });
    const relay = await startRelay({ DB: broken });
    let response: Response | undefined;
    const lines = await logOf(async () => {
      response = await relay.asOwner("GET", "/api/devices");
    });
    expect(response?.status).toBe(500);
    const id = response?.headers.get("x-request-id");
    const body = await response?.text();
    expect(body).toContain(`"requestId":"${id}"`);
    expect(body).not.toContain("reason");
    const failed = lines.find((line) => line["event"] === "request.failed");
    expect(failed).toMatchObject({ id, error: { message: "reason [redacted] of a failure" } });
  });
});

describe("host and origin", () => {
  it.each(["https://relay.test", "http://localhost:8787", "http://127.0.0.1:8787", "http://[::1]:8787", "http://relay.test"])(
    "%s is served",
    async (origin) => {
      const relay = await startRelay();
      expect((await relay.send(`${origin}/health`)).status).toBe(200);
    },
  );

  it.each([
    "https://elsewhere.test",
    "https://relay.test:8443",
    "http://localhost",
    "http://localhost:8788",
    "https://relay.test.evil.test",
  ])("%s is 421", async (origin) => {
    const relay = await startRelay();
    const response = await relay.send(`${origin}/health`);
    expect(response.status).toBe(421);
    expect(await errorCode(response)).toBe("misdirected");
  });

  it.each([
    "https://elsewhere.test",
    "null",
    "https://relay.test.evil.test",
    "http://relay.test",
    "https://relay.test:8443",
    "http://localhost:9",
  ])("a page of %s is refused, its preflight too", async (origin) => {
    const relay = await startRelay();
    for (const method of ["GET", "OPTIONS"]) {
      const response = await relay.send("/health", { method, headers: { Origin: origin } });
      expect(response.status).toBe(403);
      expect(response.headers.has("access-control-allow-origin")).toBe(false);
    }
  });

  it("a page of the relay reads answers and errors, with the headers it needs exposed", async () => {
    const relay = await startRelay();
    for (const [path, status] of [
      ["/health", 200],
      ["/api/devices", 401],
      ["/nothing", 404],
    ] as const) {
      const response = await relay.send(path, { headers: { Origin: "https://relay.test" } });
      expect(response.status).toBe(status);
      expect(response.headers.get("access-control-allow-origin")).toBe("https://relay.test");
      expect(response.headers.get("access-control-expose-headers")).toBe("Mcp-Session-Id, WWW-Authenticate");
      expect(response.headers.get("vary")).toContain("Origin");
    }
  });

  it("answers a preflight without a token, for the listed headers and parameter headers by pattern", async () => {
    const relay = await startRelay();
    const response = await relay.send("/mcp/pi", {
      method: "OPTIONS",
      headers: {
        Origin: "http://localhost:8787",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization, mcp-param-region, mcp-param-, x-evil, Mcp-Param-B",
      },
    });
    expect(response.status).toBe(204);
    expect(response.headers.get("access-control-allow-origin")).toBe("http://localhost:8787");
    expect(response.headers.get("access-control-allow-methods")).toBe("GET, POST, DELETE, OPTIONS");
    expect(response.headers.get("access-control-allow-headers")).toBe(
      "Authorization, Content-Type, Accept, MCP-Protocol-Version, Mcp-Session-Id, Mcp-Method, Mcp-Name, Last-Event-ID, mcp-param-region, Mcp-Param-B",
    );
    expect(response.headers.has("access-control-allow-credentials")).toBe(false);
  });
});

describe("protected-resource metadata", () => {
  it.each(["https://relay.test", "http://localhost:8787", "http://127.0.0.1:8787"])(
    "on %s names exactly the URL asked for, whether or not the device exists",
    async (origin) => {
      const relay = await startRelay();
      const response = await relay.send(`${origin}/.well-known/oauth-protected-resource/mcp/nobody`);
      expect(response.status).toBe(200);
      expect(await response.json()).toEqual({
        resource: `${origin}/mcp/nobody`,
        authorization_servers: ["https://relay.test"],
        scopes_supported: ["device:read"],
        bearer_methods_supported: ["header"],
        resource_name: "Longline device nobody",
      });
    },
  );

  it("is 404 at the root, with the reason, and for a malformed name", async () => {
    const relay = await startRelay();
    const root = await relay.send("/.well-known/oauth-protected-resource");
    expect(root.status).toBe(404);
    const { error } = await root.json<{ error: { message: string } }>();
    expect(error.message).toContain("/.well-known/oauth-protected-resource/mcp/<device>");
    for (const name of ["A", "a%22b", "-a"])
      expect((await relay.send(`/.well-known/oauth-protected-resource/mcp/${name}`)).status).toBe(404);
  });
});

it("health names version and runtime", async () => {
  const relay = await startRelay();
  expect(await (await relay.send("/health")).json()).toEqual({ ok: true, version: VERSION, runtime: "embedded", time: expect.any(Number) });
});

describe("calling a device that never connected", () => {
  const initialize = {
    jsonrpc: "2.0",
    id: 1,
    method: "initialize",
    params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "test", version: "1" } },
  };
  const call = (url: string, token: string) => ({
    path: url,
    init: {
      method: "POST",
      headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json", Accept: "application/json, text/event-stream" },
      body: JSON.stringify(initialize),
    },
  });

  it("is answered from the registry while the grant lives, and 401 from the moment it is revoked, without an object", async () => {
    const relay = await startRelay();
    const { device, mcpUrl } = await addDevice(relay);
    const { token, grant } = await addToken(relay, device);
    const { path, init } = call(mcpUrl, token);
    expect((await relay.send(path, init)).status).toBe(200);
    await relay.asOwner("DELETE", `/api/tokens/${grant}`);
    const refused = await relay.send(path, init);
    expect(refused.status).toBe(401);
    expect(refused.headers.get("www-authenticate")).toContain(`/mcp/${device}"`);
    expect(relay.objects.notes).toEqual([]);
  });

  it("is 401 for a token whose device was removed and whose name is another's now", async () => {
    const relay = await startRelay();
    const { device, mcpUrl } = await addDevice(relay);
    const { token } = await addToken(relay, device);
    await relay.asOwner("DELETE", `/api/devices/${device}`);
    await addDevice(relay, device);
    const { path, init } = call(mcpUrl, token);
    expect((await relay.send(path, init)).status).toBe(401);
  });
});

describe("dialling in", () => {
  it("asks for a WebSocket and for the subprotocol before it looks at a key", async () => {
    const relay = await startRelay();
    const plain = await relay.send("/tunnel");
    expect(plain.status).toBe(426);
    expect(plain.headers.get("upgrade")).toBe("websocket");
    const { deviceKey } = await addDevice(relay);
    for (const protocol of ["", "longline.v2", "longline.v10"])
      expect((await dial(relay, deviceKey, { "Sec-WebSocket-Protocol": protocol })).status).toBe(400);
    expect(relay.objects.notes).toEqual([]);
  });

  it("switches protocols for a good key and passes a request made by the relay, with nothing of the agent's in it", async () => {
    const relay = await startRelay();
    const { device, id, deviceKey, mcpUrl } = await addDevice(relay);
    const response = await dial(relay, deviceKey, {
      "Sec-WebSocket-Protocol": "other, longline.v1",
      Cookie: "a=b",
      "longline-facts": '{"deviceId":"another"}',
      "CF-Connecting-IP": "1.2.3.4",
    });
    expect(response.status).toBe(101);
    expect(response.webSocket).not.toBeNull();
    expect(response.headers.get("sec-websocket-protocol")).toBe("longline.v1");
    expect(relay.objects.notes).toEqual([
      {
        id,
        method: "fetch",
        argument: {
          url: "https://object/tunnel",
          headers: {
            upgrade: "websocket",
            "sec-websocket-protocol": "longline.v1",
            "longline-facts": JSON.stringify({ deviceId: id, name: device, mcpUrl }),
          },
        },
      },
    ]);
    expect((await findDevice(env.DB, id))?.bornAt).toEqual(expect.any(Number));
  });

  it("refuses every key that is not this device's, with one answer, and touches no object", async () => {
    const relay = await startRelay();
    const [one, other] = [await addDevice(relay), await addDevice(relay)];
    const [, , secret] = one.deviceKey.split("_");
    const removed = await addDevice(relay);
    await relay.asOwner("DELETE", `/api/devices/${removed.device}`);
    const keys = [
      "rubbish",
      `llk_${one.id}_${"A".repeat(43)}`,
      `llk_${other.id}_${secret}`,
      removed.deviceKey,
      one.deviceKey.slice(0, -1),
      `${one.deviceKey}A`,
    ];
    const bodies = new Set<string>();
    for (const key of keys) {
      const response = await dial(relay, key);
      expect(response.status).toBe(401);
      bodies.add(await response.text());
    }
    const query = await relay.send(`/tunnel?key=${one.deviceKey}`, {
      headers: { Upgrade: "websocket", "Sec-WebSocket-Protocol": "longline.v1" },
    });
    expect(query.status).toBe(401);
    bodies.add(await query.text());
    expect(bodies.size).toBe(1);
    expect(relay.objects.notes).toEqual([]);
    expect((await findDevice(env.DB, one.id))?.bornAt).toBeNull();
  });

  it("says that something failed when the object does not take the socket", async () => {
    const relay = await startRelay();
    const { deviceKey } = await addDevice(relay);
    relay.objects.failing.add("fetch");
    const response = await dial(relay, deviceKey);
    expect(response.status).toBe(500);
    expect(await response.text()).not.toContain("out of reach");
  });
});
