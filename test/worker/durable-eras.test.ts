/** What the object decides by the era of a caller: defaults of sessions, parameter headers, lists, and rounds of input. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { SessionUse } from "../../durable/rpc.ts";
import { SESSION } from "../../src/limits.ts";
import { accepted, onlineDevice, refusal, Rest } from "./support/device.ts";
import { grantOf, requestOf } from "./support/fake-agent.ts";

const INIT = { version: "2025-11-25", capabilities: { elicitation: {} } };
const SCHEMA = { type: "object", properties: { room: { type: "string", "x-mcp-header": "Room" } } };
const TOOLS = [
  { name: "lamp", inputSchema: SCHEMA, outputSchema: { type: "object", "x-kept": 1 } },
  { name: "list", inputSchema: { type: "object" }, outputSchema: { type: "array" }, title: "List" },
];

/** A device with a catalogue, and a session on it. */
async function withSession(grant = grantOf()) {
  const device = await onlineDevice({}, grant);
  device.agent.send(
    { type: "catalogue", digest: "d" },
    JSON.stringify({
      discover: { capabilities: { tools: {} }, serverInfo: { name: "a", version: "1" } },
      tools: TOOLS,
      resources: [],
      resourceTemplates: [],
      prompts: [],
    }),
  );
  await device.agent.settled();
  const opened = await device.stub.openSession(device.grant.id, INIT);
  if (!opened.ok) throw new Error("no session");
  const use: SessionUse = { id: opened.sessionId };
  const inSession = (change = {}) => {
    const { client: _client, ...rest } = requestOf(device.grant.id, change);
    return { ...rest, session: use, clientId: "7" };
  };
  return { ...device, use, inSession };
}

describe("a session's logs", () => {
  it("are info and above until it says otherwise", async () => {
    const { stub, agent, grant, use, inSession } = await withSession();
    for (const level of ["info", "error"]) {
      const reply = stub.call(inSession());
      const { frame } = await agent.next("call");
      expect(frame.logLevel).toBe(level);
      agent.answer(frame.callId);
      await accepted(reply);
      await stub.setLogLevel(grant.id, use, "error");
    }
  });
});

describe("a call that its own session cancels", () => {
  it("ends with a mark by which the edge stays silent", async () => {
    const { stub, agent, grant, use, inSession } = await withSession();
    const reply = stub.call(inSession());
    await agent.next("call");
    await stub.cancelInSession(grant.id, use, "7");
    expect(await refusal(reply)).toMatchObject({ kind: "failure", failure: { reason: "cancelled", data: { by: "caller_asked" } } });
  });
});

describe("parameter headers", () => {
  it("are demanded from a client that sends them, also when it sent none, and not from one of whom nothing is demanded", async () => {
    const { stub, agent, grant } = await withSession();
    const payload = `{"arguments":{"room":"attic"}}`;
    expect(await refusal(stub.call(requestOf(grant.id, { payload, paramHeaders: {} })))).toMatchObject({ kind: "header" });
    const unchecked = stub.call(requestOf(grant.id, { payload }));
    agent.answer((await agent.next("call")).frame.callId);
    await accepted(unchecked);
  });

  it("change with the list that shows them", async () => {
    const { stub, agent, grant } = await withSession();
    const payload = `{"arguments":{"room":"attic","zone":"north"}}`;
    const call = (paramHeaders: Record<string, string>) => stub.call(requestOf(grant.id, { payload, paramHeaders }));
    expect(await refusal(call({ zone: "north" }))).toMatchObject({ kind: "header" });
    const { target: _target, ...list } = requestOf(grant.id, { method: "tools/list", payload: "{}" });
    const listed = stub.call(list);
    const inputSchema = { type: "object", properties: { zone: { type: "string", "x-mcp-header": "Zone" } } };
    agent.answer((await agent.next("call")).frame.callId, JSON.stringify({ tools: [{ name: "lamp", inputSchema }] }));
    await accepted(listed);
    expect(await refusal(call({ room: "attic" }))).toMatchObject({ kind: "header" });
    const good = call({ zone: "north" });
    agent.answer((await agent.next("call")).frame.callId);
    await accepted(good);
  });
});

describe("a list of tools", () => {
  it("loses an outputSchema that is no object's for a handshake client, online and offline, and nothing else", async () => {
    const { stub, agent, grant, inSession } = await withSession();
    const list = { method: "tools/list", payload: "{}" };
    const listed = async (request: ReturnType<typeof requestOf>) => {
      const { target: _target, ...rest } = request;
      const reply = stub.call(rest);
      const { frame } = await agent.next("call");
      agent.answer(frame.callId, JSON.stringify({ tools: TOOLS, "x-member": 1.5 }));
      return JSON.parse((await accepted(reply)).payload) as unknown;
    };
    const [lamp, plain] = [TOOLS[0], { name: "list", inputSchema: { type: "object" }, title: "List" }];
    expect(await listed(requestOf(grant.id, list))).toEqual({ tools: TOOLS, "x-member": 1.5 });
    expect(await listed(inSession(list))).toEqual({ tools: [lamp, plain], "x-member": 1.5 });
    agent.socket.close(1000, "gone");
    await vi.waitFor(async () => {
      const { target: _target, ...offline } = inSession(list);
      const answered = await accepted(stub.call(offline));
      expect([answered.frame["protocol"], JSON.parse(answered.payload)]).toEqual(["catalogue", { tools: [lamp, plain] }]);
    });
  });
});

describe("a parked call", () => {
  async function parked() {
    const device = await onlineDevice();
    const request = requestOf(device.grant.id);
    const reply = device.stub.call(request);
    await device.agent.next("call");
    device.agent.send({ type: "ask", callId: request.callId, seq: 1, askId: "a1", method: "elicitation/create" }, `{"ask":"a1"}`);
    await new Rest((await accepted(reply)).rest).cancel();
    await device.stub.detach(request.callId);
    return { ...device, request };
  }

  it("is asked again when no answer was usable, and waits on", async () => {
    const { stub, agent, grant, request } = await parked();
    for (const answers of [{}, { other: "{}" }] satisfies Record<string, string>[]) {
      const again = await accepted(stub.resume(grant.id, request.callId, answers, ["a1"]));
      expect(again).toMatchObject({ frame: { type: "ask", askId: "a1" }, payload: `{"ask":"a1"}` });
      await new Rest(again.rest).cancel();
      await stub.detach(request.callId);
    }
    const reply = stub.resume(grant.id, request.callId, { a1: "{}" }, ["a1"]);
    await agent.next("answer");
    agent.answer(request.callId, "{}", 2);
    await accepted(reply);
  });

  it("does not take the answers of an earlier round, and does not show the next one for them", async () => {
    const { stub, agent, grant, request } = await parked();
    const first = stub.resume(grant.id, request.callId, { a1: "{}" }, ["a1"]);
    await agent.next("answer");
    agent.send({ type: "ask", callId: request.callId, seq: 2, askId: "a2", method: "elicitation/create" }, `{"ask":"a2"}`);
    await new Rest((await accepted(first)).rest).cancel();
    await stub.detach(request.callId);
    expect(await refusal(stub.resume(grant.id, request.callId, { a1: "{}" }, ["a1"]))).toMatchObject({ kind: "params" });
    const second = stub.resume(grant.id, request.callId, { a2: "{}" }, ["a2"]);
    expect((await agent.next("answer")).frame.askId).toBe("a2");
    agent.answer(request.callId, "{}", 3);
    await accepted(second);
  });
});

describe("attaching in the middle of a body", () => {
  it("brings the result's header again and the bytes from the offset on", async () => {
    const { stub, agent, grant } = await onlineDevice();
    const request = requestOf(grant.id);
    const reply = stub.call(request);
    await agent.next("call");
    const body = new TextEncoder().encode(`{"content":[1,2,3]}`);
    const result = { type: "result", callId: request.callId, seq: 2, protocol: "2026-07-28", bytes: body.length } as const;
    agent.send({ type: "event", callId: request.callId, seq: 1, method: "notifications/progress" }, "{}");
    agent.send(result);
    agent.send({ type: "chunk", stream: request.callId, offset: 0 }, body.subarray(0, 5));
    const stream = new Rest((await accepted(reply)).rest);
    expect((await stream.next())?.frame).toMatchObject({ type: "result", bytes: body.length });
    expect((await stream.chunk()).bytes).toHaveLength(5);
    await stream.cancel();

    const attached = stub.attach(grant.id, request.callId, 1, 5);
    const { frame } = await agent.next("attach");
    expect(frame.offset).toBe(5);
    agent.send(result);
    agent.send({ type: "chunk", stream: request.callId, offset: 5 }, body.subarray(5));
    const again = await accepted(attached);
    expect(again.frame).toMatchObject({ type: "result", seq: 2, bytes: body.length });
    const rest = await new Rest(again.rest).chunk();
    expect([rest.frame["offset"], new TextDecoder().decode(rest.bytes)]).toEqual([5, `tent":[1,2,3]}`]);
  });
});

describe("with time", () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it("an idle session wakes, and ends for good where the device's sessions expire strictly", async () => {
    const { stub, grant, use } = await withSession(grantOf({ expiresAt: Date.now() + 10 * SESSION.asleepMs }));
    vi.setSystemTime(Date.now() + SESSION.idleMs);
    expect(await stub.useSession(grant.id, use)).toMatchObject({ ok: true });
    vi.setSystemTime(Date.now() + SESSION.idleMs - 1);
    expect(await stub.useSession(grant.id, { ...use, strict: true })).toMatchObject({ ok: true });
    vi.setSystemTime(Date.now() + SESSION.idleMs);
    const unknown = { kind: "session", why: "unknown" };
    expect(await refusal(stub.useSession(grant.id, { ...use, strict: true }))).toEqual(unknown);
    expect(await refusal(stub.useSession(grant.id, use))).toEqual(unknown);
  });
});
