import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { AgentFrame } from "../../src/tunnel/frames.ts";
import { EdgeHarness, modern, modernMeta, read } from "../support/edge-harness.ts";
import { inSteps, message, resultMessage, whole } from "../support/fake-tunnel.ts";

const CALL = { name: "lamp.set", arguments: {} };
const withMeta = (meta: Record<string, unknown>) => modern("tools/call", { ...CALL, _meta: meta });
const legacyCall = (meta?: unknown) => ({
  body: { jsonrpc: "2.0", id: 9, method: "tools/call", params: { ...CALL, ...(meta === undefined ? {} : { _meta: meta }) } },
});

function progress(callId: string, seq: number, params: unknown) {
  return message({ type: "event", callId, seq, method: "notifications/progress" }, params);
}
function log(callId: string, seq: number, level: string) {
  return message({ type: "event", callId, seq, method: "notifications/message" }, { level, data: level });
}
const methods = (events: unknown[]) => events.map((e) => (e as { method?: string }).method ?? "answer");

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval"] });
});
afterEach(() => {
  vi.useRealTimers();
});

test("R69, R71, R76, R78: progress comes first, with the caller's own token, growing only; then one answer and the end", async () => {
  const edge = new EdgeHarness();
  edge.tunnel.onCall = ({ callId }) =>
    inSteps([
      progress(callId, 1, { progress: 1, total: 3, progressToken: "foreign" }),
      progress(callId, 2, { progress: 1 }),
      progress(callId, 3, { progress: "2" }),
      progress(callId, 4, { progress: 2.5, message: "a\nb" }),
      resultMessage(callId, '{\r\n "content": [],\n "n": 12345678901234567890 }'),
    ]);
  const sent = withMeta({ progressToken: "TOKEN" });
  const { headers, events, text, status } = await edge.exchange({
    headers: sent.headers,
    text: JSON.stringify(sent.body).replace('"TOKEN"', "1.0"),
  });
  expect([status, headers.get("content-type"), headers.get("x-accel-buffering"), headers.get("cache-control")]).toEqual([
    200,
    "text/event-stream",
    "no",
    "no-cache, no-transform",
  ]);
  expect(events).toEqual([
    { jsonrpc: "2.0", method: "notifications/progress", params: { progressToken: 1, progress: 1, total: 3 } },
    { jsonrpc: "2.0", method: "notifications/progress", params: { progressToken: 1, progress: 2.5, message: "a\nb" } },
    { jsonrpc: "2.0", id: "a7", result: { resultType: "complete", content: [], n: Number("12345678901234567890") } },
  ]);
  expect(text).toContain('"progressToken":1.0,');
  expect(text).toContain("12345678901234567890");
  expect(text).not.toMatch(/^(id|event|retry):/m);
  await edge.settled();
  expect(edge.tunnel.deliveredIds).toHaveLength(1);
});

test("R76, R79: without a token there is no progress, without a level no log", async () => {
  const edge = new EdgeHarness();
  edge.tunnel.onCall = ({ callId }) =>
    inSteps([progress(callId, 1, { progress: 1 }), log(callId, 2, "error"), resultMessage(callId, { content: [] })]);
  const { headers, json } = await edge.exchange(modern("tools/call", CALL));
  expect(headers.get("content-type")).toBe("application/json");
  expect(json).toMatchObject({ id: "a7", result: { content: [] } });
});

test("R80: logs come at or above the level asked for; a legacy caller gets what the session lets pass", async () => {
  const edge = new EdgeHarness();
  edge.tunnel.onCall = ({ callId }) =>
    inSteps([
      log(callId, 1, "info"),
      log(callId, 2, "warning"),
      log(callId, 3, "bogus"),
      log(callId, 4, "alert"),
      resultMessage(callId, {}),
    ]);
  const level = await edge.exchange(withMeta(modernMeta({ "io.modelcontextprotocol/logLevel": "warning" })));
  expect(level.events.slice(0, -1).map((e) => (e as { params: { level: string } }).params.level)).toEqual(["warning", "alert"]);
  const legacy = await edge.exchange(legacyCall());
  expect(legacy.events).toHaveLength(5);
});

test("a client that takes JSON only is never given a stream", async () => {
  const edge = new EdgeHarness();
  edge.tunnel.onCall = async ({ callId }) => {
    await vi.advanceTimersByTimeAsync(5_000);
    return inSteps([progress(callId, 1, { progress: 1 }), resultMessage(callId, { content: [] })]);
  };
  for (const accept of ["application/json", "*/*", "application/json, text/event-stream;q=0"]) {
    const sent = withMeta({ progressToken: 1 });
    const { headers, json } = await edge.exchange({ ...sent, headers: { ...sent.headers, accept } });
    expect([headers.get("content-type"), json]).toMatchObject(["application/json", { id: "a7", result: {} }]);
  }
  expect(edge.tunnel.calls.map((c) => c.canStream)).toEqual([false, false, false]);
});

test("R72: after a second the answer becomes a stream; comments come at once and on the timer; the error in it keeps its id", async () => {
  const edge = new EdgeHarness();
  edge.keepAliveMs = 5_000;
  const gate = Promise.withResolvers<void>();
  edge.tunnel.onCall = async () => {
    await gate.promise;
    return { ok: false, refusal: { kind: "failure", failure: { reason: "device_timeout", outcome: "unknown", data: { limitMs: 1 } } } };
  };
  const pending = edge.send(modern("tools/call", CALL));
  await vi.advanceTimersByTimeAsync(1_000);
  const response = await pending;
  expect(response.headers.get("content-type")).toBe("text/event-stream");
  const reading = read(response);
  await vi.advanceTimersByTimeAsync(10_500);
  gate.resolve();
  const { comments, events } = await reading;
  expect(comments).toBe(3);
  expect(events).toMatchObject([{ id: "a7", error: { code: 1002, data: { reason: "device_timeout", limitMs: 1 } } }]);
  await edge.settled();
  expect(vi.getTimerCount()).toBe(0);
});

test("R83: a refusal that comes before the commit keeps its status", async () => {
  const edge = new EdgeHarness();
  edge.tunnel.onCall = async () => ({ ok: false, refusal: { kind: "header", message: "no" } });
  expect((await edge.exchange(modern("tools/call", CALL))).status).toBe(400);
  expect(vi.getTimerCount()).toBe(0);
});

/** An abort signal that fires when the test says so, and a call that waits. */
function waiting(edge: EdgeHarness) {
  const gate = Promise.withResolvers<void>();
  edge.tunnel.onCall = async ({ callId }) => {
    await gate.promise;
    return whole(resultMessage(callId, { content: [] }));
  };
  return gate;
}

test("R73, R75: a modern client that leaves while JSON is pending cancels its own call", async () => {
  const edge = new EdgeHarness();
  const gate = waiting(edge);
  const leaving = new AbortController();
  const pending = edge.send({ ...modern("tools/call", CALL), signal: leaving.signal });
  const other = edge.send(modern("tools/call", CALL, "other"));
  await vi.advanceTimersByTimeAsync(10);
  leaving.abort();
  gate.resolve();
  await pending;
  expect((await read(await other)).json).toMatchObject({ id: "other", result: {} });
  await edge.settled();
  expect(edge.tunnel.cancelled).toEqual([{ callId: edge.tunnel.calls[0]?.callId, reason: "caller_left" }]);
});

test("R74: a modern client that closes its stream cancels; nothing is written after that, and no timer stays", async () => {
  const edge = new EdgeHarness();
  const gate = waiting(edge);
  const pending = edge.send(modern("tools/call", CALL));
  await vi.advanceTimersByTimeAsync(1_000);
  const response = await pending;
  await response.body?.cancel();
  await vi.advanceTimersByTimeAsync(60_000);
  gate.resolve();
  await edge.settled();
  expect(edge.tunnel.cancelled).toHaveLength(1);
  expect(vi.getTimerCount()).toBe(0);
});

test.each([
  ["prompts/get", { name: "p" }],
  ["resources/read", { uri: "file:///a" }],
  ["completion/complete", { ref: { type: "ref/prompt", name: "p" }, argument: { name: "a", value: "" } }],
])("B5: leaving cancels a %s too", async (method, params) => {
  const edge = new EdgeHarness();
  const gate = waiting(edge);
  const leaving = new AbortController();
  const pending = edge.send({ ...modern(method, params), signal: leaving.signal });
  await vi.advanceTimersByTimeAsync(10);
  leaving.abort();
  gate.resolve();
  await pending;
  await edge.settled();
  expect(edge.tunnel.cancelled).toEqual([{ callId: edge.tunnel.calls[0]?.callId, reason: "caller_left" }]);
});

test("R128: a legacy client that leaves does not cancel", async () => {
  const edge = new EdgeHarness();
  const gate = waiting(edge);
  const leaving = new AbortController();
  const pending = edge.send({ ...legacyCall(), signal: leaving.signal });
  await vi.advanceTimersByTimeAsync(1_000);
  const response = await pending;
  leaving.abort();
  await response.body?.cancel();
  gate.resolve();
  await edge.settled();
  expect(edge.tunnel.cancelled).toEqual([]);
});

const cancelled = (by: string): AgentFrame => ({
  type: "error",
  callId: "c_1234567890123456789012",
  seq: 1,
  origin: "agent",
  reason: "cancelled",
  outcome: "unknown",
  message: "m",
  data: { by },
});

test("nothing is delivered to a legacy caller that cancelled; one whose call somebody else ended is told", async () => {
  const edge = new EdgeHarness();
  edge.tunnel.onCall = async () => whole(message(cancelled("caller_asked")));
  const silent = await edge.exchange(legacyCall());
  expect([silent.status, silent.headers.get("content-type"), silent.text]).toEqual([200, "text/event-stream", ""]);
  edge.tunnel.onCall = async () => whole(message(cancelled("revoked")));
  expect((await edge.exchange(legacyCall())).json).toMatchObject({ id: 9, error: { code: 1009 } });
});

/** A request of a client that is never given a stream. */
function jsonOnly() {
  const sent = modern("tools/call", CALL);
  return { ...sent, headers: { ...sent.headers, accept: "application/json" } };
}

const bytes = (text: string) => new TextEncoder().encode(text);
function chunk(callId: string, offset: number, content: Uint8Array) {
  return message({ type: "chunk", stream: callId, offset }, content);
}

test("a result in chunks flows on as JSON to who takes only that, else as one line of SSE", async () => {
  const edge = new EdgeHarness();
  const payload = bytes('{"content":[{"type":"text",\n"text":"zürich"}]}');
  const steps = (callId: string) => [
    resultMessage(callId, undefined, { bytes: payload.length }),
    chunk(callId, 0, payload.subarray(0, 1)),
    chunk(callId, 1, payload.subarray(1, 37)),
    chunk(callId, 37, payload.subarray(37)),
  ];
  edge.tunnel.onCall = ({ callId }) => inSteps(steps(callId));
  const plain = await edge.exchange(jsonOnly());
  const expected = { id: "a7", result: { resultType: "complete", content: [{ type: "text", text: "zürich" }] } };
  expect([plain.headers.get("content-type"), plain.json]).toMatchObject(["application/json", expected]);
  edge.tunnel.onCall = ({ callId }) => inSteps([progress(callId, 1, { progress: 1 }), ...steps(callId)]);
  const stream = await edge.exchange(withMeta({ progressToken: 1 }));
  expect(methods(stream.events)).toEqual(["notifications/progress", "answer"]);
  expect(stream.events[1]).toMatchObject(expected);
  edge.tunnel.onCall = ({ callId }) => inSteps(steps(callId));
  const quick = await edge.exchange(modern("tools/call", CALL));
  expect([quick.headers.get("content-type"), quick.events]).toMatchObject(["text/event-stream", [expected]]);
  await edge.settled();
  expect(edge.tunnel.deliveredIds).toHaveLength(3);
});

test("a chunked result that breaks off for good ends the JSON body of who takes only that, else with a JSON-RPC error", async () => {
  const edge = new EdgeHarness();
  edge.tunnel.onCall = ({ callId }) => inSteps([resultMessage(callId, undefined, { bytes: 100 }), chunk(callId, 0, bytes('{"a":')), null]);
  edge.tunnel.onAttach = () => ({ ok: false, refusal: { kind: "failure", failure: { reason: "agent_restarted", outcome: "unknown" } } });
  const response = await edge.send(jsonOnly());
  await expect(response.text()).rejects.toThrow();
  const quick = await edge.exchange(modern("tools/call", CALL));
  expect(quick.events.at(-1)).toMatchObject({ id: "a7", error: { code: 1004, data: { outcome: "unknown" } } });
  edge.tunnel.onCall = ({ callId }) =>
    inSteps([
      progress(callId, 1, { progress: 1 }),
      resultMessage(callId, undefined, { bytes: 100 }),
      chunk(callId, 0, bytes('{"a":')),
      null,
    ]);
  const { events } = await edge.exchange(withMeta({ progressToken: 1 }));
  expect(events.at(-1)).toMatchObject({ id: "a7", error: { code: 1004, data: { outcome: "unknown" } } });
  await edge.settled();
});

test("a call that has told progress, or begun its result, is never said to be not started", async () => {
  const edge = new EdgeHarness();
  const never: AgentFrame = {
    type: "error",
    callId: "c_1234567890123456789012",
    seq: 2,
    origin: "agent",
    reason: "tunnel_lost",
    outcome: "not_started",
    message: "The call did not reach the device.",
  };
  const expected = { id: "a7", error: { code: 1003, data: { outcome: "unknown" } } };
  edge.tunnel.onAttach = () => whole(message(never));
  edge.tunnel.onCall = ({ callId }) => inSteps([progress(callId, 1, { progress: 1 }), null]);
  expect((await edge.exchange(withMeta({ progressToken: 1 }))).events.at(-1)).toMatchObject(expected);
  edge.tunnel.onCall = ({ callId }) => inSteps([resultMessage(callId, undefined, { bytes: 100 }), chunk(callId, 0, bytes('{"a":')), null]);
  expect((await edge.exchange(modern("tools/call", CALL))).events.at(-1)).toMatchObject(expected);
  edge.tunnel.onCall = () => {
    throw new Error("reset");
  };
  expect((await edge.exchange(modern("tools/call", CALL))).json).toMatchObject({ error: { code: 1003, data: { outcome: "not_started" } } });
  await edge.settled();
});

test("a lost object is attached to again with a fresh stub, from the last position, and nothing is repeated", async () => {
  const edge = new EdgeHarness();
  const payload = bytes('{"content":[],"more":true}');
  edge.tunnel.onCall = ({ callId }) =>
    inSteps([
      progress(callId, 1, { progress: 1 }),
      progress(callId, 2, { progress: 2 }),
      resultMessage(callId, undefined, { seq: 3, bytes: payload.length }),
      chunk(callId, 0, payload.subarray(0, 5)),
      null,
    ]);
  const seen: unknown[] = [];
  edge.tunnel.onAttach = (callId, seq, offset) => {
    seen.push([seq, offset]);
    return inSteps([
      resultMessage(callId, undefined, { seq: 3, bytes: payload.length }),
      chunk(callId, 3, payload.subarray(3, 9)),
      chunk(callId, 9, payload.subarray(9)),
    ]);
  };
  const { events } = await edge.exchange(withMeta({ progressToken: 1 }));
  expect(methods(events)).toEqual(["notifications/progress", "notifications/progress", "answer"]);
  expect(events[2]).toMatchObject({ result: { content: [], more: true } });
  expect(seen).toEqual([[2, 5]]);
});

test("a call whose RPC fails is attached to, never sent again; after the tries it is tunnel_lost", async () => {
  const edge = new EdgeHarness();
  edge.tunnel.onCall = () => {
    throw Object.assign(new Error("reset"), { durableObjectReset: true });
  };
  edge.tunnel.onAttach = (callId) => whole(resultMessage(callId, { content: [] }));
  expect((await edge.exchange(modern("tools/call", CALL))).status).toBe(200);
  expect([edge.tunnel.calls.length, edge.tunnel.attached]).toMatchObject([1, [{ seq: 0, offset: 0 }]]);
  edge.tunnel.onAttach = () => {
    throw new Error("reset again");
  };
  const lost = await edge.exchange(modern("tools/call", CALL));
  expect([lost.status, lost.json]).toMatchObject([200, { error: { code: 1003, data: { reason: "tunnel_lost", outcome: "unknown" } } }]);
  expect([edge.tunnel.calls.length, edge.tunnel.attached.length]).toEqual([2, 4]);
});

test("an overloaded object is not asked again", async () => {
  const edge = new EdgeHarness();
  edge.tunnel.onCall = () => {
    throw Object.assign(new Error("busy"), { overloaded: true });
  };
  const { json } = await edge.exchange(modern("tools/call", CALL));
  expect(json).toMatchObject({ error: { code: 1006, data: { reason: "rate_limited", outcome: "unknown" } } });
  expect(edge.tunnel.attached).toEqual([]);
});

const named = (name: string) => modern("tools/call", { name, _meta: { progressToken: 0 } }, 1);

test("R77, B1: two calls with one id and one token get their own traffic only", async () => {
  const edge = new EdgeHarness();
  edge.tunnel.onCall = ({ callId, target }) =>
    inSteps([progress(callId, 1, { progress: 1, message: target }), resultMessage(callId, { who: target })]);
  const [a, b] = await Promise.all([edge.exchange(named("A")), edge.exchange(named("B"))]);
  expect([JSON.stringify(a.events).includes("B"), JSON.stringify(b.events).includes('"A"')]).toEqual([false, false]);
  expect(edge.tunnel.calls[0]?.callId).not.toBe(edge.tunnel.calls[1]?.callId);
});

test("written outcomes travel with the next call to the device, or are told alone after a moment", async () => {
  const edge = new EdgeHarness();
  const gate = Promise.withResolvers<void>();
  edge.pause = () => gate.promise;
  await edge.exchange(modern("tools/call", CALL));
  await edge.exchange(modern("tools/call", CALL));
  await edge.exchange(modern("tools/call", CALL));
  const [first, second, third] = edge.tunnel.calls;
  expect(edge.tunnel.calls.map((call) => call.delivered)).toEqual([undefined, [first?.callId], [second?.callId]]);
  expect(edge.tunnel.deliveredIds).toEqual([]);
  gate.resolve();
  await edge.settled();
  expect(edge.tunnel.deliveredIds).toEqual([third?.callId]);
});
