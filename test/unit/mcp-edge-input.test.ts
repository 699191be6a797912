import { expect, test } from "vitest";
import { readAskKey } from "../../durable/rpc.ts";
import { CALL as LIMITS } from "../../src/limits.ts";
import type { Ask } from "../../src/tunnel/frames.ts";
import { altered } from "../support/altered.ts";
import { EdgeHarness, modern, modernMeta, type Read } from "../support/edge-harness.ts";
import { inSteps, message, resultMessage, whole } from "../support/fake-tunnel.ts";

const FORM = { message: "Unlock?", requestedSchema: { type: "object", properties: {} } };
const CAPABILITIES = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };

function ask(callId: string, seq: number, askId: string, params: unknown, method: Ask["method"] = "elicitation/create") {
  return message({ type: "ask", callId, seq, askId, method }, params);
}
const never = new Promise<null>(() => undefined);

function call(capabilities: Record<string, unknown> = CAPABILITIES, more: Record<string, unknown> = {}, id: unknown = "a7") {
  const meta = modernMeta({ "io.modelcontextprotocol/clientCapabilities": capabilities });
  return modern("tools/call", { name: "door.unlock", arguments: { door: "front", b: 1 }, ...more, _meta: meta }, id);
}
interface Required {
  result: { resultType: string; inputRequests: Record<string, { method: string; params?: unknown }>; requestState: string };
}
const required = (read: Read): Required["result"] => (read.json as Required).result;

const nothing = (): void => undefined;

/** An edge whose device asks once and then waits for the answer. */
function asking(...asks: (readonly [string, unknown, Ask["method"]?])[]): EdgeHarness {
  const edge = new EdgeHarness();
  edge.tunnel.onCall = ({ callId }) =>
    inSteps([...asks.map(([askId, params, method], i) => ask(callId, i + 1, askId, params, method)), never]);
  return edge;
}

test("modern: asks pending together become one input_required with a state; the retry continues the same call", async () => {
  const edge = asking(
    ["k1", FORM],
    ["k2", { mode: "url", url: "https://x.example", message: "m", elicitationId: "e" }],
    ["k3", undefined, "roots/list"],
  );
  const first = required(await edge.exchange(call()));
  expect(first).toMatchObject({
    resultType: "input_required",
    inputRequests: {
      k1: { method: "elicitation/create", params: FORM },
      k2: { method: "elicitation/create", params: { mode: "url", url: "https://x.example", message: "m" } },
      k3: { method: "roots/list" },
    },
  });
  expect(first.inputRequests["k2"]?.params).not.toHaveProperty("elicitationId");
  expect(first).not.toHaveProperty("ttlMs"); // R53
  expect(first.requestState.startsWith("ll1.")).toBe(true);
  expect(edge.tunnel.deliveredIds).toEqual([]);
  // Keys in another order are the same request; extra and unusable answers do not matter (R90).
  const inputResponses = { k1: { action: "accept", content: {} }, k3: { roots: [] }, k2: null, extra: 1 };
  const retry = call(CAPABILITIES, { inputResponses, requestState: first.requestState, arguments: { b: 1, door: "front" } }, 42);
  const second = await edge.exchange(retry);
  expect(second.json).toMatchObject({ id: 42, result: { resultType: "complete" } });
  expect(edge.tunnel.calls).toHaveLength(1);
  expect(edge.tunnel.resumed).toEqual([
    {
      callId: edge.tunnel.calls[0]?.callId,
      answers: { k1: '{"action":"accept","content":{}}', k3: '{"roots":[]}' },
      asked: ["k1", "k2", "k3"],
    },
  ]);
  // The object knows at once that nobody reads, so that the call is parked and not counted as in flight.
  expect(edge.tunnel.detached).toEqual([edge.tunnel.calls[0]?.callId]);
});

test("a retry that leaves something open is asked again, with a state that works", async () => {
  const edge = asking(["k1", FORM], ["k2", FORM]);
  const { requestState } = required(await edge.exchange(call()));
  edge.tunnel.onResume = (callId, answers) => {
    const open = ["k1", "k2"].filter((askId) => answers[askId] === undefined);
    // The object repeats an open ask as it was, under its old position.
    return open.length === 0
      ? whole(resultMessage(callId, { content: [] }))
      : inSteps([...open.map((askId) => ask(callId, 1, askId, FORM)), never]);
  };
  const again = required(await edge.exchange(call(CAPABILITIES, { inputResponses: { k1: { action: "accept" } }, requestState })));
  expect([again.resultType, Object.keys(again.inputRequests)]).toEqual(["input_required", ["k2"]]);
  const both = { k1: { action: "accept" }, k2: { action: "decline" } };
  const last = await edge.exchange(call(CAPABILITIES, { inputResponses: both, requestState: again.requestState }));
  expect(last.json).toMatchObject({ result: { resultType: "complete" } });
});

test("R91: a state that is changed, foreign, for another request or expired is -32602 and reaches nobody", async () => {
  const edge = asking(["k1", FORM]);
  const { requestState } = required(await edge.exchange(call()));
  const retry = async (change: () => void, more: Record<string, unknown> = {}): Promise<unknown> => {
    change();
    const { status, json } = await edge.exchange(call(CAPABILITIES, { inputResponses: {}, requestState, ...more }));
    Object.assign(edge, { grant: "g1", deviceId: "d1" });
    return [status, (json as { error?: { code: number } }).error?.code];
  };
  const bad = [200, -32602];
  const middle = requestState.length / 2;
  for (const at of [Math.floor(middle), requestState.length - 10]) {
    expect(await retry(nothing, { requestState: altered(requestState, at) })).toEqual(bad);
  }
  expect(await retry(nothing, { requestState: "ll1." })).toEqual(bad);
  expect(await retry(nothing, { arguments: { door: "back", b: 1 } })).toEqual(bad);
  expect(await retry(() => void (edge.grant = "g2"))).toEqual(bad);
  expect(await retry(() => void (edge.deviceId = "d2"))).toEqual(bad);
  const meta = modernMeta({ "io.modelcontextprotocol/clientCapabilities": CAPABILITIES });
  const other = modern("prompts/get", { name: "door.unlock", arguments: { door: "front", b: 1 }, requestState, _meta: meta });
  expect((await edge.exchange(other)).json).toMatchObject({ error: { code: -32602 } });
  expect(await retry(() => void (edge.now += LIMITS.inputTimeoutMs + LIMITS.expiredMs))).toEqual(bad);
  expect(edge.tunnel.resumed).toEqual([]);
});

test("R89: a requestState of the upstream's own passes untouched, both ways", async () => {
  const edge = new EdgeHarness();
  edge.tunnel.onCall = ({ callId }) =>
    whole(
      resultMessage(callId, '{"inputRequests":{"c":{"method":"elicitation/create","params":{}}},"requestState":"v1.9f\\u00e9"}', {
        resultType: "input_required",
      }),
    );
  const first = await edge.exchange(call());
  expect(first.text).toContain('"requestState":"v1.9f\\u00e9"');
  expect(first.json).toMatchObject({ result: { resultType: "input_required", inputRequests: { c: {} } } }); // R84
  await edge.exchange(call(CAPABILITIES, { inputResponses: { c: { action: "decline" } }, requestState: "v1.9fé" }));
  expect(JSON.parse(edge.tunnel.calls[1]?.payload ?? "")).toMatchObject({
    requestState: "v1.9fé",
    inputResponses: { c: { action: "decline" } },
  });
});

test.each([
  [{}, FORM, "elicitation/create", { elicitation: { form: {} } }],
  [{ elicitation: {} }, { mode: "url" }, "elicitation/create", { elicitation: { url: {} } }],
  [{ elicitation: { url: {} } }, FORM, "elicitation/create", { elicitation: { form: {} } }],
  [{}, {}, "sampling/createMessage", { sampling: {} }],
  [{ sampling: {} }, { tools: [] }, "sampling/createMessage", { sampling: { tools: {} } }],
  [{}, undefined, "roots/list", { roots: {} }],
] as const)(
  "R87, R88: a client with %j is not asked %j; it hears -32021 with status 400, and the call ends",
  async (capabilities, params, method, needed) => {
    const edge = asking(["k", params, method]);
    const { status, json } = await edge.exchange(call(capabilities));
    expect([status, json]).toMatchObject([400, { id: "a7", error: { code: -32021, data: { requiredCapabilities: needed } } }]);
    expect(edge.tunnel.cancelled).toHaveLength(1);
  },
);

test.each([
  ["R85 on a method that has no input", "tools/list", { requestState: "s" }, -32603],
  ["R86 with neither member", "tools/call", {}, -32603],
  [
    "R87 outside the declared capabilities",
    "tools/call",
    { inputRequests: { a: { method: "sampling/createMessage", params: {} } } },
    -32021,
  ],
  ["requests that are none", "tools/call", { inputRequests: { a: 1 } }, -32603],
])("a device's input_required %s is an error", async (_rule, method, payload, code) => {
  const edge = new EdgeHarness();
  edge.tunnel.onCall = ({ callId }) => whole(resultMessage(callId, payload, { resultType: "input_required" }));
  const { json } = await edge.exchange(method === "tools/list" ? modern(method) : call({}));
  expect(json).toMatchObject({ error: { code } });
});

async function legacy(version: string, capabilities: Record<string, unknown>) {
  const edge = new EdgeHarness();
  const opened = await edge.exchange({
    body: { jsonrpc: "2.0", id: 0, method: "initialize", params: { protocolVersion: version, capabilities } },
  });
  const headers = { "mcp-session-id": opened.headers.get("mcp-session-id") ?? "" };
  return { edge, headers, body: { jsonrpc: "2.0", id: 5, method: "tools/call", params: { name: "t" } } };
}

test("legacy: an ask is a server request on the stream, and its answer finds call and ask", async () => {
  const { edge, headers, body } = await legacy("2025-11-25", { elicitation: { url: {}, form: {} }, roots: {} });
  const answered = Promise.withResolvers<string>();
  edge.tunnel.onCall = ({ callId }) =>
    inSteps([
      ask(callId, 1, "k.1", { mode: "url", message: "m", url: "https://x.example" }),
      ask(callId, 2, "k2", undefined, "roots/list"),
      answered.promise.then(() => resultMessage(callId, { content: [] })),
    ]);
  const pending = edge.exchange({ body, headers });
  const { callId } = await vi_waitFor(() => edge.tunnel.calls[0]);
  const key = `${callId}:k.1`;
  const { status } = await edge.exchange({ headers, body: { jsonrpc: "2.0", id: key, result: { action: "accept" } } });
  answered.resolve("");
  const { events } = await pending;
  expect(status).toBe(202);
  expect(events).toEqual([
    {
      jsonrpc: "2.0",
      id: key,
      method: "elicitation/create",
      params: { elicitationId: key, mode: "url", message: "m", url: "https://x.example" },
    },
    { jsonrpc: "2.0", id: `${callId}:k2`, method: "roots/list" },
    { jsonrpc: "2.0", id: 5, result: { content: [] } },
  ]);
  expect(edge.tunnel.answered).toEqual([{ session: "s-1", askKey: key, kind: "result", payload: '{"action":"accept"}' }]);
  expect(readAskKey(key)).toEqual({ callId, askId: "k.1" });
});

async function vi_waitFor<T>(get: () => T | undefined): Promise<T> {
  for (;;) {
    const value = get();
    if (value !== undefined) return value;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

test.each([
  ["R133 without the capability", "2025-11-25", {}, FORM, {}],
  ["a URL before 2025-11-25", "2025-06-18", { elicitation: { url: {} } }, { mode: "url" }, {}],
  ["a client that takes JSON only", "2025-11-25", { elicitation: {} }, FORM, { accept: "application/json" }],
])("legacy: %s, an ask is declined at once", async (_what, version, capabilities, params, more) => {
  const { edge, headers, body } = await legacy(version, capabilities);
  edge.tunnel.onCall = ({ callId }) => inSteps([ask(callId, 1, "k", params), resultMessage(callId, { content: [] })]);
  const { json } = await edge.exchange({ body, headers: { ...headers, ...more } });
  expect(json).toEqual({ jsonrpc: "2.0", id: 5, result: { content: [] } });
  expect(edge.tunnel.answered).toMatchObject([{ kind: "error", askKey: `${edge.tunnel.calls[0]?.callId}:k` }]);
});

test("legacy without a session cannot be asked: the call ends and says what is needed", async () => {
  const edge = asking(["k", FORM]);
  const { json } = await edge.exchange({ body: { jsonrpc: "2.0", id: 5, method: "tools/call", params: { name: "t" } } });
  expect(json).toMatchObject({ id: 5, error: { code: 1007, data: { reason: "upstream_failed" } } });
  expect(edge.tunnel.cancelled).toHaveLength(1);
});
