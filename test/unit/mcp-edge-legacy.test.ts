import { expect, test } from "vitest";
import { neverConnected } from "../../src/mcp/never-connected.ts";
import { EdgeHarness, modern, type Read } from "../support/edge-harness.ts";
import { resultMessage, whole } from "../support/fake-tunnel.ts";

function code(json: unknown): unknown {
  return (json as { error?: { code?: unknown } }).error?.code;
}

function initialize(version: unknown, more: Record<string, unknown> = {}, id: unknown = 0) {
  const params = { protocolVersion: version, capabilities: {}, clientInfo: { name: "old", version: "1" }, ...more };
  return { body: { jsonrpc: "2.0", id, method: "initialize", params } };
}

/** An edge with one session of that version. */
async function inSession(version: string, capabilities: Record<string, unknown> = {}) {
  const edge = new EdgeHarness();
  const opened = await edge.exchange(initialize(version, { capabilities }));
  const headers: Record<string, string> = { "mcp-session-id": opened.headers.get("mcp-session-id") ?? "" };
  const send = (message: unknown, more: Record<string, string> = {}): Promise<Read> =>
    edge.exchange({ body: message, headers: { ...headers, ...more } });
  return { edge, headers, send };
}

const request = (method: string, params?: unknown, id: unknown = 1) => ({
  jsonrpc: "2.0",
  id,
  method,
  ...(params === undefined ? {} : { params }),
});

test.each(["2025-11-25", "2025-06-18", "2025-03-26"])(
  "R107, R108: initialize for %s is answered with that version, and opens a session",
  async (version) => {
    const { status, headers, json } = await new EdgeHarness().exchange(initialize(version));
    expect(status).toBe(200);
    expect(headers.get("mcp-session-id")).toMatch(/^[\x21-\x7E]+$/); // R115
    expect(json).toEqual({
      jsonrpc: "2.0",
      id: 0,
      result: {
        protocolVersion: version,
        capabilities: { tools: { listChanged: true }, resources: { subscribe: true } },
        serverInfo: { name: "kitchen-pi", version: "4.2.0" },
        instructions: "Controls one house.",
      },
    });
  },
);

test.each([0, "", "0", -1, Number.MAX_SAFE_INTEGER])("B3: the id %j goes back as it came, from initialize on", async (id) => {
  const edge = new EdgeHarness();
  const opened = await edge.exchange(initialize("2025-11-25", {}, id));
  expect(opened.json).toMatchObject({ id, result: { protocolVersion: "2025-11-25" } });
  edge.tunnel.onCall = ({ callId }) => whole(resultMessage(callId, { content: [] }));
  const headers = { "mcp-session-id": opened.headers.get("mcp-session-id") ?? "" };
  for (const method of ["ping", "tools/call"]) {
    const { json } = await edge.exchange({ body: request(method, { name: "lamp", arguments: {} }, id), headers });
    expect(json).toMatchObject({ id, result: {} });
  }
});

test.each(["2024-11-05", "2031-01-01", "2026-07-28"])(
  "R109, R110: initialize for %s is answered with the latest legacy version",
  async (version) => {
    const { json } = await new EdgeHarness().exchange(initialize(version));
    expect((json as { result: { protocolVersion: string } }).result.protocolVersion).toBe("2025-11-25");
  },
);

test("initialize with modern _meta but without its headers is legacy", async () => {
  const sent = modern("initialize", { protocolVersion: "2025-06-18", capabilities: {} });
  const { status, headers } = await new EdgeHarness().exchange({ body: sent.body });
  expect([status, headers.has("mcp-session-id")]).toEqual([200, true]);
});

test.each([
  ["no params", { jsonrpc: "2.0", id: 1, method: "initialize" }],
  ["a version that is no string", initialize(1).body],
  ["capabilities that are no object", initialize("2025-06-18", { capabilities: [] }).body],
  ["a record over its cap", initialize("2025-06-18", { capabilities: { x: "y".repeat(20_000) } }).body],
])("initialize with %s is -32602", async (_what, body) => {
  const { status, json } = await new EdgeHarness().exchange({ body });
  expect([status, code(json)]).toEqual([200, -32602]);
});

test("a session's call is forwarded with the session, answered without era members", async () => {
  const { edge, send } = await inSession("2025-06-18");
  edge.tunnel.onCall = ({ callId }) =>
    whole(
      resultMessage(
        callId,
        { content: [] },
        { resultType: "complete", ttlMs: 5, cacheScope: "public", meta: { "io.modelcontextprotocol/serverInfo": {}, "x/y": 1 } },
      ),
    );
  const { json, headers } = await send(request("tools/call", { name: "t", arguments: {}, task: { ttl: 1 } }, "q"), {
    "mcp-protocol-version": "2025-06-18",
  });
  expect(json).toEqual({ jsonrpc: "2.0", id: "q", result: { _meta: { "x/y": 1 }, content: [] } });
  expect(headers.has("mcp-session-id")).toBe(false);
  const [call] = edge.tunnel.calls;
  expect(call).toMatchObject({
    session: { id: "s-1", headerVersion: "2025-06-18" },
    target: "t",
    payload: '{"arguments":{}}',
    clientId: '"q"',
  });
  expect([call?.client, call?.paramHeaders]).toEqual([undefined, undefined]);
});

test("R122: without a version header the session's version is used; a session and a legacy header win over _meta", async () => {
  const { edge, send, headers } = await inSession("2025-06-18");
  expect((await send(request("tools/list"))).status).toBe(200);
  const mixed = modern("tools/list").body;
  const answer = await edge.exchange({ body: mixed, headers: { ...headers, "mcp-protocol-version": "2025-06-18" } });
  expect(answer.status).toBe(200);
  expect(edge.tunnel.calls.map((c) => c.session?.id)).toEqual(["s-1", "s-1"]);
});

test("a legacy version header that is not the session's is 400; R121: an unsupported one too", async () => {
  const { send } = await inSession("2025-06-18");
  for (const version of ["2025-11-25", "2024-11-05", "nonsense"]) {
    expect((await send(request("tools/list"), { "mcp-protocol-version": version })).status).toBe(400);
  }
});

test("R117, R118: an ended or unknown session is 404 on POST and DELETE, whatever the message", async () => {
  const { edge, send, headers } = await inSession("2025-06-18");
  expect((await edge.exchange({ method: "DELETE", headers })).status).toBe(204);
  expect((await edge.exchange({ method: "DELETE", headers })).status).toBe(404);
  for (const body of [
    request("ping"),
    request("tools/list"),
    request("nope"),
    request("logging/setLevel", { level: "info" }),
    { jsonrpc: "2.0", method: "notifications/initialized" },
    { jsonrpc: "2.0", id: "x", result: {} },
  ]) {
    expect((await send(body)).status).toBe(404);
  }
  expect((await edge.exchange({ body: request("ping"), headers: { "mcp-session-id": "a b" } })).status).toBe(404);
});

test("R135: another grant's session is 404", async () => {
  const { edge, send } = await inSession("2025-06-18");
  edge.grant = "g2";
  expect((await send(request("ping"))).status).toBe(404);
});

test("R2, R3: GET and DELETE without a session, and other methods, are 405 with Allow", async () => {
  const edge = new EdgeHarness();
  for (const method of ["GET", "DELETE", "PUT", "PATCH"]) {
    const { status, headers } = await edge.exchange({ method });
    expect([status, headers.get("allow")]).toEqual([405, "POST"]);
  }
});

test("R119: notifications of a session are 202 with an empty body; a cancel goes to its own session", async () => {
  const { edge, send } = await inSession("2025-06-18");
  const initialized = await send({ jsonrpc: "2.0", method: "notifications/initialized" });
  expect([initialized.status, initialized.text]).toEqual([202, ""]);
  for (const requestId of [7, "7", 1.5, null]) {
    const { status } = await send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId } });
    expect(status).toBe(202);
  }
  expect(edge.tunnel.cancelledInSession).toEqual([
    { session: "s-1", requestId: "7" },
    { session: "s-1", requestId: '"7"' },
  ]);
});

test("R126: an unknown legacy method is 200 -32601; R127: ping is {}", async () => {
  const { send } = await inSession("2025-11-25");
  for (const method of ["nope", "server/discover", "subscriptions/listen"]) {
    const { status, json } = await send(request(method));
    expect([status, code(json)]).toEqual([200, -32601]);
  }
  expect((await send(request("ping"))).json).toEqual({ jsonrpc: "2.0", id: 1, result: {} });
});

test("logging/setLevel keeps a known level for the session and refuses others with -32602", async () => {
  const { edge, send } = await inSession("2025-11-25");
  expect((await send(request("logging/setLevel", { level: "warning" }))).json).toEqual({ jsonrpc: "2.0", id: 1, result: {} });
  expect(code((await send(request("logging/setLevel", { level: "loud" }))).json)).toBe(-32602);
  expect(edge.tunnel.levels).toEqual([{ session: "s-1", level: "warning" }]);
});

test("a legacy request without a session is served statelessly, with the version of its header", async () => {
  const edge = new EdgeHarness();
  expect((await edge.exchange({ body: request("tools/list") })).status).toBe(200);
  await edge.exchange({ body: request("tools/list"), headers: { "mcp-protocol-version": "2025-11-25" } });
  expect(edge.tunnel.calls.map((c) => c.client?.protocol)).toEqual(["2025-03-26", "2025-11-25"]);
  expect((await edge.exchange({ body: request("ping") })).json).toEqual({ jsonrpc: "2.0", id: 1, result: {} });
  expect((await edge.exchange({ body: request("logging/setLevel", { level: "info" }) })).status).toBe(200);
  expect((await edge.exchange({ body: { jsonrpc: "2.0", method: "notifications/initialized" } })).status).toBe(202);
});

test("a response without a session is 400; R120: with one it reaches the object, an unknown one is dropped with 202", async () => {
  const { edge, send } = await inSession("2025-06-18");
  expect((await edge.exchange({ body: { jsonrpc: "2.0", id: "k", result: {} } })).status).toBe(400);
  expect((await send({ jsonrpc: "2.0", id: "k", result: { action: "accept" } })).status).toBe(202);
  expect((await send({ jsonrpc: "2.0", id: "e", error: { code: -1, message: "no" } })).status).toBe(202);
  expect((await send({ jsonrpc: "2.0", id: 5, result: {} })).status).toBe(202);
  expect(edge.tunnel.answered).toEqual([
    { session: "s-1", askKey: "k", kind: "result", payload: '{"action":"accept"}' },
    { session: "s-1", askKey: "e", kind: "error", payload: '{"code":-1,"message":"no"}' },
  ]);
});

test.each([
  ["params that are an array", request("tools/call", ["t"])],
  ["no name", request("tools/call", {})],
  ["a name that is no string", request("tools/call", { name: 1 })],
  ["_meta that is no object", request("tools/call", { name: "t", _meta: [] })],
  ["a progress token that is no token", request("tools/call", { name: "t", _meta: { progressToken: {} } })],
  ["completion without ref", request("completion/complete", { argument: {} })],
])("%s is -32602", async (_what, body) => {
  const { status, json } = await new EdgeHarness().exchange({ body });
  expect([status, code(json)]).toEqual([200, -32602]);
});

test("completion/complete carries its ref apart from the payload", async () => {
  const edge = new EdgeHarness();
  await edge.exchange({
    body: request("completion/complete", { ref: { type: "ref/prompt", name: "p" }, argument: { name: "a", value: "" } }),
  });
  expect(edge.tunnel.calls[0]).toMatchObject({ ref: { type: "ref/prompt", name: "p" }, payload: '{"argument":{"name":"a","value":""}}' });
});

test("R129: a batch in a 2025-03-26 session answers each request, in order; initialize in it is refused", async () => {
  const { send } = await inSession("2025-03-26");
  const { status, json } = await send([
    request("ping", undefined, 1),
    { jsonrpc: "2.0", method: "notifications/initialized" },
    request("tools/list", undefined, "b"),
    initialize("2025-03-26", {}, 3).body,
    5,
  ]);
  expect(status).toBe(200);
  expect(json).toEqual([
    { jsonrpc: "2.0", id: 1, result: {} },
    { jsonrpc: "2.0", id: "b", result: { content: [] } },
    { jsonrpc: "2.0", id: 3, error: { code: -32600, message: expect.any(String) } },
    { jsonrpc: "2.0", error: { code: -32600, message: expect.any(String) } },
  ]);
});

test("a batch of notifications and responses is 202; without session and version header batches are served", async () => {
  const { send, edge } = await inSession("2025-03-26");
  const quiet = await send([
    { jsonrpc: "2.0", method: "notifications/initialized" },
    { jsonrpc: "2.0", id: "k", result: {} },
  ]);
  expect([quiet.status, quiet.text]).toEqual([202, ""]);
  expect((await edge.exchange({ body: [request("ping")] })).json).toEqual([{ jsonrpc: "2.0", id: 1, result: {} }]);
});

test("R130: batches elsewhere, empty ones and those over the cap are 400", async () => {
  const { send } = await inSession("2025-06-18");
  expect((await send([request("ping")])).status).toBe(400);
  const edge = new EdgeHarness();
  expect((await edge.exchange({ body: [request("ping")], headers: { "mcp-protocol-version": "2025-03-26" } })).status).toBe(400);
  expect((await edge.exchange({ body: [] })).status).toBe(400);
  const many = (n: number) => Array.from({ length: n }, (_, id) => request("ping", undefined, id));
  expect((await edge.exchange({ body: many(32) })).status).toBe(200);
  expect((await edge.exchange({ body: many(33) })).status).toBe(400);
  const foreign = await edge.exchange({ body: many(1), headers: { "mcp-session-id": "s-404" } });
  expect(foreign.status).toBe(404);
});

test("a device that never connected: empty lists, instructions that say so, calls offline, no session", async () => {
  const edge = new EdgeHarness();
  edge.isBorn = false;
  Object.assign(edge, { tunnel: neverConnected("pi") });
  const opened = await edge.exchange(initialize("2025-06-18"));
  expect([opened.status, opened.headers.has("mcp-session-id")]).toEqual([200, false]);
  expect(opened.text).toContain("has never connected");
  const listed = await edge.exchange(modern("tools/list"));
  expect(listed.json).toMatchObject({
    result: { resultType: "complete", tools: [], ttlMs: 0, cacheScope: "private", _meta: { "dev.longline/offline": true } },
  });
  const discover = await edge.exchange(modern("server/discover"));
  expect(discover.json).toMatchObject({ result: { ttlMs: 0, capabilities: { tools: {} } } });
  const called = await edge.exchange(modern("tools/call", { name: "t" }));
  expect([called.status, called.json]).toMatchObject([
    200,
    { id: "a7", error: { code: 1001, data: { reason: "device_offline", outcome: "not_started" } } },
  ]);
  expect((await edge.exchange({ body: request("ping"), headers: { "mcp-session-id": "s-1" } })).status).toBe(404);
});
