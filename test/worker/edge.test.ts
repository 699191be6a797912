import { abortAllDurableObjects, evictAllDurableObjects } from "cloudflare:test";
import { env, exports } from "cloudflare:workers";
import { afterEach, expect, test } from "vitest";
import { addDevice, addToken, startRelay } from "./api-support.ts";
import { Caller, connect, eventsOf, type ScriptedAgent, VERSION } from "./edge-support.ts";

const agents: ScriptedAgent[] = [];
afterEach(() => {
  for (const agent of agents.splice(0)) agent.close();
});

/** A device with a token, and an agent unless it shall never have connected. */
async function device(body?: Record<string, unknown>, isBorn = true) {
  const relay = await startRelay({ TUNNEL: env.TUNNEL });
  const added = await addDevice(relay);
  const { token, grant, mcpUrl } = await addToken(relay, added.device, { for: "a test", ...body });
  const caller = new Caller(mcpUrl, token);
  if (!isBorn) return { relay, added, caller, grant, token, mcpUrl };
  const agent = await connect(added.deviceKey);
  agents.push(agent);
  return { relay, added, caller, grant, token, mcpUrl, agent };
}
type Online = Awaited<ReturnType<typeof device>> & { agent: ScriptedAgent };
const online = (body?: Record<string, unknown>): Promise<Online> => device(body) as Promise<Online>;

test("R1: a modern call reaches the agent in canonical form and comes back as JSON, with and without a trailing slash", async () => {
  const { caller, agent, mcpUrl, token } = await online();
  const response = await caller.modern("tools/call", { name: "other", arguments: { a: 1 }, meta: { traceparent: "00-x" } }, {}, "a7");
  expect([response.status, await response.json()]).toEqual([
    200,
    { jsonrpc: "2.0", id: "a7", result: { resultType: "complete", content: [{ type: "text", text: "ok" }] } },
  ]);
  const { frame, payload } = await agent.until((m) => m.frame.type === "call" && m.frame.method === "tools/call");
  expect(frame).toMatchObject({ target: "other", meta: { traceparent: "00-x" }, client: { era: "modern", protocol: VERSION } });
  expect(payload).toBe('{"arguments":{"a":1}}');
  expect(JSON.stringify(agent.received)).not.toContain(token); // R140
  const slash = await new Caller(`${mcpUrl}/`, token).modern("tools/list");
  expect(await slash.json()).toMatchObject({ result: { ttlMs: 0, cacheScope: "private", tools: [{ name: "echo" }, { name: "other" }] } });
});

test("the agent is told that the outcome is written", async () => {
  const { caller, agent } = await online();
  await (await caller.modern("tools/call", { name: "other" })).text();
  const { frame } = await agent.until((m) => m.frame.type === "delivered");
  const call = agent.received.find((m) => m.frame.type === "call")?.frame;
  expect(frame).toMatchObject({ callIds: [(call as { callId: string }).callId] });
});

test("R36, R37: a parameter header is checked against the schema of the catalogue", async () => {
  const { caller } = await online();
  await (await caller.modern("tools/list")).text();
  const call = { name: "echo", arguments: { room: "attic" } };
  const status = async (headers: Record<string, string>): Promise<unknown> => {
    const response = await caller.modern("tools/call", call, headers);
    return [response.status, (await response.json<{ error?: { code: number } }>()).error?.code];
  };
  expect(await status({})).toEqual([400, -32020]);
  expect(await status({ "mcp-param-room": "cellar" })).toEqual([400, -32020]);
  expect(await status({ "mcp-param-room": "=?base64?YXR0aWM=?=" })).toEqual([200, undefined]);
});

test("R69, R71: progress streams with the caller's token, then the answer", async () => {
  const { caller, agent } = await online();
  agent.onCall = ({ callId }) => {
    agent.send({ type: "event", callId, seq: 1, method: "notifications/progress" }, '{"progress":1}');
    agent.result(callId, { content: [] });
  };
  const response = await caller.modern("tools/call", { name: "other", meta: { progressToken: 0 } });
  expect(response.headers.get("x-accel-buffering")).toBe("no");
  expect(await eventsOf(response)).toEqual([
    { jsonrpc: "2.0", method: "notifications/progress", params: { progressToken: 0, progress: 1 } },
    { jsonrpc: "2.0", id: 1, result: { resultType: "complete", content: [] } },
  ]);
});

test("R73: closing the stream cancels the call at the agent", async () => {
  const { caller, agent } = await online();
  agent.onCall = ({ callId }) => agent.send({ type: "event", callId, seq: 1, method: "notifications/progress" }, '{"progress":1}');
  const response = await caller.modern("tools/call", { name: "other", meta: { progressToken: 0 } });
  const reader = response.body?.getReader();
  await reader?.read();
  await reader?.cancel();
  const { frame } = await agent.until((m) => m.frame.type === "cancel");
  expect(frame).toMatchObject({ reason: "caller_left" });
});

test("a result in chunks arrives whole", async () => {
  const { caller, agent } = await online();
  const text = "zürich".repeat(20_000);
  const bytes = new TextEncoder().encode(JSON.stringify({ content: [{ type: "text", text }] }));
  agent.onCall = ({ callId }) => {
    agent.send({ type: "result", callId, seq: 1, protocol: VERSION, bytes: bytes.length });
    const send = (from: number, to: number): void => agent.send({ type: "chunk", stream: callId, offset: from }, bytes.subarray(from, to));
    send(0, 50_001);
    void agent.until((m) => m.frame.type === "credit").then(() => send(50_001, bytes.length));
  };
  // A client that takes JSON only, so that a slow machine does not make a stream of it.
  const response = await caller.modern("tools/call", { name: "other" }, { accept: "application/json" });
  expect(await response.json()).toMatchObject({ result: { content: [{ text }] } });
});

test("legacy: initialize, a call in the session, DELETE, then 404; the session survives an eviction", async () => {
  const { caller } = await online();
  const session = await caller.open("2025-06-18");
  expect((await caller.legacy(session, "tools/call", { name: "other" })).status).toBe(200);
  await evictAllDurableObjects();
  expect(await (await caller.legacy(session, "ping")).json()).toEqual({ jsonrpc: "2.0", id: 1, result: {} });
  const ended = await caller.send(undefined, { "mcp-session-id": session }, { method: "DELETE" });
  expect(ended.status).toBe(204);
  expect((await caller.legacy(session, "ping")).status).toBe(404);
});

test("legacy: an ask goes out on the stream, its answer comes by POST and reaches the agent", async () => {
  const { caller, agent } = await online();
  const session = await caller.open("2025-11-25", { elicitation: {} });
  agent.onCall = ({ callId }) =>
    agent.send({ type: "ask", callId, seq: 1, askId: "k", method: "elicitation/create" }, '{"message":"m","requestedSchema":{}}');
  const response = await caller.legacy(session, "tools/call", { name: "other" });
  const { frame: call } = await agent.until((m) => m.frame.type === "call");
  const { callId } = call as { callId: string };
  const answered = await caller.send({ jsonrpc: "2.0", id: `${callId}:k`, result: { action: "accept" } }, { "mcp-session-id": session });
  expect(answered.status).toBe(202);
  const { frame, payload } = await agent.until((m) => m.frame.type === "answer");
  expect([frame, payload]).toMatchObject([{ callId, askId: "k", kind: "result" }, '{"action":"accept"}']);
  agent.result(callId, { content: [] });
  expect(await eventsOf(response)).toMatchObject([
    { id: `${callId}:k`, method: "elicitation/create" },
    { id: 1, result: {} },
  ]);
});

test("modern: a legacy device's ask becomes input_required; the retry continues the parked call, once", async () => {
  const { caller, agent } = await online();
  const meta = { "io.modelcontextprotocol/clientCapabilities": { elicitation: {} } };
  agent.onCall = ({ callId }) => {
    agent.send({ type: "ask", callId, seq: 1, askId: "k", method: "elicitation/create" }, '{"message":"m","requestedSchema":{}}');
    void agent.until((m) => m.frame.type === "answer").then(() => agent.result(callId, { content: [] }, { seq: 2 }));
  };
  const first = await caller.modern("tools/call", { name: "other", meta });
  const { result } = await first.json<{ result: { requestState: string; resultType: string } }>();
  expect(result).toMatchObject({ resultType: "input_required", inputRequests: { k: { method: "elicitation/create" } } });
  const retry = { name: "other", inputResponses: { k: { action: "accept" } }, requestState: result.requestState, meta };
  const second = await caller.modern("tools/call", retry, {}, 2);
  expect(await second.json()).toMatchObject({ id: 2, result: { resultType: "complete", content: [] } });
  expect(agent.received.filter((m) => m.frame.type === "call")).toHaveLength(1);
  expect(await (await caller.modern("tools/call", retry, {}, 3)).json()).toMatchObject({ id: 3, error: { code: -32602 } });
});

test("a call survives the loss of its object: the edge attaches again and the agent runs it once", async () => {
  const { caller, agent, added } = await online();
  agent.onCall = () => undefined;
  const pending = caller.modern("tools/call", { name: "other" });
  const { frame } = await agent.until((m) => m.frame.type === "call");
  const { callId } = frame as { callId: string };
  await abortAllDurableObjects();
  const next = await connect(added.deviceKey);
  agents.push(next);
  next.onCall = () => undefined;
  // The scripted agent forgot the call, so the object can only say so.
  const response = await pending;
  const answer = response.headers.get("content-type") === "text/event-stream" ? (await eventsOf(response))[0] : await response.json();
  expect(answer).toMatchObject({ error: { data: { reason: "agent_restarted", outcome: "unknown" } } });
  expect(next.received.filter((m) => m.frame.type === "call" && m.frame.callId === callId)).toEqual([]);
});

test("R138: a call beyond the grant is 403 with all scopes; an excluded tool looks like an unknown one", async () => {
  const { caller } = await online({ tools: ["oth*", "!other"] });
  const beyond = await caller.modern("tools/call", { name: "echo", arguments: {} });
  expect([beyond.status, await beyond.json()]).toMatchObject([403, { id: 1, error: {} }]);
  expect(beyond.headers.get("www-authenticate")).toMatch(
    /insufficient_scope.*scope="device:read device:call tool:echo".*resource_metadata=/,
  );
  const absent = await caller.modern("tools/call", { name: "other" });
  expect([absent.status, await absent.json()]).toMatchObject([200, { error: { code: -32602 } }]);
});

test.each([
  ["name", '"method":"tools/call","params":{"name":"echo","name":"other","arguments":{}}'],
  ["method", '"method":"tools/list","method":"tools/call","params":{"name":"other","arguments":{}}'],
  ["params", '"method":"tools/call","params":{"name":"echo","arguments":{}},"params":{"name":"other","arguments":{}}'],
])("a body that says its %s twice is decided on what would run", async (_what, members) => {
  const { caller } = await online({ tools: ["echo"] });
  expect((await caller.send(`{"jsonrpc":"2.0","id":1,${members}}`)).status).toBe(403);
});

test("a revoked token stops at the next call; R136: no or a foreign token is 401 on POST, GET and DELETE in both eras", async () => {
  const { relay, caller, grant, mcpUrl } = await online();
  const other = await device();
  const session = { "mcp-session-id": "s" };
  for (const method of ["POST", "GET", "DELETE"]) {
    for (const token of ["", other.token]) {
      const { status, headers } = await new Caller(mcpUrl, token).send(undefined, session, { method });
      expect([status, headers.get("www-authenticate")]).toEqual([401, expect.stringContaining("resource_metadata=")]);
    }
  }
  expect((await caller.modern("tools/call", { name: "other" })).status).toBe(200);
  const revoked = await relay.asOwner("DELETE", `/api/tokens/${grant}`);
  expect(revoked.ok).toBe(true);
  expect((await caller.modern("tools/call", { name: "other" })).status).toBe(401);
});

test("R2: GET and DELETE without a session are 405 with Allow before anybody is asked for a token", async () => {
  const { mcpUrl } = await device({}, false);
  for (const method of ["GET", "DELETE", "PUT"]) {
    const response = await exports.default.fetch(mcpUrl, { method });
    expect([response.status, response.headers.get("allow")]).toEqual([405, "POST"]);
  }
});

test("a device that never connected answers with empty lists and says so, and no object is made for it", async () => {
  const { caller } = await device({}, false);
  expect(await (await caller.modern("tools/list")).json()).toMatchObject({ result: { tools: [] } });
  expect(await (await caller.modern("server/discover")).text()).toContain("never connected");
  expect(await (await caller.modern("tools/call", { name: "x" })).json()).toMatchObject({ error: { data: { reason: "device_offline" } } });
  expect(await caller.open("2025-06-18")).toBe("");
});

test("a device that is away: discover and lists from the catalogue, calls offline within seconds", async () => {
  const { caller, agent } = await online();
  expect(await (await caller.modern("tools/list")).json()).toMatchObject({ result: { tools: [{}, {}] } });
  agent.close();
  await evictAllDurableObjects();
  expect(await (await caller.modern("server/discover")).json()).toMatchObject({
    result: { ttlMs: 0, _meta: { "dev.longline/offline": true } },
  });
  expect(await (await caller.modern("tools/list")).json()).toMatchObject({ result: { tools: [{ name: "echo" }, { name: "other" }] } });
  expect(await (await caller.modern("tools/call", { name: "other" })).json()).toMatchObject({
    error: { code: 1001, data: { reason: "device_offline", outcome: "not_started" } },
  });
});

test("413 for a body over the cap, also when its length is not announced", async () => {
  const { caller } = await device({}, false);
  const big = new Uint8Array(8 * 1024 * 1024 + 1);
  expect((await caller.send(undefined, {}, { body: big })).status).toBe(413);
  const chunked = new ReadableStream({
    start(controller) {
      controller.enqueue(big);
      controller.close();
    },
  });
  expect((await caller.send(undefined, {}, { body: chunked })).status).toBe(413);
});
