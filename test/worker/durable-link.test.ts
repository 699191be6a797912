/** Which socket is the device's tunnel, what closes one, presence, catalogue and lists, sleep. */
import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { findDevice, insertDevice } from "../../src/db/devices.ts";
import { insertGrant, revokeGrant } from "../../src/db/grants.ts";
import { insertMember } from "../../src/db/members.ts";
import { TUNNEL } from "../../src/limits.ts";
import { accepted, eventually, failure, onlineDevice, pass, refusal, statusOf } from "./support/device.ts";
import { dialRequest, FakeAgent, grantOf, newDevice, requestOf, stubOf } from "./support/fake-agent.ts";

async function callOnce(deviceId: string, agent: FakeAgent, grant: string): Promise<void> {
  const request = requestOf(grant);
  const reply = stubOf(deviceId).call(request);
  await agent.next("call");
  agent.answer(request.callId);
  await accepted(reply);
}

const LISTS = {
  discover: {
    capabilities: { tools: {}, resources: {}, prompts: {}, completions: {} },
    serverInfo: { name: "kitchen-pi", version: "4.2" },
    instructions: "Be kind.",
  },
  tools: [{ name: "lamp" }, { name: "shell" }],
  resources: [{ uri: "file:///a", name: "a" }],
  resourceTemplates: [],
  prompts: [{ name: "p" }],
};

describe("a dial-in", () => {
  it("is welcomed with a generation that grows, and the limits in force", async () => {
    const { deviceId } = newDevice();
    const first = await FakeAgent.connect(deviceId, { limits: { maxFrameBytes: 8192, maxConcurrentCalls: 1000 } });
    expect(first.welcome).toMatchObject({
      protocol: 1,
      generation: 1,
      limits: { maxFrameBytes: 8192, maxConcurrentCalls: TUNNEL.maxConcurrentCalls },
      device: "pi",
      mcpUrl: "https://relay.test/mcp/pi",
      catalogue: "send",
    });
    const second = await FakeAgent.connect(deviceId);
    expect(second.welcome.generation).toBe(2);
    expect((await first.agent.closed).code).toBe(4004);
  });

  it("echoes the subprotocol; any other path is 404, no upgrade 426", async () => {
    const { deviceId, stub } = newDevice();
    const response = await stub.fetch(dialRequest(deviceId));
    expect(response.headers.get("Sec-WebSocket-Protocol")).toBe("longline.v1");
    response.webSocket?.accept();
    response.webSocket?.close(1000);
    expect((await stub.fetch("https://object/other")).status).toBe(404);
    expect((await stub.fetch("https://object/tunnel")).status).toBe(426);
  });

  it("of another protocol version, or without a hello first, is closed", async () => {
    const { deviceId } = newDevice();
    const newer = await FakeAgent.dial(deviceId);
    newer.hello({ protocol: { min: 2, max: 3 } });
    expect((await newer.closed).code).toBe(4101);
    const rude = await FakeAgent.dial(deviceId);
    rude.send({ type: "bye", reason: "x" });
    expect((await rude.closed).code).toBe(4001);
  });

  it("that stays silent is closed by the alarm, also after the object slept", async () => {
    const { deviceId, stub } = newDevice();
    const silent = await FakeAgent.dial(deviceId);
    await evictDurableObject(stub);
    const { attachment, alarm } = await runInDurableObject(stub, async (_instance, state) => ({
      attachment: state.getWebSockets()[0]?.deserializeAttachment() as { connectedAt: number } | undefined,
      alarm: await state.storage.getAlarm(),
    }));
    const connectedAt = attachment?.connectedAt ?? 0;
    expect(alarm).toBe(connectedAt + TUNNEL.helloMs);
    vi.useFakeTimers({ toFake: ["Date"], now: connectedAt + TUNNEL.helloMs });
    expect(await runDurableObjectAlarm(stub)).toBe(true);
    vi.useRealTimers();
    expect((await silent.closed).code).toBe(4001);
  });

  it("beyond the bound of silent sockets pushes the oldest out", async () => {
    const { deviceId } = newDevice();
    const silent: FakeAgent[] = [];
    for (let n = 0; n <= TUNNEL.waitingSockets; n += 1) silent.push(await FakeAgent.dial(deviceId));
    expect((await silent[0]?.closed)?.code).toBe(4001);
    await silent[1]?.settled();
  });

  it("says hello once", async () => {
    const { agent } = await onlineDevice();
    agent.hello();
    expect((await agent.closed).code).toBe(4001);
  });
});

describe("two machines with one key", () => {
  it("the newcomer is refused for good while the incumbent answers, and the owner sees it", async () => {
    const { deviceId, stub, agent, grant } = await onlineDevice();
    const rival = await FakeAgent.dial(deviceId);
    rival.hello({ installation: "machine-2" });
    await agent.answerProbe();
    expect((await rival.closed).code).toBe(4102);
    await callOnce(deviceId, agent, grant.id);
    expect((await statusOf(stub, agent)).rival).toMatchObject({ at: expect.any(Number) });
  });

  it("a copy of the incumbent's state is refused like another machine, while its own process is let in at once", async () => {
    const { deviceId, stub, agent, grant } = await onlineDevice({ instance: "run-1" });
    const copy = await FakeAgent.dial(deviceId);
    copy.hello({ instance: "run-2" });
    await agent.answerProbe();
    expect(await copy.closed).toMatchObject({ code: 4102, reason: expect.stringContaining("another process") });
    expect((await statusOf(stub, agent)).rival).toMatchObject({ at: expect.any(Number) });
    const { agent: again } = await FakeAgent.connect(deviceId, { instance: "run-1" });
    expect((await agent.closed).code).toBe(4004);
    await callOnce(deviceId, again, grant.id);
  });

  it("takeover replaces a living incumbent", async () => {
    const { deviceId, agent, grant } = await onlineDevice();
    const { agent: next } = await FakeAgent.connect(deviceId, { installation: "machine-2", takeover: true });
    expect((await agent.closed).code).toBe(4004);
    await callOnce(deviceId, next, grant.id);
  });

  it("an incumbent that does not answer is replaced", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] });
    try {
      const { deviceId, stub, agent, grant } = await onlineDevice();
      const next = await FakeAgent.dial(deviceId);
      next.hello({ installation: "machine-2" });
      await agent.next("probe");
      await pass(stub, TUNNEL.probeMs + 1_000);
      await next.next("welcome");
      expect((await agent.closed).code).toBe(4003);
      await callOnce(deviceId, next, grant.id);
    } finally {
      vi.useRealTimers();
    }
  });
});

describe("a message", () => {
  it.each([
    ["that is not a frame", "hello?", 4000],
    ["of an unknown type", `{"type":"teleport"}`, 4000],
    ["with an unknown member", `{"type":"ack","callId":"c_AAAAAAAAAAAAAAAAAAAAAA","extra":1}`, 4000],
    ["with a prototype key", `{"type":"ack","callId":"c_AAAAAAAAAAAAAAAAAAAAAA","__proto__":{}}`, 4000],
    ["larger than negotiated", `{"type":"bye","reason":"x"}\n${"x".repeat(262_144)}`, 4002],
  ])("%s closes the tunnel", async (_name, message, code) => {
    const { agent } = await onlineDevice();
    agent.socket.send(message);
    expect((await agent.closed).code).toBe(code);
  });

  it("of exactly the negotiated size is taken, in characters of more than one byte too", async () => {
    const { deviceId, agent, grant } = await onlineDevice({ limits: { maxFrameBytes: 4096, maxConcurrentCalls: 4 } });
    const head = `{"type":"teleport","optional":true}\n`;
    agent.socket.send(head + "ä".repeat((4096 - head.length) / 2));
    await callOnce(deviceId, agent, grant.id);
    agent.socket.send(`${head}${"ä".repeat((4096 - head.length) / 2)}x`);
    expect((await agent.closed).code).toBe(4002);
  });

  it("in binary is the same as in text", async () => {
    const { agent, stub, grant } = await onlineDevice();
    const request = requestOf(grant.id);
    const reply = stub.call(request);
    await agent.next("call");
    const text = `{"type":"result","callId":"${request.callId}","seq":1,"protocol":"x"}\n{"content":["ü"]}`;
    agent.socket.send(new TextEncoder().encode(text));
    expect((await accepted(reply)).payload).toBe(`{"content":["ü"]}`);
  });
});

describe("the live tunnel", () => {
  it("is found again after the object slept, and is not the first socket in the list", async () => {
    const { deviceId, stub, agent, grant } = await onlineDevice();
    const silent = await FakeAgent.dial(deviceId);
    await evictDurableObject(stub);
    await callOnce(deviceId, agent, grant.id);
    await silent.settled();
    await evictDurableObject(stub);
    const { agent: next } = await FakeAgent.connect(deviceId);
    await evictDurableObject(stub);
    await callOnce(deviceId, next, grant.id);
  });

  it("keeps going when the superseded socket closes late", async () => {
    const { deviceId, agent, grant, stub } = await onlineDevice();
    const { agent: next } = await FakeAgent.connect(deviceId);
    await agent.closed;
    agent.socket.close(1000, "late");
    expect(await statusOf(stub, next)).toMatchObject({ online: true, generation: 2 });
    await callOnce(deviceId, next, grant.id);
  });

  it("is gone after its sockets closed while the object slept", async () => {
    const { stub, grant } = await onlineDevice();
    await evictDurableObject(stub, { webSockets: "close" });
    expect(await stub.status()).toMatchObject({ online: false, generation: 1, lastSeenAt: expect.any(Number) });
    expect(await failure(stub.call(requestOf(grant.id)))).toMatchObject({ reason: "device_offline", outcome: "not_started" });
  });

  it("ends for good when the key is revoked, and destroy leaves nothing", async () => {
    const { stub, agent, grant } = await onlineDevice();
    const reply = stub.call(requestOf(grant.id));
    await agent.next("call");
    await stub.closeTunnel("revoked");
    expect((await agent.next("cancel")).frame.reason).toBe("revoked");
    expect(await agent.closed).toEqual({ code: 4100, reason: "revoked" });
    expect(await failure(reply)).toEqual({ reason: "tunnel_lost", outcome: "unknown" });
    await stub.destroy();
    expect(await failure(stub.call(requestOf(grant.id)))).toMatchObject({ reason: "device_offline" });
    const left = await runInDurableObject(stub, async (_instance, state) => ({
      tables: state.storage.sql.exec("SELECT name FROM sqlite_master WHERE name NOT LIKE '\\_cf%' ESCAPE '\\'").toArray(),
      alarm: await state.storage.getAlarm(),
    }));
    expect(left).toEqual({ tables: [], alarm: null });
  });

  it("can be opened again after destroy", async () => {
    const { deviceId, stub, grant } = await onlineDevice();
    await stub.destroy();
    const { agent, welcome } = await FakeAgent.connect(deviceId);
    expect(welcome.generation).toBe(1);
    expect(await refusal(stub.call(requestOf(grant.id)))).toEqual({ kind: "grant" });
    await agent.settled();
  });
});

describe("the registry", () => {
  async function registered() {
    const { deviceId, stub } = newDevice();
    await insertDevice(env.DB, { id: deviceId, name: `d-${deviceId.slice(0, 8)}`, keyHash: deviceId, createdAt: 1 });
    const member = crypto.randomUUID();
    await insertMember(env.DB, { id: member, name: "Ada", role: "owner", createdAt: 1 });
    const { revision: _r, pausedAt: _p, revokedAt: _v, ...fields } = grantOf({ member });
    const grant = await insertGrant(env.DB, deviceId, fields, 1);
    if (grant === null) throw new Error("no grant");
    return { deviceId, stub, grant };
  }

  async function recorded(deviceId: string, online: boolean) {
    await vi.waitFor(async () => expect((await findDevice(env.DB, deviceId))?.online).toBe(online), { timeout: 3_000 });
    return findDevice(env.DB, deviceId);
  }

  it("gives its grants to a device that comes online, and hears of its presence", async () => {
    const { deviceId, grant } = await registered();
    const { agent } = await FakeAgent.connect(deviceId);
    await callOnce(deviceId, agent, grant.id);
    expect(await recorded(deviceId, true)).toMatchObject({ generation: 1, agentVersion: "0.1.0" });
    agent.socket.close(1000, "bye");
    expect(await recorded(deviceId, false)).toMatchObject({ generation: 1, lastSeenAt: expect.any(Number) });
  });

  it("gives what changed while the device was away", async () => {
    const { deviceId, grant } = await registered();
    const { agent } = await FakeAgent.connect(deviceId);
    await callOnce(deviceId, agent, grant.id);
    await revokeGrant(env.DB, deviceId, grant.id, Date.now());
    await FakeAgent.connect(deviceId);
    await vi.waitFor(async () => expect(await refusal(stubOf(deviceId).describe(grant.id))).toEqual({ kind: "grant" }));
  });

  it("hears that a device is offline although its object was reset", async () => {
    const { deviceId, stub } = await registered();
    await FakeAgent.connect(deviceId);
    await recorded(deviceId, true);
    await evictDurableObject(stub, { webSockets: "close" });
    expect((await stub.status()).online).toBe(false);
    await recorded(deviceId, false);
  });
});

describe("lists and description", () => {
  async function withCatalogue(rights = {}) {
    const device = await onlineDevice({}, grantOf({ rights }));
    device.agent.send({ type: "catalogue", digest: "d1" }, JSON.stringify(LISTS));
    await device.agent.settled();
    return device;
  }
  const list = (grant: string, payload = "{}") => requestOf(grant, { method: "tools/list", target: undefined as never, payload });

  it("show what a grant covers and nothing else", async () => {
    const { stub, agent, grant } = await withCatalogue({ tools: ["lamp"] });
    expect(await stub.describe(grant.id)).toEqual({
      ok: true,
      view: {
        online: true,
        known: true,
        capabilities: { tools: {} },
        serverInfo: { name: "kitchen-pi", version: "4.2" },
        instructions: "Be kind.",
      },
    });
    const reply = stub.call(list(grant.id));
    const { frame } = await agent.next("call");
    agent.send(
      { type: "result", callId: frame.callId, seq: 1, protocol: "p", ttlMs: 5 },
      `{"tools":[{"name":"shell"},{"name":"lamp","x":1}],"y":2}`,
    );
    const answered = await accepted(reply);
    expect(answered.frame).toMatchObject({ type: "result", protocol: "p", ttlMs: 5 });
    expect(JSON.parse(answered.payload)).toEqual({ tools: [{ name: "lamp", x: 1 }], y: 2 });
  });

  it("pass unchanged to a full grant, also in chunks, and become the catalogue", async () => {
    const { stub, agent, grant } = await withCatalogue();
    const reply = stub.call(list(grant.id));
    const { frame } = await agent.next("call");
    const text = `{"tools":[{"name":"new","n":1.50}]}`;
    const bytes = new TextEncoder().encode(text);
    agent.send({ type: "result", callId: frame.callId, seq: 1, protocol: "2026-07-28", bytes: bytes.length });
    agent.send({ type: "chunk", stream: frame.callId, offset: 0 }, bytes.subarray(0, 20));
    agent.send({ type: "chunk", stream: frame.callId, offset: 20 }, bytes.subarray(20));
    expect((await accepted(reply)).payload).toBe(text);
    await evictDurableObject(stub, { webSockets: "close" });
    const answered = await accepted(stub.call(list(grant.id)));
    expect(answered.frame).toMatchObject({ protocol: "catalogue", meta: { "dev.longline/offline": true } });
    expect(JSON.parse(answered.payload)).toEqual({ tools: [{ name: "new", n: 1.5 }] });
  });

  it("come from the catalogue when the upstream cannot answer, and its own errors do not", async () => {
    const { stub, agent, grant } = await withCatalogue();
    const reply = stub.call(list(grant.id));
    const { frame } = await agent.next("call");
    agent.send({
      type: "error",
      callId: frame.callId,
      seq: 1,
      origin: "agent",
      reason: "upstream_failed",
      outcome: "unknown",
      message: "crashed",
    });
    expect(JSON.parse((await accepted(reply)).payload)).toEqual({ tools: LISTS.tools });
    const second = stub.call(list(grant.id, `{"cursor":"2"}`));
    const { frame: next } = await agent.next("call");
    agent.send({ type: "error", callId: next.callId, seq: 1, origin: "upstream", protocol: "p", code: -32602, message: "bad cursor" });
    expect((await accepted(second)).frame).toMatchObject({ type: "error", code: -32602 });
  });

  it("a page is no catalogue", async () => {
    const { stub, agent, grant } = await withCatalogue();
    const reply = stub.call(list(grant.id));
    const { frame } = await agent.next("call");
    agent.answer(frame.callId, `{"tools":[],"nextCursor":"2"}`);
    await accepted(reply);
    agent.socket.close(1000);
    await vi.waitFor(async () => expect((await stub.status()).online).toBe(false));
    expect(JSON.parse((await accepted(stub.call(list(grant.id)))).payload)).toEqual({ tools: LISTS.tools });
  });

  it("a catalogue in chunks gets credit; a known one is not asked for again", async () => {
    const { deviceId, stub, agent, grant } = await onlineDevice();
    const bytes = new TextEncoder().encode(JSON.stringify({ ...LISTS, tools: [{ name: "ü".repeat(300_000) }] }));
    agent.send({ type: "catalogue", digest: "d2", bytes: bytes.length });
    expect((await agent.next("credit")).frame).toMatchObject({ stream: "catalogue", bytes: bytes.length });
    for (let at = 0; at < bytes.length; at += 100_000)
      agent.send({ type: "chunk", stream: "catalogue", offset: at }, bytes.subarray(at, at + 100_000));
    await agent.settled();
    const { welcome } = await FakeAgent.connect(deviceId, { catalogue: "d2" });
    expect(welcome.catalogue).toBe("known");
    await evictDurableObject(stub, { webSockets: "close" });
    const items = JSON.parse((await accepted(stub.call(list(grant.id)))).payload) as { tools: { name: string }[] };
    expect(items.tools[0]?.name).toBe("ü".repeat(300_000));
  });

  it("a description waits for the first catalogue of a device that is just online", async () => {
    const { stub, agent, grant } = await onlineDevice();
    const described = stub.describe(grant.id);
    await agent.settled();
    agent.send({ type: "catalogue", digest: "d1" }, JSON.stringify(LISTS));
    expect(await described).toMatchObject({ ok: true, view: { known: true, serverInfo: { name: "kitchen-pi" } } });
  });

  it("a broken catalogue changes nothing and closes nothing", async () => {
    const { stub, agent, grant } = await withCatalogue();
    agent.send({ type: "catalogue", digest: "bad" }, `{"tools":7}`);
    agent.send({ type: "catalogue", digest: "bad" }, "not json");
    agent.send({ type: "catalogue", digest: "bad", bytes: 5_000_000 });
    await agent.settled();
    expect(await stub.describe(grant.id)).toMatchObject({ ok: true, view: { online: true, known: true } });
  });
});

describe("with time", () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it("an idle device holds no timer, so that the object can sleep", async () => {
    const { deviceId, stub, agent, grant } = await onlineDevice();
    await callOnce(deviceId, agent, grant.id);
    await pass(stub, TUNNEL.deliveredDelayMs);
    // The audit's batch of that call is on its way to D1 for a moment.
    await eventually(async () => expect(vi.getTimerCount()).toBe(0));
  });
});
