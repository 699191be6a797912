/** Change notices at the object: who is told what, what survives sleep, and what the device is asked for. */
import { abortAllDurableObjects, evictDurableObject, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { SessionInit } from "../../durable/rpc.ts";
import { LISTEN } from "../../src/limits.ts";
import { LISTEN_CLOSE } from "../../src/tunnel/notices.ts";
import { within } from "../support/deadline.ts";
import { accepted, eventually, failure, onlineDevice, refusal } from "./support/device.ts";
import { FakeAgent, grantOf, requestOf, SOON_MS, type Stub } from "./support/fake-agent.ts";
import { answerInternal, catalogueOf, listen, ListenerEnd } from "./support/listening.ts";

const INIT: SessionInit = { version: "2025-06-18", capabilities: {} };
const ALL = { lists: ["tools", "prompts", "resources"] as ("tools" | "prompts" | "resources")[], resources: [] as string[] };
const TOOLS = { lists: ["tools"] as "tools"[], resources: [] };

/** A device that has told its catalogue. */
async function device(grant = grantOf()) {
  const online = await onlineDevice({}, grant);
  online.agent.send({ type: "catalogue", digest: "d1" }, catalogueOf(["lamp"]));
  await eventually(async () => expect(await online.stub.describe(grant.id)).toMatchObject({ view: { known: true } }));
  return online;
}

/** A listener that has been told what it gets. */
async function listening(deviceId: string, grant: string, filter = ALL) {
  const listener = await ListenerEnd.open(deviceId, { grant, filter });
  return { listener, opened: await listener.next() };
}

async function session(stub: Stub, grant: string): Promise<string> {
  const opened = await stub.openSession(grant, INIT);
  if (!opened.ok) throw new Error(JSON.stringify(opened.refusal));
  await stub.useSession(grant, { id: opened.sessionId });
  return opened.sessionId;
}

function inSession(grant: string, id: string, method: string, target: string) {
  const { client: _client, ...rest } = requestOf(grant, { method, target, payload: "{}" });
  return { ...rest, session: { id } };
}

describe("a listener", () => {
  it("hears of what it asked for, and of nothing else", async () => {
    const { deviceId, agent, grant } = await device();
    const { listener, opened } = await listening(deviceId, grant.id, TOOLS);
    expect(opened).toEqual({ type: "open", lists: ["tools"], resources: [], versions: { tools: 1, prompts: 0, resources: 0 } });
    agent.send({ type: "changed", what: "prompts" });
    agent.send({ type: "changed", what: "resource", uri: "u:1" });
    agent.send({ type: "changed", what: "tools" });
    expect(await listener.next()).toEqual({ type: "list", what: "tools", version: 2 });
  });

  it("gets the subset that the device offers and the grant covers; several of one grant hear the same", async () => {
    const { deviceId, stub, agent } = await device();
    const narrow = grantOf({ rights: { tools: ["lamp"], resources: ["file:///a*", "!file:///a/secret"] } });
    await stub.putGrant(narrow);
    const asked = { ...ALL, resources: ["file:///b", "file:///a/secret", "file:///a"] };
    const [first, second] = await Promise.all([
      listening(deviceId, narrow.id, asked).then(async (it) => it),
      (async () => answerInternal(agent, "resources/subscribe", "file:///a"))(),
    ]).then(async ([it]) => [it, await listening(deviceId, narrow.id)] as const);
    expect(first.opened).toMatchObject({ lists: ["tools", "resources"], resources: ["file:///a"] });
    agent.send({ type: "changed", what: "prompts" });
    agent.send({ type: "changed", what: "resource", uri: "file:///a/secret" });
    agent.send({ type: "changed", what: "resource", uri: "file:///a/x" });
    agent.send({ type: "changed", what: "tools" });
    expect(await first.listener.next()).toEqual({ type: "resource", uri: "file:///a/x" });
    for (const { listener } of [first, second]) expect(await listener.next()).toMatchObject({ type: "list", what: "tools" });
  });

  it("has nothing to listen to when the device offers no notices; unknown grants and devices are refused", async () => {
    const { deviceId, agent, grant } = await onlineDevice();
    agent.send({ type: "catalogue", digest: "d1" }, catalogueOf(["lamp"], { tools: {}, resources: {} }));
    expect(await listen(deviceId, { grant: grant.id, filter: ALL })).toEqual({ kind: "method" });
    expect(await listen(deviceId, { grant: "g_other", filter: ALL })).toEqual({ kind: "grant" });
    const never = crypto.randomUUID();
    expect(await listen(never, { grant: grant.id, filter: ALL })).toEqual({ kind: "method" });
    expect(await listen(never, { grant: grant.id, session: { id: "s" } })).toEqual({ kind: "session", why: "unknown" });
  });

  it("is one of so many of its grant; those of others do not count, and a place that becomes free is free", async () => {
    const grant = grantOf({ caps: { callsPerMinute: null, inFlight: 8, parked: 4, listeners: 2 } });
    const { deviceId, stub } = await device(grant);
    const other = grantOf();
    await stub.putGrant(other);
    await listening(deviceId, other.id);
    const { listener } = await listening(deviceId, grant.id);
    await listening(deviceId, grant.id);
    expect(await listen(deviceId, { grant: grant.id, filter: ALL })).toMatchObject({
      kind: "failure",
      failure: { reason: "rate_limited" },
    });
    listener.socket.close(1000);
    await eventually(async () => expect(await listen(deviceId, { grant: grant.id, filter: ALL })).toBeInstanceOf(WebSocket));
  });

  it("hears from an object that slept, and of a device that is away and comes back", async () => {
    const { deviceId, stub, agent, grant } = await device();
    const { listener } = await listening(deviceId, grant.id);
    await evictDurableObject(stub);
    agent.send({ type: "changed", what: "tools" });
    expect(await listener.next()).toMatchObject({ what: "tools" });
    agent.socket.close(1000);
    await eventually(async () => expect(await stub.describe(grant.id)).toMatchObject({ view: { online: false } }));
    await evictDurableObject(stub);
    // The same catalogue: nothing to tell. Another one: its tools differ, and only they.
    const { agent: again } = await FakeAgent.connect(deviceId, { instance: "run-2", catalogue: "d1" });
    again.send({ type: "catalogue", digest: "d1" }, catalogueOf(["lamp"]));
    again.send({ type: "catalogue", digest: "d2" }, catalogueOf(["lamp", "oven"]));
    expect(await listener.next()).toEqual({ type: "list", what: "tools", version: 3 });
    again.send({ type: "changed", what: "prompts" });
    expect(await listener.next()).toMatchObject({ what: "prompts" });
  });

  it("is told once of a change that the agent says and its catalogue shows", async () => {
    const { deviceId, agent, grant } = await device();
    const { listener } = await listening(deviceId, grant.id);
    agent.send({ type: "changed", what: "tools" });
    agent.send({ type: "catalogue", digest: "d2" }, catalogueOf(["lamp", "oven"]));
    agent.send({ type: "changed", what: "prompts" });
    expect(await listener.next()).toMatchObject({ what: "tools" });
    expect(await listener.next()).toMatchObject({ what: "prompts" });
  });

  it("is told of a list that an answer brought into the catalogue before the agent did", async () => {
    const { deviceId, stub, agent, grant } = await device();
    const { listener } = await listening(deviceId, grant.id);
    const request = requestOf(grant.id, { method: "tools/list", payload: "{}" });
    const { target: _target, ...list } = request;
    const reply = stub.call(list);
    await agent.next("call");
    agent.answer(list.callId, `{"tools":[{"name":"oven"}]}`);
    await accepted(reply);
    agent.send(
      { type: "catalogue", digest: "d2" },
      `{"discover":{"capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"pi","version":"1"}},"tools":[{"name":"oven"}],"resources":[],"resourceTemplates":[],"prompts":[]}`,
    );
    expect(await listener.next()).toMatchObject({ what: "tools" });
  });

  it("that lost its object is told what it missed, and only that", async () => {
    const { deviceId, agent, grant } = await device();
    const { opened } = await listening(deviceId, grant.id);
    if (opened.type !== "open") throw new Error("not open");
    agent.send({ type: "changed", what: "resources" });
    await agent.settled();
    await eventually(async () => {
      const back = await ListenerEnd.open(deviceId, { grant: grant.id, filter: ALL, seen: opened.versions });
      expect(await back.next()).toMatchObject({ type: "open" });
      expect(await back.next()).toMatchObject({ type: "list", what: "resources" });
      expect(back.unread).toEqual([]);
    });
  });

  it("hears that the relay stops and is waited for; nobody begins to listen meanwhile", async () => {
    const { deviceId, stub, agent, grant } = await device();
    const id = await session(stub, grant.id);
    const { listener } = await listening(deviceId, grant.id);
    const stream = await ListenerEnd.open(deviceId, { grant: grant.id, session: { id } });
    await stream.next();
    // A relay that is replaced leaves them to the next.
    expect(await stub.drain(false)).toBe(0);
    await agent.next("drain");
    await listening(deviceId, grant.id).then(({ listener: later }) => later.socket.close(1000));
    await eventually(async () => expect(await stub.drain(true)).toBe(2));
    for (const one of [listener, stream]) expect(await one.next()).toEqual({ type: "end" });
    expect(await stub.drain(true)).toBe(2);
    const facts = [
      { grant: grant.id, filter: ALL },
      { grant: grant.id, session: { id } },
    ];
    for (const fact of facts) {
      expect(await listen(deviceId, fact)).toMatchObject({ failure: { reason: "rate_limited", outcome: "not_started" } });
    }
    listener.socket.close(1000);
    stream.socket.close(1000);
    await eventually(async () => expect(await stub.drain(true)).toBe(0));
    expect([...listener.unread, ...stream.unread, ...agent.seen("drain")]).toEqual([]);
  });

  it("hears its own end when the object is reset", async () => {
    const { deviceId, grant } = await device();
    const { listener } = await listening(deviceId, grant.id);
    await abortAllDurableObjects();
    expect((await within(SOON_MS, "the end", listener.closed)).code).toBe(1006);
    expect((await listening(deviceId, grant.id)).opened).toMatchObject({ type: "open" });
  });
});

describe("the end of a grant is the end of its listeners", () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  it.each([{ revokedAt: 1 }, { pausedAt: 1 }])("%j", async (change) => {
    const { deviceId, stub, agent, grant } = await device();
    const other = grantOf();
    await stub.putGrant(other);
    const { listener } = await listening(deviceId, grant.id);
    const { listener: stays } = await listening(deviceId, other.id);
    await evictDurableObject(stub);
    await stub.putGrant({ ...grant, ...change, revision: 2 });
    expect((await within(SOON_MS, "the end", listener.closed)).code).toBe(LISTEN_CLOSE.grantOver);
    agent.send({ type: "changed", what: "tools" });
    expect(await stays.next()).toMatchObject({ what: "tools" });
    expect(listener.unread).toEqual([]);
  });

  it("by time", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const grant = grantOf({ expiresAt: Date.now() + 60_000 });
    const { deviceId, stub } = await device(grant);
    const { listener } = await listening(deviceId, grant.id);
    vi.setSystemTime(Date.now() + 61_000);
    await runDurableObjectAlarm(stub);
    expect((await within(SOON_MS, "the end", listener.closed)).code).toBe(LISTEN_CLOSE.grantOver);
  });

  it("narrower rights count at once, for listeners that are open too", async () => {
    const { deviceId, stub, agent, grant } = await device();
    const { listener } = await listening(deviceId, grant.id);
    await stub.putGrant({ ...grant, rights: { tools: ["lamp"] }, revision: 2 });
    agent.send({ type: "changed", what: "prompts" });
    agent.send({ type: "changed", what: "tools" });
    expect(await listener.next()).toMatchObject({ what: "tools" });
  });

  it("a removed device ends them all; a revoked key none", async () => {
    const { deviceId, stub, grant } = await device();
    const { listener } = await listening(deviceId, grant.id);
    await stub.closeTunnel("revoked");
    await FakeAgent.connect(deviceId);
    expect(listener.socket.readyState).toBe(WebSocket.OPEN);
    await stub.destroy();
    expect((await within(SOON_MS, "the end", listener.closed)).code).toBe(LISTEN_CLOSE.removed);
  });
});

describe("resource subscriptions", () => {
  const both = (uri: string) => ({ lists: [], resources: [uri] });

  it("of each grant are its own at the device, and so is what the device says of one grant", async () => {
    const { deviceId, stub, agent, grant } = await device();
    const other = grantOf();
    await stub.putGrant(other);
    const mine = listening(deviceId, grant.id, both("u:1"));
    const asked = await agent.next("call");
    expect(asked.frame.caller).toMatchObject({ grant: grant.id });
    agent.answer(asked.frame.callId, "{}");
    const theirs = listening(deviceId, other.id, both("u:1"));
    const again = await agent.next("call");
    expect(again.frame).toMatchObject({ method: "resources/subscribe", target: "u:1", caller: { grant: other.id } });
    agent.answer(again.frame.callId, "{}");
    const [{ listener: a }, { listener: b }] = [await mine, await theirs];
    agent.send({ type: "changed", what: "resource", uri: "u:1", grant: other.id });
    agent.send({ type: "changed", what: "resource", uri: "u:1/part" });
    expect(await b.next()).toEqual({ type: "resource", uri: "u:1" });
    for (const one of [a, b]) expect(await one.next()).toEqual({ type: "resource", uri: "u:1/part" });
    b.socket.close(1000);
    const ended = await agent.next("call");
    expect(ended.frame).toMatchObject({ method: "resources/unsubscribe", target: "u:1", caller: { grant: other.id } });
    // Its end may be lost: what the device then says of it is answered by another.
    agent.send({ type: "changed", what: "resource", uri: "u:1", grant: other.id });
    expect((await agent.next("call")).frame).toMatchObject({ method: "resources/unsubscribe", caller: { grant: other.id } });
    agent.send({ type: "changed", what: "resource", uri: "u:1" });
    expect(await a.next()).toEqual({ type: "resource", uri: "u:1" });
  });

  it("ask the device once for each resource, and end with the last who wants it", async () => {
    const { deviceId, agent, grant } = await device();
    const [first] = await Promise.all([listening(deviceId, grant.id, both("u:1")), answerInternal(agent, "resources/subscribe", "u:1")]);
    const second = await listening(deviceId, grant.id, both("u:1"));
    expect(second.opened).toMatchObject({ resources: ["u:1"] });
    agent.send({ type: "changed", what: "resource", uri: "u:1" });
    for (const { listener } of [first, second]) expect(await listener.next()).toEqual({ type: "resource", uri: "u:1" });
    first.listener.socket.close(1000);
    await eventually(async () => {
      agent.send({ type: "changed", what: "resource", uri: "u:1" });
      expect(await second.listener.next()).toEqual({ type: "resource", uri: "u:1" });
    });
    expect(agent.seen("call")).toEqual([]);
    second.listener.socket.close(1000);
    await answerInternal(agent, "resources/unsubscribe", "u:1");
  });

  it("are not honoured when the upstream refuses, and kept when it is away", async () => {
    const { deviceId, agent, grant } = await device();
    const opening = listening(deviceId, grant.id, { lists: [], resources: ["u:1", "u:2"] });
    for (let n = 0; n < 2; n += 1) {
      const { frame } = await agent.next("call");
      if (frame.target === "u:1")
        agent.send({
          type: "error",
          callId: frame.callId,
          seq: 1,
          origin: "upstream",
          protocol: "2025-06-18",
          code: -32602,
          message: "no",
        });
      else
        agent.send({
          type: "error",
          callId: frame.callId,
          seq: 1,
          origin: "agent",
          reason: "upstream_failed",
          outcome: "unknown",
          message: "away",
        });
    }
    expect((await opening).opened).toMatchObject({ resources: ["u:2"] });
    agent.socket.close(1000);
    const later = await listening(deviceId, grant.id, both("u:3"));
    expect(later.opened).toMatchObject({ resources: ["u:3"] });
  });

  it("are asked for again on another run of the agent, and not on the same one", async () => {
    const { deviceId, stub, agent, grant } = await device();
    const [{ listener }] = await Promise.all([
      listening(deviceId, grant.id, both("u:1")),
      answerInternal(agent, "resources/subscribe", "u:1"),
    ]);
    await eventually(async () => expect(await heldBy(stub)).toEqual([{ uri: "u:1", instance: "run-1", is_taken: 1 }]));
    await evictDurableObject(stub);
    const { agent: same } = await FakeAgent.connect(deviceId, { instance: "run-1" });
    same.send({ type: "changed", what: "resource", uri: "u:1" });
    expect(await listener.next()).toEqual({ type: "resource", uri: "u:1" });
    expect(same.seen("call")).toEqual([]);
    const { agent: other } = await FakeAgent.connect(deviceId, { instance: "run-2" });
    await answerInternal(other, "resources/subscribe", "u:1");
  });

  it("that nobody wants any more are ended when the device speaks of them", async () => {
    const { agent } = await device();
    agent.send({ type: "changed", what: "resource", uri: "u:9" });
    const { frame } = await agent.next("call");
    expect(frame).toMatchObject({ method: "resources/unsubscribe", target: "u:9", caller: { grant: "" } });
  });
});

async function heldBy(stub: Stub) {
  return runInDurableObject(stub, (_instance, state) =>
    state.storage.sql.exec("SELECT uri, instance, is_taken FROM upstream_resources").toArray(),
  );
}

describe("a session's own stream", () => {
  it("gets the lists and what its session subscribed to; another session's subscriptions are another's", async () => {
    const { deviceId, stub, agent, grant } = await device();
    const [a, b] = [await session(stub, grant.id), await session(stub, grant.id)];
    const [toA, toB] = [
      await ListenerEnd.open(deviceId, { grant: grant.id, session: { id: a } }),
      await ListenerEnd.open(deviceId, { grant: grant.id, session: { id: b } }),
    ];
    for (const stream of [toA, toB]) expect(await stream.next()).toMatchObject({ type: "open", resources: [] });
    const [reply] = await Promise.all([
      accepted(stub.call(inSession(grant.id, a, "resources/subscribe", "u:1"))),
      answerInternal(agent, "resources/subscribe", "u:1"),
    ]);
    expect(reply).toMatchObject({ frame: { type: "result" }, payload: "{}" });
    await evictDurableObject(stub);
    agent.send({ type: "changed", what: "resource", uri: "u:1" });
    agent.send({ type: "changed", what: "tools" });
    expect(await toA.next()).toEqual({ type: "resource", uri: "u:1" });
    for (const stream of [toA, toB]) expect(await stream.next()).toMatchObject({ type: "list", what: "tools" });
    await accepted(stub.call(inSession(grant.id, b, "resources/unsubscribe", "u:1")));
    expect(agent.seen("call")).toEqual([]);
    await accepted(stub.call(inSession(grant.id, a, "resources/unsubscribe", "u:1")));
    await answerInternal(agent, "resources/unsubscribe", "u:1");
  });

  it("R124: of two streams of one session the newer one gets each message, and the older one ends", async () => {
    const { deviceId, stub, agent, grant } = await device();
    const id = await session(stub, grant.id);
    const older = await ListenerEnd.open(deviceId, { grant: grant.id, session: { id } });
    await older.next();
    const newer = await ListenerEnd.open(deviceId, { grant: grant.id, session: { id } });
    await newer.next();
    expect((await within(SOON_MS, "the end", older.closed)).code).toBe(LISTEN_CLOSE.superseded);
    agent.send({ type: "changed", what: "tools" });
    expect(await newer.next()).toMatchObject({ what: "tools" });
    expect(older.unread).toEqual([]);
  });

  it("ends with its session, and its subscriptions with it", async () => {
    const { deviceId, stub, agent, grant } = await device();
    const id = await session(stub, grant.id);
    const stream = await ListenerEnd.open(deviceId, { grant: grant.id, session: { id } });
    await stream.next();
    await Promise.all([
      accepted(stub.call(inSession(grant.id, id, "resources/subscribe", "u:1"))),
      answerInternal(agent, "resources/subscribe", "u:1"),
    ]);
    await stub.endSession(grant.id, id);
    expect((await within(SOON_MS, "the end", stream.closed)).code).toBe(LISTEN_CLOSE.sessionOver);
    await answerInternal(agent, "resources/unsubscribe", "u:1");
    expect(await listen(deviceId, { grant: grant.id, session: { id } })).toEqual({ kind: "session", why: "unknown" });
  });

  it("passes an upstream's refusal on, and subscribes nobody without a session or without a device", async () => {
    const { stub, agent, grant } = await device();
    const id = await session(stub, grant.id);
    const reply = accepted(stub.call(inSession(grant.id, id, "resources/subscribe", "u:1")));
    const { frame } = await agent.next("call");
    agent.send({
      type: "error",
      callId: frame.callId,
      seq: 1,
      origin: "upstream",
      protocol: "2025-06-18",
      code: -32002,
      message: "no such",
    });
    expect((await reply).frame).toMatchObject({ type: "error", code: -32002 });
    const client = { era: "legacy", protocol: "2025-06-18", capabilities: {} } as const;
    expect(await refusal(stub.call(requestOf(grant.id, { method: "resources/subscribe", target: "u:1", client })))).toEqual({
      kind: "method",
    });
    agent.socket.close(1000);
    await eventually(async () => {
      expect(await failure(stub.call(inSession(grant.id, id, "resources/subscribe", "u:1")))).toMatchObject({ reason: "device_offline" });
    });
  });

  it("takes so many subscriptions and no more", async () => {
    const { stub, agent, grant } = await device();
    const id = await session(stub, grant.id);
    await runInDurableObject(stub, (_instance, state) => {
      for (let n = 0; n < LISTEN.resources; n += 1) state.storage.sql.exec("INSERT INTO subscriptions VALUES (?, ?)", `s:${id}`, `u:${n}`);
    });
    expect(await refusal(stub.call(inSession(grant.id, id, "resources/subscribe", "u:x")))).toMatchObject({ kind: "params" });
    expect(agent.seen("call")).toEqual([]);
  });
});
