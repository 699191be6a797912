/** Change notices at the edge: `subscriptions/listen` and the stream of a legacy session, over a scripted object. */
import { describe, expect, test, vi } from "vitest";
import { LISTEN } from "../../src/limits.ts";
import { LISTEN_CLOSE } from "../../src/tunnel/notices.ts";
import { EdgeHarness, modern, read } from "../support/edge-harness.ts";
import { EventReader } from "../support/event-reader.ts";
import { FakeListeners } from "../support/fake-listener.ts";

const SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId";

function listening() {
  const edge = new EdgeHarness();
  const object = new FakeListeners();
  edge.listen = object.listen;
  const listen = (notifications: unknown, id: unknown = 7) => edge.send(modern("subscriptions/listen", { notifications }, id));
  return { edge, object, listen };
}

/** A session, and a GET on it. */
async function inSession() {
  const { edge, object } = listening();
  const opened = await edge.send({
    body: { jsonrpc: "2.0", id: 0, method: "initialize", params: { protocolVersion: "2025-11-25", capabilities: {} } },
  });
  const session = opened.headers.get("mcp-session-id") ?? "";
  const get = (headers: Record<string, string> = {}) =>
    edge.send({ method: "GET", headers: { "mcp-session-id": session, accept: "text/event-stream", ...headers } });
  return { edge, object, session, get };
}

describe("subscriptions/listen", () => {
  test.each([7, "7", 0, "", -3, "ünï"])("R92, R93: acknowledges first, and every message carries the id %j", async (id) => {
    const { object, listen } = listening();
    const response = await listen({ toolsListChanged: true, resourceSubscriptions: ["file:///a"] }, id);
    expect([response.status, response.headers.get("content-type")]).toEqual([200, "text/event-stream"]);
    expect([response.headers.get("cache-control"), response.headers.get("x-accel-buffering")]).toEqual(["no-cache, no-transform", "no"]);
    const events = new EventReader(response);
    expect(await events.next()).toEqual({
      jsonrpc: "2.0",
      method: "notifications/subscriptions/acknowledged",
      params: { _meta: { [SUBSCRIPTION]: id }, notifications: { toolsListChanged: true, resourceSubscriptions: ["file:///a"] } },
    });
    object.last.list("tools");
    expect(await events.next()).toEqual({
      jsonrpc: "2.0",
      method: "notifications/tools/list_changed",
      params: { _meta: { [SUBSCRIPTION]: id } },
    });
    object.last.say({ type: "resource", uri: "file:///a" });
    expect(await events.next()).toEqual({
      jsonrpc: "2.0",
      method: "notifications/resources/updated",
      params: { _meta: { [SUBSCRIPTION]: id }, uri: "file:///a" },
    });
    await events.cancel();
  });

  test("asks the object for what the client wants, and for nothing else", async () => {
    const { edge, object, listen } = listening();
    await listen({ promptsListChanged: true, toolsListChanged: false, resourceSubscriptions: ["u:1", "u:1"], taskIds: ["t"] });
    expect(object.last.facts).toEqual({ grant: edge.grant, filter: { lists: ["prompts"], resources: ["u:1"] } });
    await listen({});
    expect(object.last.facts.filter).toEqual({ lists: [], resources: [] });
  });

  test("R99: two listeners at once each get their own id, and one's end is not the other's", async () => {
    const { object, listen } = listening();
    const [a, b] = [
      new EventReader(await listen({ toolsListChanged: true }, "a")),
      new EventReader(await listen({ toolsListChanged: true }, "b")),
    ];
    await a.next();
    await b.next();
    await a.cancel();
    const [first, second] = object.all;
    await vi.waitFor(() => expect(first?.isClosed).toBe(true));
    second?.list("tools");
    expect(await b.next()).toMatchObject({ params: { _meta: { [SUBSCRIPTION]: "b" } } });
    expect(second?.isClosed).toBe(false);
  });

  test.each(Object.entries(LISTEN_CLOSE))("R96: ends with the closing result when the object ends it: %s", async (_why, code) => {
    const { object, listen } = listening();
    const events = new EventReader(await listen({ toolsListChanged: true }, "L1"));
    await events.next();
    object.last.list("tools");
    object.last.end(code);
    expect(await events.next()).toMatchObject({ method: "notifications/tools/list_changed" });
    expect(await events.next()).toEqual({ jsonrpc: "2.0", id: "L1", result: { resultType: "complete", _meta: { [SUBSCRIPTION]: "L1" } } });
    expect(await events.next()).toBeNull();
  });

  test("R96: ends with the closing result when the relay is about to end, and only then lets the object go", async () => {
    const { object, listen } = listening();
    const events = new EventReader(await listen({ toolsListChanged: true }, 9));
    await events.next();
    object.last.list("tools");
    object.last.say({ type: "end" });
    object.last.list("prompts");
    expect(object.last.isClosed).toBe(false);
    expect(await events.next()).toMatchObject({ method: "notifications/tools/list_changed" });
    expect(await events.next()).toEqual({ jsonrpc: "2.0", id: 9, result: { resultType: "complete", _meta: { [SUBSCRIPTION]: 9 } } });
    expect(await events.next()).toBeNull();
    await vi.waitFor(() => expect(object.last.isClosed).toBe(true));
    expect(object.all).toHaveLength(1);
  });

  test("finds the object again after it was lost, and says what it cannot know to be unchanged", async () => {
    const { object, listen } = listening();
    const events = new EventReader(await listen({ toolsListChanged: true, resourceSubscriptions: ["u:1"] }));
    await events.next();
    object.last.list("tools", 4);
    await events.next();
    object.instead.push(new Error("reset"));
    object.last.end(1006);
    expect(await events.next()).toMatchObject({ method: "notifications/resources/updated", params: { uri: "u:1" } });
    expect(object.all).toHaveLength(2);
    expect(object.last.facts.seen).toEqual({ tools: 4, prompts: 0, resources: 0 });
    object.last.list("tools", 5);
    expect(await events.next()).toMatchObject({ method: "notifications/tools/list_changed" });
    await events.cancel();
    await vi.waitFor(() => expect(object.last.isClosed).toBe(true));
  });

  test("ends in order when the object stays lost, or the grant is over when it is back", async () => {
    const losses = [
      Array.from({ length: 2 * LISTEN.reopenTries }, () => new Error("reset")),
      [{ ok: false, refusal: { kind: "grant" } } as const],
    ];
    for (const instead of losses) {
      const { object, listen } = listening();
      const events = new EventReader(await listen({ toolsListChanged: true }));
      await events.next();
      object.instead.push(...instead);
      object.last.end(1006);
      expect(await events.next()).toMatchObject({ id: 7, result: { resultType: "complete" } });
      expect(await events.next()).toBeNull();
    }
  });

  test("leaving by the request's signal closes the socket, once and for all", async () => {
    const { edge, object } = listening();
    const leave = new AbortController();
    const response = await edge.send({
      ...modern("subscriptions/listen", { notifications: { toolsListChanged: true } }),
      signal: leave.signal,
    });
    const events = new EventReader(response);
    await events.next();
    leave.abort();
    expect(object.last.isClosed).toBe(true);
    object.last.end(1000);
    expect(object.all).toHaveLength(1);
    await events.cancel();
  });

  test("a reader that takes nothing is not waited for without end; the same notice twice waits once", async () => {
    const { object, listen } = listening();
    await listen({ resourceSubscriptions: ["u:/"] });
    for (let n = 0; n < 10_000; n += 1) object.last.list("resources", n);
    object.last.say({ type: "resource", uri: `u:/${"a".repeat(1_000)}` });
    await Promise.resolve();
    expect(object.last.isClosed).toBe(false);
    for (let n = 0; n * 1_000 < LISTEN.waitingChars; n += 1) object.last.say({ type: "resource", uri: `u:/${n}${"a".repeat(1_000)}` });
    await vi.waitFor(() => expect(object.last.isClosed).toBe(true));
  });

  test("comments keep a quiet stream open, and the object hears nothing of it", async () => {
    const { edge, listen } = listening();
    edge.keepAliveMs = 5;
    const events = new EventReader(await listen({ toolsListChanged: true }));
    await events.next();
    expect(await events.block()).toBe(":");
    expect(await events.block()).toBe(":");
    await events.cancel();
  });

  test("messages that are none are ignored", async () => {
    const { object, listen } = listening();
    const events = new EventReader(await listen({ toolsListChanged: true }));
    await events.next();
    for (const data of ["{", "null", '{"type":"other"}', new Uint8Array([1])]) object.last.raw(data);
    object.last.list("tools");
    expect(await events.next()).toMatchObject({ method: "notifications/tools/list_changed" });
    await events.cancel();
  });

  test.each([
    [undefined],
    [[]],
    [{ toolsListChanged: "yes" }],
    [{ resourceSubscriptions: "u:1" }],
    [{ resourceSubscriptions: [1] }],
    [{ resourceSubscriptions: Array.from({ length: LISTEN.resources + 1 }, (_, n) => `u:${n}`) }],
    [{ resourceSubscriptions: Array.from({ length: 8 }, (_, n) => `u:${n}${"a".repeat(LISTEN.resourceChars / 8)}`) }],
  ])("a filter that is none is -32602: %j", async (notifications) => {
    const { object, listen } = listening();
    expect((await read(await listen(notifications))).json).toMatchObject({ id: 7, error: { code: -32602 } });
    expect(object.all).toEqual([]);
  });

  test("R98: without anything to tell it is a method that is not there", async () => {
    const { edge, object, listen } = listening();
    object.instead.push({ ok: false, refusal: { kind: "method" } });
    const none = await read(await listen({ toolsListChanged: true }));
    expect([none.status, none.json]).toEqual([404, expect.objectContaining({ error: expect.objectContaining({ code: -32601 }) })]);
    edge.isBorn = false;
    expect((await read(await listen({ toolsListChanged: true }))).status).toBe(404);
    expect(object.all).toEqual([]);
  });

  test("refusals are answered as for any request", async () => {
    const { object, listen } = listening();
    object.instead.push({ ok: false, refusal: { kind: "grant" } });
    expect((await listen({})).status).toBe(401);
    const failure = { reason: "rate_limited", outcome: "not_started", data: { retryAfterMs: 1000 } } as const;
    object.instead.push({ ok: false, refusal: { kind: "failure", failure } });
    expect((await read(await listen({}))).json).toMatchObject({
      error: { code: 1006, data: { reason: "rate_limited", retryAfterMs: 1000 } },
    });
    object.instead.push(new Error("reset"), new Error("reset"));
    expect((await read(await listen({}))).json).toMatchObject({ error: { code: 1003, data: { reason: "tunnel_lost" } } });
    object.instead.push(new Error("reset"));
    expect((await listen({})).status).toBe(200);
    expect(object.all).toHaveLength(1);
  });

  test("a client that takes JSON only is told so", async () => {
    const { edge } = listening();
    const request = modern("subscriptions/listen", { notifications: {} });
    const { status, json } = await edge.exchange({ ...request, headers: { ...request.headers, accept: "application/json" } });
    expect([status, json]).toEqual([406, expect.objectContaining({ id: "a7" })]);
  });
});

describe("R123: GET in a session", () => {
  test("is an event stream of plain notifications; nothing ends it but the session, and then without a response", async () => {
    const { edge, object, session, get } = await inSession();
    const response = await get();
    expect([response.status, response.headers.get("content-type")]).toEqual([200, "text/event-stream"]);
    expect(object.last.facts).toEqual({ grant: edge.grant, session: { id: session } });
    const events = new EventReader(response);
    expect(await events.block()).toBe(":");
    object.last.list("prompts");
    object.last.say({ type: "resource", uri: "u:1" });
    expect(await events.next()).toEqual({ jsonrpc: "2.0", method: "notifications/prompts/list_changed" });
    expect(await events.next()).toEqual({ jsonrpc: "2.0", method: "notifications/resources/updated", params: { uri: "u:1" } });
    object.last.end(LISTEN_CLOSE.superseded);
    expect(await events.next()).toBeNull(); // R125
  });

  test("R117: 404 for an unknown session, 400 for another version, 406 without the right Accept", async () => {
    const { object, get } = await inSession();
    object.instead.push({ ok: false, refusal: { kind: "session", why: "unknown" } });
    expect((await get()).status).toBe(404);
    object.instead.push({ ok: false, refusal: { kind: "session", why: "version" } });
    expect((await get({ "mcp-protocol-version": "2025-06-18" })).status).toBe(400);
    expect((await get({ accept: "application/json" })).status).toBe(406);
    expect((await get({ "mcp-session-id": "no id" })).status).toBe(404);
  });

  test("too many listeners are 429, for there is no request to answer", async () => {
    const { object, get } = await inSession();
    object.instead.push({ ok: false, refusal: { kind: "failure", failure: { reason: "rate_limited", outcome: "not_started" } } });
    const { status, json } = await read(await get());
    expect([status, json]).toEqual([429, expect.objectContaining({ error: expect.objectContaining({ code: 1006 }) })]);
  });
});
