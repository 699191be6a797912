/** Questions to a person during a call: parked for a modern client, answered in the session of a legacy one. */
import { abortAllDurableObjects, evictDurableObject, runDurableObjectAlarm } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { askKeyOf } from "../../durable/rpc.ts";
import { CALL } from "../../src/limits.ts";
import { accepted, eventually, failure, onlineDevice, pass, refusal, Rest, statusOf } from "./support/device.ts";
import { FakeAgent, grantOf, requestOf, stubOf } from "./support/fake-agent.ts";

const LEGACY = { version: "2025-11-25", capabilities: { elicitation: {} } };

/** A modern call that asked and was parked. */
async function parked(askIds: string[] = ["a1"], hello = {}, grant = grantOf()) {
  const device = await onlineDevice(hello, grant);
  const request = requestOf(device.grant.id);
  const reply = device.stub.call(request);
  await device.agent.next("call");
  askIds.forEach((askId, index) => {
    device.agent.send({ type: "ask", callId: request.callId, seq: index + 1, askId, method: "elicitation/create" }, `{"ask":"${askId}"}`);
  });
  const answered = await accepted(reply);
  expect(answered).toMatchObject({ frame: { type: "ask", askId: askIds[0] }, payload: `{"ask":"${askIds[0]}"}` });
  const rest = new Rest(answered.rest);
  for (const askId of askIds.slice(1)) expect((await rest.next())?.frame).toMatchObject({ type: "ask", askId });
  await rest.cancel();
  await device.stub.detach(request.callId);
  return { ...device, request };
}

describe("a parked call", () => {
  it("goes on with the answer", async () => {
    const { stub, agent, grant, request } = await parked();
    const reply = stub.resume(grant.id, request.callId, { a1: `{"action":"accept"}` });
    expect(await agent.next("answer")).toMatchObject({
      frame: { callId: request.callId, askId: "a1", kind: "result" },
      payload: `{"action":"accept"}`,
    });
    agent.answer(request.callId, `{"done":true}`, 2);
    expect((await accepted(reply)).payload).toBe(`{"done":true}`);
  });

  it("goes on after the object slept, and after its sockets closed and the agent came back", async () => {
    const { deviceId, stub, agent, grant, request } = await parked();
    await evictDurableObject(stub);
    expect((await statusOf(stub, agent)).inFlight).toBe(1);
    await evictDurableObject(stub, { webSockets: "close" });
    const reply = stubOf(deviceId).resume(grant.id, request.callId, { a1: "{}" });
    const asks = [{ callId: request.callId, askId: "a1" }];
    const { agent: back } = await FakeAgent.connect(deviceId, { held: [request.callId], asks });
    await back.next("attach");
    await back.next("answer");
    back.answer(request.callId, "{}", 2);
    await accepted(reply);
  });

  it("is asked again what was not answered, and waits on", async () => {
    const { stub, agent, grant, request } = await parked(["a1", "a2"]);
    const reply = await accepted(stub.resume(grant.id, request.callId, { a1: "{}" }));
    expect((await agent.next("answer")).frame.askId).toBe("a1");
    expect(reply).toMatchObject({ frame: { type: "ask", askId: "a2" }, payload: `{"ask":"a2"}` });
    await stub.detach(request.callId);
    const second = stub.resume(grant.id, request.callId, { a2: "{}" });
    expect((await agent.next("answer")).frame.askId).toBe("a2");
    agent.answer(request.callId, "{}", 3);
    await accepted(second);
  });

  it("belongs to its grant, takes each answer once, and nothing unknown", async () => {
    const { stub, agent, grant, request } = await parked();
    const other = grantOf();
    await stub.putGrant(other);
    expect(await refusal(stub.resume(other.id, request.callId, { a1: "{}" }))).toMatchObject({ kind: "params" });
    expect(await refusal(stub.resume(grant.id, request.callId, { nope: "{}" }))).toMatchObject({ kind: "params" });
    const reply = stub.resume(grant.id, request.callId, { a1: "{}" });
    await agent.next("answer");
    expect(await refusal(stub.resume(grant.id, request.callId, { a1: "{}" }))).toMatchObject({ kind: "params" });
    agent.answer(request.callId, "{}", 2);
    await accepted(reply);
    expect(await refusal(stub.resume(grant.id, request.callId, { a1: "{}" }))).toMatchObject({ kind: "params" });
  });

  it("ends with its grant", async () => {
    const { stub, agent, grant, request } = await parked();
    await stub.putGrant({ ...grant, revokedAt: 1 });
    expect((await agent.next("cancel")).frame).toMatchObject({ callId: request.callId, reason: "revoked" });
    expect(await refusal(stub.resume(grant.id, request.callId, { a1: "{}" }))).toEqual({ kind: "grant" });
  });

  it("can be cancelled", async () => {
    const { stub, agent, grant, request } = await parked();
    await stub.cancel(request.callId, "caller_asked");
    expect((await agent.next("cancel")).frame).toMatchObject({ callId: request.callId });
    expect(await refusal(stub.resume(grant.id, request.callId, { a1: "{}" }))).toMatchObject({ kind: "params" });
  });

  it("keeps its place at the agent, and a grant has a limited number of them", async () => {
    const caps = { callsPerMinute: null, inFlight: 8, parked: 1, listeners: 16 };
    const { stub, agent, grant } = await parked(["a1"], {}, grantOf({ caps }));
    const second = requestOf(grant.id);
    const reply = stub.call(second);
    await agent.next("call");
    agent.send({ type: "ask", callId: second.callId, seq: 1, askId: "a1", method: "roots/list" });
    expect(await failure(reply)).toMatchObject({ reason: "rate_limited" });
    expect((await agent.next("cancel")).frame.callId).toBe(second.callId);
  });
});

describe("a question in a legacy session", () => {
  async function asked() {
    const device = await onlineDevice();
    const opened = device.stub.openSession(device.grant.id, LEGACY);
    device.agent.send(
      { type: "catalogue", digest: "d" },
      `{"discover":{"capabilities":{},"serverInfo":{"name":"a","version":"1"}},"tools":[],"resources":[],"resourceTemplates":[],"prompts":[]}`,
    );
    const session = await opened;
    if (!session.ok) throw new Error("no session");
    const use = { id: session.sessionId };
    const { client: _client, ...rest } = requestOf(device.grant.id);
    const request = { ...rest, session: use, clientId: `"7"` };
    const reply = device.stub.call(request);
    await device.agent.next("call");
    device.agent.send({ type: "ask", callId: request.callId, seq: 1, askId: "a:1", method: "elicitation/create" }, "{}");
    const answered = await accepted(reply);
    return { ...device, use, request, answered, stream: new Rest(answered.rest) };
  }

  it("is answered by its key, once", async () => {
    const { stub, agent, grant, use, request, answered, stream } = await asked();
    expect(answered.session).toEqual(LEGACY);
    const key = askKeyOf(request.callId, "a:1");
    await stub.answerInSession(grant.id, use, key, "error", `{"code":-1,"message":"no"}`);
    await stub.answerInSession(grant.id, use, key, "result", "{}");
    expect(await agent.next("answer")).toMatchObject({ frame: { askId: "a:1", kind: "error" }, payload: `{"code":-1,"message":"no"}` });
    await agent.settled();
    expect(agent.seen("answer")).toEqual([]);
    agent.answer(request.callId, "{}", 2);
    expect((await stream.next())?.frame).toMatchObject({ type: "result" });
  });

  it("is not answered from another session or grant", async () => {
    const { stub, agent, grant, use, request } = await asked();
    const other = grantOf();
    await stub.putGrant(other);
    const foreign = await stub.openSession(other.id, LEGACY);
    const sibling = await stub.openSession(grant.id, LEGACY);
    if (!foreign.ok || !sibling.ok) throw new Error("no session");
    const key = askKeyOf(request.callId, "a:1");
    await stub.answerInSession(other.id, { id: foreign.sessionId }, key, "result", "{}");
    await stub.answerInSession(grant.id, { id: sibling.sessionId }, key, "result", "{}");
    expect(await refusal(stub.answerInSession(other.id, use, key, "result", "{}"))).toEqual({ kind: "session", why: "unknown" });
    await agent.settled();
    expect(agent.seen("answer")).toEqual([]);
  });

  it("is still answered after the object was reset", async () => {
    const { deviceId, agent, grant, use, request } = await asked();
    await abortAllDurableObjects();
    await agent.closed;
    const stub = stubOf(deviceId);
    const attached = stub.attach(grant.id, request.callId, 1, 0);
    const asks = [{ callId: request.callId, askId: "a:1" }];
    const { agent: back } = await FakeAgent.connect(deviceId, { held: [request.callId], asks });
    await back.next("attach");
    await stub.answerInSession(grant.id, use, askKeyOf(request.callId, "a:1"), "result", "{}");
    await back.next("answer");
    back.answer(request.callId, "{}", 2);
    await accepted(attached);
  });

  it("is sent again when the link broke before the agent had it", async () => {
    const { deviceId, stub, agent, grant, use, request, stream } = await asked();
    await stub.answerInSession(grant.id, use, askKeyOf(request.callId, "a:1"), "result", `{"x":1}`);
    await agent.next("answer");
    const asks = [{ callId: request.callId, askId: "a:1" }];
    const { agent: back } = await FakeAgent.connect(deviceId, { held: [request.callId], asks });
    expect((await back.next("answer")).payload).toBe(`{"x":1}`);
    back.answer(request.callId, "{}", 2);
    expect((await stream.next())?.frame).toMatchObject({ type: "result" });
  });

  it("that is cancelled in its session stops, and only there", async () => {
    const { stub, agent, grant, use, request, stream } = await asked();
    const sibling = await stub.openSession(grant.id, LEGACY);
    if (!sibling.ok) throw new Error("no session");
    await stub.cancelInSession(grant.id, { id: sibling.sessionId }, `"7"`);
    await stub.cancelInSession(grant.id, use, "7");
    await agent.settled();
    expect(agent.seen("cancel")).toEqual([]);
    await stub.cancelInSession(grant.id, use, `"7"`);
    expect((await agent.next("cancel")).frame).toMatchObject({ callId: request.callId, reason: "caller_asked" });
    expect((await stream.next())?.frame).toMatchObject({ type: "error", reason: "cancelled" });
  });
});

describe("with time", () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it("a person's time stops the call's own, and has its own limit", async () => {
    const { stub, agent, grant } = await onlineDevice();
    const request = requestOf(grant.id);
    const reply = stub.call(request);
    await agent.next("call");
    agent.send({ type: "ask", callId: request.callId, seq: 1, askId: "a1", method: "roots/list" }, "{}");
    const stream = new Rest((await accepted(reply)).rest);
    await pass(stub, CALL.timeoutMs + CALL.deadlineGraceMs);
    await agent.settled();
    expect(agent.seen("cancel")).toEqual([]);
    await pass(stub, CALL.inputTimeoutMs - CALL.timeoutMs);
    expect((await agent.next("cancel")).frame.reason).toBe("deadline");
    expect((await stream.next())?.frame).toMatchObject({ type: "error", reason: "input_expired" });
  });

  it("a parked call holds no timer; the alarm ends it, also after sleep, and a late retry hears why", async () => {
    const { stub, agent, grant, request } = await parked();
    expect(vi.getTimerCount()).toBe(0);
    await evictDurableObject(stub);
    vi.setSystemTime(Date.now() + CALL.inputTimeoutMs);
    await runDurableObjectAlarm(stub);
    expect((await agent.next("cancel")).frame).toMatchObject({ callId: request.callId, reason: "deadline" });
    expect(await failure(stub.resume(grant.id, request.callId, { a1: "{}" }))).toEqual({ reason: "input_expired", outcome: "unknown" });
  });

  it("a reply that is given up without a word is parked too", async () => {
    const { stub, agent, grant } = await onlineDevice();
    const request = requestOf(grant.id);
    const reply = stub.call(request);
    await agent.next("call");
    agent.send({ type: "ask", callId: request.callId, seq: 1, askId: "a1", method: "roots/list" }, "{}");
    await new Rest((await accepted(reply)).rest).cancel();
    await eventually(async () => {
      await pass(stub, 6_000);
      expect(vi.getTimerCount()).toBe(0);
    });
    const resumed = stub.resume(grant.id, request.callId, { a1: "{}" });
    await agent.next("answer");
    agent.answer(request.callId, "{}", 2);
    await accepted(resumed);
  });
});
