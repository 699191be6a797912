import { expect, test } from "vitest";
import type { Refusal } from "../../durable/rpc.ts";
import { EDGE } from "../../src/limits.ts";
import { EdgeHarness, modern } from "../support/edge-harness.ts";
import { message, resultMessage, whole } from "../support/fake-tunnel.ts";

const READ = { uri: "test://gone" };
const modernRead = () => modern("resources/read", READ);
const modernCall = () => modern("tools/call", { name: "t" });
const legacyOf = (method: string, params: unknown) => ({ body: { jsonrpc: "2.0", id: "a7", method, params } });

function upstream(code: number, data?: unknown, protocol = "2026-07-28") {
  return ({ callId }: { callId: string }) =>
    whole(message({ type: "error", callId, seq: 1, origin: "upstream", protocol, code, message: "said so" }, data));
}

test.each([
  ["R65 -32002 on read", modernRead, -32002, "2025-11-25", 200, -32602],
  ["R65 -32002 elsewhere", modernCall, -32002, "2025-11-25", 200, -32603],
  ["R65 -32042", modernCall, -32042, "2025-11-25", 200, -32603],
  ["R66 -32050", modernCall, -32050, "2026-07-28", 200, -32603],
  ["R66 -32099", modernCall, -32099, "2026-07-28", 200, -32603],
  ["R50 -32601", modernCall, -32601, "2026-07-28", 404, -32601],
  ["R50 -32021", modernCall, -32021, "2026-07-28", 400, -32021],
  ["a legacy upstream's private -32021", modernCall, -32021, "2025-11-25", 200, -32603],
  ["-32602", modernCall, -32602, "2026-07-28", 200, -32602],
  ["-32000", modernCall, -32000, "2026-07-28", 200, -32000],
  ["an application's own", modernCall, 4711, "2026-07-28", 200, 4711],
] as const)("an upstream's error for a modern caller: %s", async (_rule, sent, code, protocol, status, expected) => {
  const edge = new EdgeHarness();
  edge.tunnel.onCall = upstream(code, { uri: "test://gone" }, protocol);
  const answer = await edge.exchange(sent());
  const data = expected === -32603 ? { upstream: { code, data: { uri: "test://gone" } } } : { uri: "test://gone" };
  expect([answer.status, answer.json]).toEqual([status, { jsonrpc: "2.0", id: "a7", error: { code: expected, message: "said so", data } }]);
});

test.each([
  ["resources/read", READ, -32602, "2026-07-28", -32002],
  ["resources/read", READ, -32602, "2025-06-18", -32602],
  ["resources/read", READ, -32002, "2025-06-18", -32002],
  ["tools/call", { name: "t" }, -32601, "2025-06-18", -32601],
  ["tools/call", { name: "t" }, -32042, "2025-11-25", -32042],
])("an upstream's error for a legacy caller: %s %j %d from %s is 200 %d", async (method, params, code, protocol, expected) => {
  const edge = new EdgeHarness();
  edge.tunnel.onCall = upstream(code, undefined, protocol);
  const { status, json } = await edge.exchange(legacyOf(method, params));
  expect([status, json]).toEqual([200, { jsonrpc: "2.0", id: "a7", error: { code: expected, message: "said so" } }]);
});

const failure: Refusal = { kind: "failure", failure: { reason: "rate_limited", outcome: "not_started", data: { retryAfterMs: 5 } } };
test.each([
  [{ kind: "header", message: "no" }, "modern", 400, -32020],
  [{ kind: "params", message: "no" }, "modern", 200, -32602],
  [{ kind: "method" }, "modern", 404, -32601],
  [{ kind: "method" }, "legacy", 200, -32601],
  [{ kind: "scope", scopes: ["device:read", "tool:t"] }, "modern", 403, -32600],
  [{ kind: "absent" }, "modern", 200, -32602],
  [{ kind: "session", why: "unknown" }, "legacy", 404, -32600],
  [{ kind: "session", why: "version" }, "legacy", 400, -32600],
  [failure, "modern", 200, 1006],
  [failure, "legacy", 200, 1006],
] as const)("a refusal %j is %s %d %d, with the id", async (refusal, era, status, code) => {
  const edge = new EdgeHarness();
  edge.tunnel.onCall = () => ({ ok: false, refusal: refusal as Refusal });
  const answer = await edge.exchange(era === "modern" ? modernCall() : legacyOf("tools/call", { name: "t" }));
  expect([answer.status, answer.json]).toMatchObject([status, { id: "a7", error: { code } }]);
  expect(answer.headers.has("www-authenticate")).toBe(status === 403); // R138
});

test("an unusable grant is 401 with a challenge; an excluded resource looks like a missing one, by era", async () => {
  const edge = new EdgeHarness();
  edge.tunnel.onCall = () => ({ ok: false, refusal: { kind: "grant" } });
  const refused = await edge.exchange(modernCall());
  expect([refused.status, refused.headers.has("www-authenticate")]).toEqual([401, true]);
  edge.tunnel.onCall = () => ({ ok: false, refusal: { kind: "absent" } });
  expect((await edge.exchange(modernRead())).json).toMatchObject({ error: { code: -32602, data: READ } });
  expect((await edge.exchange(legacyOf("resources/read", READ))).json).toMatchObject({ error: { code: -32002, data: READ } });
});

test.each(["tools/list", "prompts/list", "resources/list", "resources/templates/list"])(
  "R51, R52, R55: %s is private and stale at once, whatever the device says",
  async (method) => {
    const edge = new EdgeHarness();
    edge.tunnel.onCall = ({ callId }) => whole(resultMessage(callId, {}, { ttlMs: 9_000, cacheScope: "public" }));
    const { json } = await edge.exchange(modern(method));
    expect(json).toMatchObject({ result: { resultType: "complete", ttlMs: 0, cacheScope: "private" } });
  },
);

test.each([
  [9_000, 9_000],
  [-1, 0],
  ["5", 0],
  [1.5, 0],
  [undefined, 0],
])("R52: a read resource with ttlMs %j has %d", async (ttlMs, expected) => {
  const edge = new EdgeHarness();
  edge.tunnel.onCall = ({ callId }) => whole(resultMessage(callId, { contents: [] }, ttlMs === undefined ? {} : { ttlMs }));
  expect((await edge.exchange(modernRead())).json).toMatchObject({ result: { ttlMs: expected, cacheScope: "private" } });
});

test("R100: a result type that nobody negotiated never reaches a caller; a legacy one never sees input_required", async () => {
  const edge = new EdgeHarness();
  edge.tunnel.onCall = ({ callId }) => whole(resultMessage(callId, { taskId: "1" }, { resultType: "task" }));
  expect((await edge.exchange(modernCall())).json).toMatchObject({ error: { code: -32603 } });
  edge.tunnel.onCall = ({ callId }) => whole(resultMessage(callId, { requestState: "s" }, { resultType: "input_required" }));
  expect((await edge.exchange(legacyOf("tools/call", { name: "t" }))).json).toMatchObject({ error: { code: -32603 } });
});

test.each(["[1]", '"ä"', "1.0", "null"])(
  "R62, R134: structuredContent %s passes to modern callers and is cut off for legacy ones",
  async (value) => {
    const edge = new EdgeHarness();
    const head = '{"content":[{"type":"text","text":"ü"}]';
    const structuredAt = new TextEncoder().encode(head).length;
    edge.tunnel.onCall = ({ callId }) => whole(resultMessage(callId, `${head},"structuredContent":${value}}`, { structuredAt }));
    expect((await edge.exchange(modernCall())).text).toContain(`,"structuredContent":${value}}`);
    const legacy = await edge.exchange(legacyOf("tools/call", { name: "t" }));
    expect(legacy.json).toEqual({ jsonrpc: "2.0", id: "a7", result: { content: [{ type: "text", text: "ü" }] } });
    edge.tunnel.onCall = ({ callId }) => whole(resultMessage(callId, `{"structuredContent":${value}}`, { structuredAt: 1 }));
    expect((await edge.exchange(legacyOf("tools/call", { name: "t" }))).json).toEqual({ jsonrpc: "2.0", id: "a7", result: {} });
  },
);

test.each(["", "[]", "null", "{", '{"a":1'])("a payload that is no object (%j) is an internal error, not broken JSON", async (payload) => {
  const edge = new EdgeHarness();
  edge.tunnel.onCall = ({ callId }) => whole(resultMessage(callId, payload));
  expect((await edge.exchange(modernCall())).json).toMatchObject({ id: "a7", error: { code: -32603 } });
});

test("an object that throws ends the request with an internal error that says nothing of it", async () => {
  const edge = new EdgeHarness();
  edge.tunnel.describe = () => {
    throw Object.assign(new Error("secret"), { overloaded: true });
  };
  const { json, text } = await edge.exchange(modern("server/discover"));
  expect(json).toMatchObject({ error: { code: 1006 } });
  expect(text).not.toContain("secret");
});

test("bodies: wrong media type 415, over the cap 413 with and without a length, deep nesting 400", async () => {
  const edge = new EdgeHarness();
  const sent = modernCall();
  expect((await edge.exchange({ ...sent, headers: { ...sent.headers, "content-type": "text/plain" } })).status).toBe(415);
  expect((await edge.exchange({ ...sent, headers: { ...sent.headers, "content-type": "application/json; charset=utf-8" } })).status).toBe(
    200,
  );
  expect((await edge.exchange({ text: "x".repeat(EDGE.maxRequestBytes + 1) })).status).toBe(413);
  expect((await edge.exchange({ text: "{}", headers: { "content-length": String(EDGE.maxRequestBytes + 1) } })).status).toBe(413);
  const deep = (depth: number) =>
    JSON.stringify(sent.body).replace('"name":"t"', `"name":"t","arguments":${"[".repeat(depth)}${"]".repeat(depth)}`);
  expect((await edge.exchange({ headers: sent.headers, text: deep(EDGE.maxJsonDepth - 2) })).status).toBe(200);
  expect((await edge.exchange({ headers: sent.headers, text: deep(EDGE.maxJsonDepth - 1) })).status).toBe(400);
  expect((await edge.exchange({ headers: sent.headers, text: deep(100_000) })).status).toBe(400);
});

test("R44: headers over the cap are refused before the body is read", async () => {
  const { status } = await new EdgeHarness().exchange({ ...modernCall(), headers: { "mcp-param-x": "y".repeat(EDGE.maxHeaderBytes) } });
  expect(status).toBe(431);
});

test.each([
  ["no jsonrpc", { id: 1, method: "ping" }],
  ["another jsonrpc", { jsonrpc: "1.0", id: 1, method: "ping" }],
  ["a method that is no string", { jsonrpc: "2.0", id: 1, method: 5 }],
  ["neither request nor response", { jsonrpc: "2.0", id: 1 }],
  ["both", { jsonrpc: "2.0", id: 1, method: "ping", result: {} }],
  ["both outcomes", { jsonrpc: "2.0", id: 1, result: {}, error: {} }],
])("%s is 400 -32600 with the id; a bare value without one", async (_what, body) => {
  const { status, json } = await new EdgeHarness().exchange({ body });
  expect([status, json]).toMatchObject([400, { id: 1, error: { code: -32600 } }]);
  expect((await new EdgeHarness().exchange({ text: "5" })).json).not.toHaveProperty("id");
});
