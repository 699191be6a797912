import { expect, test } from "vitest";
import { EdgeHarness, MODERN, modern, modernMeta } from "../support/edge-harness.ts";
import { resultMessage, whole } from "../support/fake-tunnel.ts";

const CALL = { name: "lamp.set", arguments: { room: "attic" } };

function code(json: unknown): unknown {
  return (json as { error?: { code?: unknown } }).error?.code;
}

/** Sends a modern tools/call after `change` and gives back status, code and id. */
async function probe(change: (sent: ReturnType<typeof modern>) => unknown, params: Record<string, unknown> = CALL, method = "tools/call") {
  const edge = new EdgeHarness();
  const sent = modern(method, params);
  change(sent);
  const { status, json } = await edge.exchange(sent);
  return { status, code: code(json), id: (json as { id?: unknown }).id, calls: edge.tunnel.calls.length, json };
}

test("R1: a complete request is forwarded in canonical form and answered as JSON", async () => {
  const edge = new EdgeHarness();
  edge.tunnel.onCall = ({ callId }) => whole(resultMessage(callId, { content: [{ type: "text", text: "ok" }], more: 1.5 }));
  const sent = modern("tools/call", { ...CALL, _meta: { traceparent: "00-1", progressToken: 0 } });
  const { status, headers, json } = await edge.exchange(sent);
  expect([status, headers.get("content-type")]).toEqual([200, "application/json"]);
  expect(json).toEqual({
    jsonrpc: "2.0",
    id: "a7",
    result: { resultType: "complete", content: [{ type: "text", text: "ok" }], more: 1.5 },
  });
  expect(edge.tunnel.calls[0]).toMatchObject({
    grant: "g1",
    method: "tools/call",
    target: "lamp.set",
    payload: '{"arguments":{"room":"attic"}}',
    meta: { traceparent: "00-1" },
    progress: true,
    paramHeaders: {},
    client: { era: "modern", protocol: MODERN, capabilities: {} },
  });
  expect(edge.tunnel.calls[0]?.session).toBeUndefined();
  await edge.settled();
  expect(edge.tunnel.deliveredIds).toEqual([edge.tunnel.calls[0]?.callId]);
});

test.each(["1", '"1"', "0", '""', "1.0", "-0", '"\\u0061\\/"', "1e2", "9007199254740991"])(
  "an id comes back as it was sent: %s",
  async (id) => {
    const edge = new EdgeHarness();
    const sent = modern("tools/list");
    const text = JSON.stringify(sent.body).replace('"id":"a7"', `"id":${id}`);
    const answer = await edge.exchange({ headers: sent.headers, text });
    expect(answer.text.startsWith(`{"jsonrpc":"2.0","id":${id},"result":`)).toBe(true);
    const refused = await edge.exchange({ headers: { ...sent.headers, "mcp-method": "x" }, text });
    expect(refused.text.startsWith(`{"jsonrpc":"2.0","id":${id},"error":`)).toBe(true); // R14
  },
);

test.each(["null", "1.5", "9007199254740993", "true", "[]", "{}", `"${"x".repeat(1025)}"`])(
  "R13: the id %s is refused, without an id",
  async (id) => {
    const edge = new EdgeHarness();
    const sent = modern("tools/list");
    const { status, json } = await edge.exchange({
      headers: sent.headers,
      text: JSON.stringify(sent.body).replace('"id":"a7"', `"id":${id}`),
    });
    expect([status, code(json), Object.hasOwn(json as object, "id")]).toEqual([400, -32600, false]);
  },
);

test("R12: a body that is not JSON is 400 -32700 without an id; so is one that is not UTF-8", async () => {
  const edge = new EdgeHarness();
  for (const text of ['{"jsonrpc":', new Uint8Array([0x7b, 0xff, 0x7d])]) {
    const { status, json } = await edge.exchange({ text });
    expect([status, code(json), Object.hasOwn(json as object, "id")]).toEqual([400, -32700, false]);
  }
});

type Change = (sent: ReturnType<typeof modern>) => unknown;
const RULES: readonly (readonly [string, Change, number, number | undefined])[] = [
  ["R15 no _meta", (s) => delete (s.body["params"] as Record<string, unknown>)["_meta"], 400, -32602],
  ["R15 no params", (s) => delete s.body["params"], 400, -32602],
  ["R16 no protocolVersion", (s) => meta(s, { protocolVersion: undefined }), 400, -32602],
  ["R17 no clientCapabilities", (s) => meta(s, { clientCapabilities: undefined }), 400, -32602],
  ["R17 capabilities that are no object", (s) => meta(s, { clientCapabilities: [] }), 400, -32602],
  ["R18 no clientInfo", () => undefined, 200, undefined],
  ["R19 no version header", (s) => delete s.headers["mcp-protocol-version"], 400, -32020],
  ["R20 versions differ", (s) => meta(s, { protocolVersion: "v999.0.0" }), 400, -32020],
  ["R23 no Mcp-Method", (s) => delete s.headers["mcp-method"], 400, -32020],
  ["R24 another Mcp-Method", (s) => void (s.headers["mcp-method"] = "tools/list"), 400, -32020],
  ["R25 Mcp-Method in capitals", (s) => void (s.headers["mcp-method"] = "TOOLS/CALL"), 400, -32020],
  ["R27 blanks around Mcp-Name", (s) => void (s.headers["mcp-name"] = " \tlamp.set \t"), 200, undefined],
  ["R28 no Mcp-Name", (s) => delete s.headers["mcp-name"], 400, -32020],
  ["R29 another Mcp-Name", (s) => void (s.headers["mcp-name"] = "lamp.get"), 400, -32020],
  ["R31 Mcp-Name in Base64", (s) => void (s.headers["mcp-name"] = "=?base64?bGFtcC5zZXQ=?="), 200, undefined],
  ["R32 bad padding", (s) => void (s.headers["mcp-name"] = "=?base64?bGFtcC5zZXQ?="), 400, -32020],
  ["R33 bad alphabet", (s) => void (s.headers["mcp-name"] = "=?base64?bGFt!!!cC5zZXQ=?="), 400, -32020],
  ["R34 upper-case marker is literal", (s) => void (s.headers["mcp-name"] = "=?BASE64?bGFtcC5zZXQ=?="), 400, -32020],
  ["R35 bytes above 0x7E", (s) => void (s.headers["mcp-name"] = "lamp.s\u00e9t"), 400, -32020],
  ["R35 in a parameter header", (s) => void (s.headers["mcp-param-room"] = "\u00e9"), 400, -32020],
  ["R81 unknown logLevel", (s) => meta(s, { logLevel: "loud" }), 200, -32602],
];

test.each(RULES)("%s", async (_rule, change, status, expected) => {
  const result = await probe(change);
  expect([result.status, result.code, result.id, result.calls]).toEqual([
    status,
    expected,
    "a7",
    status === 200 && expected === undefined ? 1 : 0,
  ]);
});

function meta(sent: ReturnType<typeof modern>, change: Record<string, unknown>): void {
  const params = sent.body["params"] as Record<string, Record<string, unknown>>;
  for (const [key, value] of Object.entries(change)) {
    if (value === undefined) delete params["_meta"]?.[`io.modelcontextprotocol/${key}`];
    else (params["_meta"] as Record<string, unknown>)[`io.modelcontextprotocol/${key}`] = value;
  }
}

test.each([
  ["prompts/get", { name: "p" }],
  ["resources/read", { uri: "test://ä" }],
])("R28, R29, R31: Mcp-Name mirrors the target of %s", async (method, params) => {
  const [target] = Object.values(params) as [string];
  const encoded = `=?base64?${Buffer.from(target).toString("base64")}?=`;
  expect((await probe((s) => void (s.headers["mcp-name"] = encoded), params, method)).status).toBe(200);
  expect((await probe((s) => void (s.headers["mcp-name"] = "other"), params, method)).code).toBe(-32020);
  expect((await probe((s) => delete s.headers["mcp-name"], params, method)).code).toBe(-32020);
});

test.each(["tools/list", "server/discover"])("R30: %s needs no Mcp-Name", async (method) => {
  expect((await probe(() => undefined, {}, method)).status).toBe(200);
});

test("R21, R22: an unsupported version names what is supported, and discover lists the same", async () => {
  const { status, json } = await probe((s) => {
    s.headers["mcp-protocol-version"] = "v999.0.0";
    meta(s, { protocolVersion: "v999.0.0" });
  });
  const { code: rpcCode, data } = (json as { error: { code: number; data: { supported: string[]; requested: string } } }).error;
  expect([status, rpcCode, data.requested]).toEqual([400, -32022, "v999.0.0"]);
  const discover = await new EdgeHarness().exchange(modern("server/discover"));
  const { supportedVersions } = (discover.json as { result: { supportedVersions: string[] } }).result;
  expect(supportedVersions).toEqual(data.supported);
});

test("R112: a modern form that declares a legacy version is -32022; a header alone of an unknown version too", async () => {
  const declared = await probe((s) => {
    s.headers["mcp-protocol-version"] = "2025-11-25";
    meta(s, { protocolVersion: "2025-11-25" });
  });
  expect([declared.status, declared.code]).toEqual([400, -32022]);
  const header = await probe((s) => {
    s.headers["mcp-protocol-version"] = "v9";
    delete (s.body["params"] as Record<string, unknown>)["_meta"];
  });
  expect([header.status, header.code]).toEqual([400, -32022]);
});

test("R111: header-only modern traffic is refused, ping included, unless the device's switch allows it", async () => {
  const edge = new EdgeHarness();
  const headers = { "mcp-protocol-version": MODERN };
  const ping = { headers, body: { jsonrpc: "2.0", id: 1, method: "ping" } };
  const list = { headers, body: { jsonrpc: "2.0", id: 1, method: "tools/list" } };
  for (const sent of [ping, list]) {
    const { status, json } = await edge.exchange(sent);
    expect([status, code(json)]).toEqual([400, -32602]);
  }
  edge.switches = { headerOnlyModern: true };
  expect((await edge.exchange(ping)).json).toEqual({ jsonrpc: "2.0", id: 1, result: {} });
  expect((await edge.exchange(list)).status).toBe(200);
  const strict = await edge.exchange({ ...list, headers: { ...headers, "mcp-method": "tools/list" } });
  expect([strict.status, code(strict.json)]).toEqual([400, -32602]);
});

test("R45, R46: discover has versions, capabilities, cache hints and the server's identity in _meta only", async () => {
  const { json } = await new EdgeHarness().exchange(modern("server/discover", {}, 0));
  expect(json).toEqual({
    jsonrpc: "2.0",
    id: 0,
    result: {
      resultType: "complete",
      supportedVersions: ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"],
      capabilities: { tools: { listChanged: true }, resources: { subscribe: true } },
      instructions: "Controls one house.",
      ttlMs: 60_000,
      cacheScope: "private",
      _meta: { "io.modelcontextprotocol/serverInfo": { name: "kitchen-pi", version: "4.2.0" } },
    },
  });
});

test.each([
  "initialize",
  "ping",
  "logging/setLevel",
  "resources/subscribe",
  "resources/unsubscribe",
  "unknown/method",
  "tasks/get",
  "constructor",
])("R48, R49: %s in modern form is 404 -32601", async (method) => {
  const result = await probe(() => undefined, {}, method);
  expect([result.status, result.code, result.id, result.calls]).toEqual([404, -32601, "a7", 0]);
});

test("R7: a modern notification is 202 without a body, also without Mcp-Method, and reaches nobody", async () => {
  const edge = new EdgeHarness();
  const body = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: "a7" } };
  const { status, text } = await edge.exchange({ body, headers: { "mcp-protocol-version": MODERN } });
  expect([status, text, edge.tunnel.cancelledInSession]).toEqual([202, "", []]);
});

test.each([
  ["R8 an array", [{ jsonrpc: "2.0", id: 1, method: "tools/list" }]],
  ["R9 a response", { jsonrpc: "2.0", id: 1, result: {} }],
])("%s with a modern version header is 400", async (_rule, body) => {
  const { status, json } = await new EdgeHarness().exchange({ body, headers: { "mcp-protocol-version": MODERN } });
  expect([status, code(json)]).toEqual([400, -32600]);
});

test("R10, R11: a session id and Last-Event-ID on a modern request are ignored", async () => {
  const edge = new EdgeHarness();
  const sent = modern("tools/call", CALL);
  const { status, headers } = await edge.exchange({ ...sent, headers: { ...sent.headers, "mcp-session-id": "s-9", "last-event-id": "4" } });
  expect([status, headers.get("mcp-session-id"), edge.tunnel.calls[0]?.session]).toEqual([200, null, undefined]);
});

test("R41: parameter headers reach the object raw, by lower-case suffix", async () => {
  const edge = new EdgeHarness();
  const sent = modern("tools/call", CALL);
  await edge.exchange({ ...sent, headers: { ...sent.headers, "Mcp-Param-Zzz": "=?base64?esO8cmljaA==?=", "Mcp-Param-Code": "7" } });
  expect(edge.tunnel.calls[0]?.paramHeaders).toEqual({ zzz: "=?base64?esO8cmljaA==?=", code: "7" });
});

test("R43: a repeated mirrored header does not match", async () => {
  const edge = new EdgeHarness();
  const sent = modern("tools/call", CALL);
  const headers = new Headers(sent.headers);
  headers.append("mcp-name", "lamp.set");
  const { status, json } = await edge.exchange({ ...sent, headers: Object.fromEntries(headers) });
  expect([status, code(json)]).toEqual([400, -32020]);
});

test("R59: an empty cursor is forwarded", async () => {
  const edge = new EdgeHarness();
  await edge.exchange(modern("tools/list", { cursor: "" }));
  expect(edge.tunnel.calls[0]?.payload).toBe('{"cursor":""}');
});

test("a client's tasks extension is not carried to the device", async () => {
  const edge = new EdgeHarness();
  const capabilities = { extensions: { "io.modelcontextprotocol/tasks": {}, "com.example/x": {} } };
  await edge.exchange(modern("tools/call", { ...CALL, _meta: modernMeta({ "io.modelcontextprotocol/clientCapabilities": capabilities }) }));
  expect(edge.tunnel.calls[0]?.client?.capabilities).toEqual({ extensions: { "com.example/x": {} } });
});
