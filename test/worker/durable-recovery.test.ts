/** Calls that outlive their link, their object or their reader: nothing is lost, repeated or mixed. */
import { abortAllDurableObjects, evictDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { CALL, TUNNEL } from "../../src/limits.ts";
import { newCallId } from "../../src/tunnel/frames.ts";
import { accepted, eventually, failure, onlineDevice, pass, Rest, statusOf } from "./support/device.ts";
import { FakeAgent, grantOf, requestOf, stubOf } from "./support/fake-agent.ts";

/** The tunnel breaks: the object hears it before this resolves. */
async function cut(stub: ReturnType<typeof stubOf>, agent: FakeAgent): Promise<void> {
  agent.socket.close(1000, "cut");
  await vi.waitFor(async () => expect((await stub.status()).online).toBe(false));
}

describe("a tunnel that breaks", () => {
  it("during a call: the agent comes back with it, and its outcome is the answer", async () => {
    const { deviceId, stub, agent, grant } = await onlineDevice();
    const request = requestOf(grant.id);
    const reply = stub.call(request);
    await agent.next("call");
    agent.send({ type: "ack", callId: request.callId });
    await agent.settled();
    await cut(stub, agent);
    const { agent: back } = await FakeAgent.connect(deviceId, { held: [request.callId] });
    expect((await back.next("attach")).frame).toMatchObject({ callId: request.callId, seq: 0, offset: 0 });
    back.answer(request.callId);
    expect((await accepted(reply)).frame).toMatchObject({ type: "result" });
    expect(back.seen("call")).toEqual([]);
  });

  it("is replaced by the agent itself: late frames of the old socket count for nothing", async () => {
    const { deviceId, stub, agent, grant } = await onlineDevice();
    const request = requestOf(grant.id);
    const reply = stub.call(request);
    await agent.next("call");
    const { agent: back } = await FakeAgent.connect(deviceId, { held: [request.callId] });
    agent.answer(request.callId, `{"from":"old"}`);
    await back.next("attach");
    back.answer(request.callId, `{"from":"new"}`);
    expect((await accepted(reply)).payload).toBe(`{"from":"new"}`);
  });

  it("before the agent had the call: the same run gets it again", async () => {
    const { deviceId, stub, agent, grant } = await onlineDevice();
    const request = requestOf(grant.id, { payload: `{"arguments":{"n":1}}` });
    const reply = stub.call(request);
    await agent.next("call");
    await cut(stub, agent);
    const { agent: back } = await FakeAgent.connect(deviceId, { held: [] });
    expect(await back.next("call")).toMatchObject({ frame: { callId: request.callId }, payload: request.payload });
    back.answer(request.callId);
    await accepted(reply);
  });

  it("and a restarted agent is asked what its journal knows", async () => {
    const { deviceId, stub, agent, grant } = await onlineDevice();
    const request = requestOf(grant.id);
    const reply = stub.call(request);
    await agent.next("call");
    await cut(stub, agent);
    const { agent: back } = await FakeAgent.connect(deviceId, { instance: "run-2" });
    await back.next("attach");
    expect(back.seen("call")).toEqual([]);
    back.send({
      type: "error",
      callId: request.callId,
      seq: 1,
      origin: "agent",
      reason: "agent_restarted",
      outcome: "unknown",
      message: "gone",
    });
    expect((await accepted(reply)).frame).toMatchObject({ reason: "agent_restarted", outcome: "unknown" });
  });

  it("and another machine takes over: nothing is claimed about the call", async () => {
    const { deviceId, stub, agent, grant } = await onlineDevice();
    const reply = stub.call(requestOf(grant.id));
    await agent.next("call");
    const { agent: other } = await FakeAgent.connect(deviceId, { installation: "machine-2", instance: "run-9", takeover: true });
    expect(await failure(reply)).toEqual({ reason: "agent_restarted", outcome: "unknown" });
    await other.settled();
    expect(other.seen("attach")).toEqual([]);
  });

  it("in the middle of a large outcome: it goes on at its offset, and the header comes once", async () => {
    const { deviceId, stub, agent, grant } = await onlineDevice();
    const request = requestOf(grant.id);
    const reply = stub.call(request);
    await agent.next("call");
    agent.send({ type: "result", callId: request.callId, seq: 1, protocol: "x", bytes: 10 });
    agent.send({ type: "chunk", stream: request.callId, offset: 0 }, new Uint8Array([0, 1, 2, 3]));
    const rest = new Rest((await accepted(reply)).rest);
    expect((await rest.chunk()).bytes).toEqual(new Uint8Array([0, 1, 2, 3]));
    await cut(stub, agent);
    const { agent: back } = await FakeAgent.connect(deviceId, { held: [request.callId] });
    const { frame } = await back.next("attach");
    expect(frame).toMatchObject({ seq: 0, offset: 4 });
    back.send({ type: "result", callId: request.callId, seq: 1, protocol: "x", bytes: 10 });
    back.send({ type: "chunk", stream: request.callId, offset: 4 }, new Uint8Array([4, 5, 6, 7, 8, 9]));
    const last = await rest.chunk();
    expect(last).toEqual({ frame: { type: "chunk", stream: request.callId, offset: 4 }, bytes: new Uint8Array([4, 5, 6, 7, 8, 9]) });
    expect(await rest.next()).toBeNull();
  });

  it("after events: what the edge has is not repeated", async () => {
    const { deviceId, stub, agent, grant } = await onlineDevice();
    const request = requestOf(grant.id, { progress: true });
    const reply = stub.call(request);
    await agent.next("call");
    const event = (by: FakeAgent, seq: number) =>
      by.send({ type: "event", callId: request.callId, seq, method: "notifications/progress" }, `{"progress":${seq}}`);
    event(agent, 1);
    event(agent, 2);
    const rest = new Rest((await accepted(reply)).rest);
    expect((await rest.next())?.frame).toMatchObject({ seq: 2 });
    await cut(stub, agent);
    const { agent: back } = await FakeAgent.connect(deviceId, { held: [request.callId] });
    await back.next("attach");
    for (const seq of [1, 2, 3]) event(back, seq);
    back.answer(request.callId, "{}", 4);
    expect((await rest.next())?.frame).toMatchObject({ seq: 3 });
    expect((await rest.next())?.frame).toMatchObject({ type: "result", seq: 4 });
    expect(await rest.next()).toBeNull();
  });
});

describe("an agent that stops in order", () => {
  it("leaves no caller waiting: what it had may have run, what it did not have whole has not", async () => {
    const { stub, agent, grant } = await onlineDevice();
    const [ran, quick] = [requestOf(grant.id), requestOf(grant.id)];
    const half = requestOf(grant.id, { payload: `{"arguments":{"text":"${"x".repeat(300_000)}"}}` });
    const replies = { ran: stub.call(ran), half: stub.call(half), quick: stub.call(quick) };
    for (let count = 0; count < 3; count += 1) await agent.next("call");
    agent.answer(quick.callId, `{"n":1}`);
    agent.send({ type: "ack", callId: ran.callId });
    agent.send({ type: "bye", reason: "signal" });
    const message = "The agent on the device was stopped during the call.";
    expect(await failure(replies.ran)).toEqual({ reason: "agent_restarted", outcome: "unknown", message });
    expect(await failure(replies.half)).toEqual({ reason: "agent_restarted", outcome: "not_started", message });
    expect((await accepted(replies.quick)).payload).toBe(`{"n":1}`);
    expect(await stub.status()).toMatchObject({ online: false, inFlight: 0 });
  });
});

describe("a relay that stops in order", () => {
  it("tells the callers that still wait at its end, and the agent to stop what only they could have fetched", async () => {
    const { stub, agent, grant } = await onlineDevice();
    const modern = requestOf(grant.id);
    const legacy = requestOf(grant.id, { client: { era: "legacy", protocol: "2025-11-25", capabilities: {} } });
    const replies = [stub.call(modern), stub.call(legacy)];
    for (let count = 0; count < 2; count += 1) await agent.next("call");
    expect(await stub.drain(true)).toBe(2);
    await agent.next("drain");
    expect(await stub.endCalls()).toBe(2);
    const stopped = { reason: "tunnel_lost", outcome: "unknown", message: "The relay was stopped during the call." };
    for (const reply of replies) expect(await failure(reply)).toEqual(stopped);
    expect((await agent.next("cancel")).frame).toMatchObject({ callId: modern.callId });
    await agent.settled();
    expect(agent.seen("cancel")).toEqual([]);
  });
});

describe("an object that is reset during a call", () => {
  it("is asked again on a fresh stub: one run, one answer", async () => {
    const { deviceId, stub, agent, grant } = await onlineDevice();
    const request = requestOf(grant.id);
    const reply = stub.call(request).then(
      () => "answered",
      () => "lost",
    );
    await agent.next("call");
    await abortAllDurableObjects();
    expect(await reply).toBe("lost");
    await agent.closed;
    const attached = stubOf(deviceId).attach(grant.id, request.callId, 0, 0);
    const { agent: back } = await FakeAgent.connect(deviceId, { held: [request.callId] });
    expect((await back.next("attach")).frame).toMatchObject({ callId: request.callId });
    back.answer(request.callId, `{"n":1}`);
    expect((await accepted(attached)).payload).toBe(`{"n":1}`);
    expect(back.seen("call")).toEqual([]);
  });

  it("goes on with a large outcome where the edge is, header first", async () => {
    const { deviceId, agent, grant } = await onlineDevice();
    const callId = newCallId();
    await abortAllDurableObjects();
    await agent.closed;
    const { agent: back } = await FakeAgent.connect(deviceId, { held: [callId] });
    // The edge asks with the position before the header, so that it hears the size again.
    const attached = stubOf(deviceId).attach(grant.id, callId, 2, 5);
    const { frame } = await back.next("attach");
    expect(frame.offset).toBe(5);
    back.send({ type: "event", callId, seq: 2, method: "notifications/progress" }, `{"progress":2}`);
    back.send({ type: "result", callId, seq: 3, protocol: "x", bytes: 8 });
    back.send({ type: "chunk", stream: callId, offset: 5 }, new Uint8Array([5, 6, 7]));
    const answered = await accepted(attached);
    expect(answered.frame).toMatchObject({ type: "result", bytes: 8, seq: 3 });
    const rest = new Rest(answered.rest);
    expect((await rest.chunk()).bytes).toEqual(new Uint8Array([5, 6, 7]));
    expect(await rest.next()).toBeNull();
  });

  /** Calls that the edge attaches to on both sides of the hello of an agent that lists neither, and the journal's word on them. */
  async function afterReset(at: number, outcome: "not_started" | "unknown", back = {}) {
    const { deviceId, agent, grant } = await onlineDevice();
    await abortAllDurableObjects();
    await agent.closed;
    const asked = { method: "tools/call", target: "lamp", at };
    const calls = [newCallId(), newCallId()] as const;
    const before = stubOf(deviceId).attach(grant.id, calls[0], 0, 0, asked);
    const { agent: journal } = await FakeAgent.connect(deviceId, { instance: "run-2", ...back });
    const after = stubOf(deviceId).attach(grant.id, calls[1], 0, 0, asked);
    for (const callId of calls) {
      await journal.next("attach");
      journal.send({ type: "error", callId, seq: 1, origin: "agent", reason: "tunnel_lost", outcome, message: "the journal's word" });
    }
    return Promise.all([before, after].map(async (reply) => (await accepted(reply)).frame));
  }
  /** A while after the device was there for the first time. */
  const LATER = Date.now() + 600_000;

  it("asks the journal of an agent that does not list the call, and passes on what it knows", async () => {
    for (const outcome of ["not_started", "unknown"] as const) {
      expect(await afterReset(LATER, outcome)).toEqual([
        expect.objectContaining({ reason: "tunnel_lost", outcome }),
        expect.objectContaining({ reason: "tunnel_lost", outcome }),
      ]);
    }
  });

  it.each([
    ["that came with the call or after it", {}],
    ["that took the place of another", { installation: "machine-2" }],
  ])("does not believe the journal of a machine %s, that a call never came", async (_what, back) => {
    const frames = await afterReset(Date.now(), "not_started", back);
    expect(frames.map(({ outcome }) => outcome)).toEqual(["unknown", "unknown"]);
  });
});

describe("attaching", () => {
  it("to an outcome whose reply was lost brings it again until it is delivered", async () => {
    const { stub, agent, grant } = await onlineDevice();
    const request = requestOf(grant.id);
    const reply = stub.call(request);
    await agent.next("call");
    agent.answer(request.callId, `{"n":1}`);
    await accepted(reply);
    const again = stub.attach(grant.id, request.callId, 0, 0);
    await agent.next("attach");
    agent.answer(request.callId, `{"n":1}`);
    expect((await accepted(again)).payload).toBe(`{"n":1}`);
  });

  it("is for the grant that made the call", async () => {
    const { stub, agent, grant } = await onlineDevice();
    const other = grantOf();
    await stub.putGrant(other);
    const request = requestOf(grant.id);
    const reply = stub.call(request);
    await agent.next("call");
    expect(await failure(stub.attach(other.id, request.callId, 0, 0))).toEqual({ reason: "agent_restarted", outcome: "unknown" });
    agent.answer(request.callId);
    await accepted(reply);
    expect(await failure(stub.attach(other.id, request.callId, 0, 0))).toEqual({ reason: "agent_restarted", outcome: "unknown" });
  });

  it("works after the object slept", async () => {
    const { deviceId, stub, agent, grant } = await onlineDevice();
    const callId = newCallId();
    await evictDurableObject(stub);
    const attached = stubOf(deviceId).attach(grant.id, callId, 0, 0);
    await agent.next("attach");
    agent.answer(callId, `{"n":2}`);
    expect((await accepted(attached)).payload).toBe(`{"n":2}`);
  });
});

describe("with time", () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  async function broken(change = {}) {
    const device = await onlineDevice();
    const request = requestOf(device.grant.id, change);
    const reply = device.stub.call(request);
    await device.agent.next("call");
    device.agent.socket.close(1000, "cut");
    await vi.waitFor(async () => expect((await device.stub.status()).online).toBe(false));
    return { ...device, request, reply };
  }

  it("an agent that does not come back costs its calls after the window, and hears of it later", async () => {
    const { deviceId, stub, request, reply } = await broken();
    await pass(stub, CALL.attachWindowMs);
    expect(await failure(reply)).toEqual({ reason: "tunnel_lost", outcome: "unknown" });
    const { agent: back } = await FakeAgent.connect(deviceId, { held: [request.callId] });
    expect((await back.next("cancel")).frame).toMatchObject({ callId: request.callId });
  });

  // One object for each clock: the timers of all objects would run inside the one that time passes for.
  it.each([
    ["that the agent never had whole is said to be not started", 100_000, "not_started"],
    ["that it had once is not", 400_000, "unknown"],
  ] as const)("a request %s", async (_what, credit, outcome) => {
    const { stub, agent, grant } = await onlineDevice();
    const request = requestOf(grant.id, { payload: `{"arguments":{"text":"${"x".repeat(300_000)}"}}` });
    const reply = stub.call(request);
    await agent.next("call");
    agent.send({ type: "credit", stream: request.callId, bytes: credit });
    await agent.next("chunk");
    await agent.settled();
    agent.socket.close(1000, "cut");
    await vi.waitFor(async () => expect((await stub.status()).online).toBe(false));
    await pass(stub, CALL.attachWindowMs);
    expect(await failure(reply)).toEqual({ reason: "tunnel_lost", outcome });
  });

  it("a modern call that nobody reads is cancelled after the window", async () => {
    const { stub, agent, grant } = await onlineDevice();
    const request = requestOf(grant.id, { progress: true });
    const reply = stub.call(request);
    await agent.next("call");
    agent.send({ type: "event", callId: request.callId, seq: 1, method: "notifications/progress" }, "{}");
    await new Rest((await accepted(reply)).rest).cancel();
    const leftAt = Date.now();
    await eventually(async () => {
      await pass(stub, 1_000);
      expect(agent.seen("cancel")).toHaveLength(1);
    });
    expect(Date.now() - leftAt).toBeGreaterThanOrEqual(CALL.attachWindowMs);
    expect((await agent.next("cancel")).frame).toMatchObject({ callId: request.callId, reason: "caller_left" });
  });

  it("a modern call that nobody reads can be taken up again within the window", async () => {
    const { stub, agent, grant } = await onlineDevice();
    const request = requestOf(grant.id, { progress: true });
    const reply = stub.call(request);
    await agent.next("call");
    agent.send({ type: "event", callId: request.callId, seq: 1, method: "notifications/progress" }, "{}");
    await accepted(reply);
    await stub.detach(request.callId);
    agent.answer(request.callId, `{"n":1}`, 2);
    await agent.settled();
    const again = stub.attach(grant.id, request.callId, 1, 0);
    await agent.next("attach");
    agent.answer(request.callId, `{"n":1}`, 2);
    expect((await accepted(again)).payload).toBe(`{"n":1}`);
  });

  it("a legacy call that nobody reads runs to its end, and its outcome is dropped", async () => {
    const { stub, agent, grant } = await onlineDevice();
    const client = { era: "legacy", protocol: "2025-11-25", capabilities: {} } as const;
    const request = requestOf(grant.id, { progress: true, client });
    const reply = stub.call(request);
    await agent.next("call");
    agent.send({ type: "event", callId: request.callId, seq: 1, method: "notifications/progress" }, "{}");
    await new Rest((await accepted(reply)).rest).cancel();
    const leftAt = Date.now();
    await eventually(async () => {
      await pass(stub, 2_000);
      await agent.settled();
      expect(Date.now() - leftAt).toBeGreaterThan(CALL.attachWindowMs * 2);
    });
    expect(agent.seen("cancel")).toEqual([]);
    agent.answer(request.callId, "{}", 2);
    await agent.settled();
    await pass(stub, TUNNEL.deliveredDelayMs);
    expect((await agent.next("delivered")).frame.callIds).toEqual([request.callId]);
    expect((await statusOf(stub, agent)).inFlight).toBe(0);
  });

  it("a slow reader holds back its own call only", async () => {
    const { stub, agent, grant } = await onlineDevice();
    const request = requestOf(grant.id);
    const slow = stub.call(request);
    const { frame } = await agent.next("call");
    agent.send({ type: "result", callId: request.callId, seq: 1, protocol: "x", bytes: CALL.maxResultBytes });
    await accepted(slow);
    let credit = frame.credit;
    let sent = 0;
    // Sends all it may, as long as more is granted; the reader takes nothing.
    for (let round = 0; round < 200 && credit > 0; round += 1) {
      for (; credit > 0; credit -= Math.min(credit, 128 * 1024)) {
        agent.send({ type: "chunk", stream: request.callId, offset: sent }, new Uint8Array(Math.min(credit, 128 * 1024)));
        sent += Math.min(credit, 128 * 1024);
      }
      await agent.settled();
      for (const more of agent.seen("credit")) if (more.type === "credit") credit += (await agent.next("credit")).frame.bytes;
    }
    expect(sent).toBeLessThan(CALL.maxResultBytes / 2);
    const quick = requestOf(grant.id);
    const reply = stub.call(quick);
    await agent.next("call");
    agent.answer(quick.callId);
    await accepted(reply);
    await stub.cancel(request.callId, "caller_left");
  });

  /** Begins a result of the largest size, of which the agent sends all that it gets credit for while nobody reads. */
  async function stalled() {
    const device = await onlineDevice();
    const { stub, agent, grant } = device;
    const request = requestOf(grant.id);
    const reply = stub.call(request);
    let { credit } = (await agent.next("call")).frame;
    let sent = 0;
    const take = async () => {
      await agent.settled();
      while (agent.seen("credit").length > 0) credit += (await agent.next("credit")).frame.bytes;
      return credit > 0;
    };
    const feed = async () => {
      while (await take()) {
        for (let size = 0; credit > 0; credit -= size, sent += size) {
          size = Math.min(credit, 128 * 1024);
          agent.send({ type: "chunk", stream: request.callId, offset: sent }, new Uint8Array(size));
        }
      }
      return sent;
    };
    agent.send({ type: "result", callId: request.callId, seq: 1, protocol: "x", bytes: CALL.maxResultBytes });
    const rest = new Rest((await accepted(reply)).rest);
    await feed();
    return { ...device, request, rest, feed };
  }

  it("a large outcome whose reader takes nothing for a minute ends alone, and its caller is told the limit", async () => {
    const { stub, agent, grant, request, rest } = await stalled();
    await pass(stub, CALL.stallMs - 1);
    await agent.settled();
    expect(agent.seen("cancel")).toEqual([]);
    await pass(stub, 1);
    expect((await agent.next("cancel")).frame).toMatchObject({ callId: request.callId, reason: "caller_left" });
    let last = await rest.next();
    for (let next = last; next !== null; next = await rest.next()) last = next;
    expect(last?.frame).toMatchObject({ reason: "device_timeout", outcome: "unknown", data: { limitMs: CALL.stallMs, setBy: "relay" } });
    const quick = requestOf(grant.id);
    const reply = stub.call(quick);
    await agent.next("call");
    agent.answer(quick.callId);
    await accepted(reply);
  });

  it("a large outcome goes on for as long as its reader takes something each minute", async () => {
    const { stub, agent, request, rest, feed } = await stalled();
    const before = await feed();
    await pass(stub, CALL.stallMs - 1_000);
    while ((await feed()) === before) for (let count = 0; count < 4; count += 1) await rest.chunk();
    await pass(stub, CALL.stallMs - 1_000);
    await agent.settled();
    expect(agent.seen("cancel")).toEqual([]);
    await stub.cancel(request.callId, "caller_left");
  });

  it("a large outcome that its agent does not go on with ends in the same way", async () => {
    const { stub, agent, grant } = await onlineDevice();
    const request = requestOf(grant.id);
    const reply = stub.call(request);
    await agent.next("call");
    agent.send({ type: "result", callId: request.callId, seq: 1, protocol: "x", bytes: 10 });
    const rest = new Rest((await accepted(reply)).rest);
    await pass(stub, CALL.stallMs);
    expect((await rest.next())?.frame).toMatchObject({ reason: "device_timeout", data: { limitMs: CALL.stallMs } });
    expect((await agent.next("cancel")).frame.callId).toBe(request.callId);
  });
});
