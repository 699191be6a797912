/** Calls through the object while its link is up: admission, answers, streams, the queue, what an agent may get wrong. */
import { runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { CALL, QUEUE, TUNNEL } from "../../src/limits.ts";
import { newCallId } from "../../src/tunnel/frames.ts";
import { accepted, failure, onlineDevice, pass, refusal, Rest, statusOf } from "./support/device.ts";
import { FakeAgent, grantOf, newDevice, requestOf } from "./support/fake-agent.ts";

const KIB = 1024;

describe("a call", () => {
  it("reaches the agent in canonical form, and its outcome comes back as it was sent", async () => {
    const { stub, agent, grant } = await onlineDevice();
    const request = requestOf(grant.id, { meta: { traceparent: "00-1" }, progress: true, paramHeaders: { room: "attic" } });
    const reply = stub.call(request);
    const { frame, payload } = await agent.next("call");
    expect(frame).toMatchObject({
      callId: request.callId,
      method: "tools/call",
      target: "lamp",
      timeoutMs: CALL.timeoutMs,
      caller: { grant: grant.id, label: "Ada's laptop", member: "m_1" },
      client: { era: "modern" },
      meta: { traceparent: "00-1" },
      progress: true,
      paramHeaders: { room: "attic" },
    });
    expect(payload).toBe(`{"arguments":{}}`);
    agent.answer(request.callId, `{"content":[],"big":12345678901234567890}`);
    const answered = await accepted(reply);
    expect(answered.rest).toBeNull();
    expect(answered.payload).toBe(`{"content":[],"big":12345678901234567890}`);
  });

  it("streams what comes before and after its first message, in order", async () => {
    const { stub, agent, grant } = await onlineDevice();
    const request = requestOf(grant.id, { progress: true });
    const reply = stub.call(request);
    await agent.next("call");
    agent.send({ type: "event", callId: request.callId, seq: 1, method: "notifications/progress" }, `{"progress":1}`);
    const answered = await accepted(reply);
    expect(answered.frame).toMatchObject({ type: "event", seq: 1 });
    const rest = new Rest(answered.rest);
    agent.send({ type: "event", callId: request.callId, seq: 2, method: "notifications/progress" }, `{"progress":2}`);
    expect(await rest.next()).toMatchObject({ frame: { type: "event", seq: 2 }, payload: `{"progress":2}` });
    agent.answer(request.callId, `{"content":[]}`, 3);
    expect(await rest.next()).toMatchObject({ frame: { type: "result" }, payload: `{"content":[]}` });
    expect(await rest.next()).toBeNull();
  });

  it("passes a large outcome on as it comes, and gives credit as it is read", async () => {
    const { stub, agent, grant } = await onlineDevice();
    const request = requestOf(grant.id);
    const reply = stub.call(request);
    const { frame } = await agent.next("call");
    const size = 400 * KIB;
    agent.send({ type: "result", callId: request.callId, seq: 1, protocol: "x", bytes: size });
    let credit = frame.credit;
    let sent = 0;
    while (sent < size) {
      while (credit > 0 && sent < size) {
        const bytes = Math.min(credit, 64 * KIB, size - sent);
        agent.send({ type: "chunk", stream: request.callId, offset: sent }, new Uint8Array(bytes).fill(sent / (64 * KIB)));
        sent += bytes;
        credit -= bytes;
      }
      if (sent < size) credit += (await agent.next("credit")).frame.bytes;
    }
    const answered = await accepted(reply);
    expect(answered.frame).toMatchObject({ type: "result", bytes: size });
    const rest = new Rest(answered.rest);
    let read = 0;
    while (read < size) {
      const chunk = await rest.chunk();
      expect(chunk.frame).toMatchObject({ type: "chunk", offset: read });
      read += chunk.bytes.length;
    }
    expect(read).toBe(size);
    expect(await rest.next()).toBeNull();
  });

  it("sends a large request in chunks that fit what the agent takes", async () => {
    const { stub, agent, grant } = await onlineDevice({ limits: { maxFrameBytes: 4096, maxConcurrentCalls: 4 } });
    const payload = JSON.stringify({ arguments: { text: "ä€😀".repeat(1500) } });
    const request = requestOf(grant.id, { payload });
    const reply = stub.call(request);
    const { frame } = await agent.next("call");
    const size = new TextEncoder().encode(payload).length;
    expect(frame.bytes).toBe(size);
    const whole = new Uint8Array(size);
    let at = 0;
    // Nothing comes without credit, and never more than it.
    await agent.settled();
    expect(agent.seen("chunk")).toEqual([]);
    for (const credit of [1, 5_000, 5_000, size - 10_001]) {
      agent.send({ type: "credit", stream: request.callId, bytes: credit });
      for (const until = at + credit; at < until;) {
        const chunk = await agent.next("chunk");
        expect(chunk.frame.offset).toBe(at);
        whole.set(chunk.bytes, at);
        at += chunk.bytes.length;
        expect(at).toBeLessThanOrEqual(until);
      }
      await agent.settled();
      expect(agent.seen("chunk")).toEqual([]);
    }
    expect(new TextDecoder().decode(whole)).toBe(payload);
    agent.answer(request.callId);
    await accepted(reply);
  });

  it("holds large requests up to a bound for all calls together; beyond it they are refused, and small ones are not", async () => {
    const { stub, agent, grant } = await onlineDevice();
    const large = (bytes: number) => requestOf(grant.id, { payload: `{"arguments":{"text":"${"x".repeat(bytes)}"}}` });
    const first = large(5 * 1024 * 1024);
    const reply = stub.call(first);
    await agent.next("call");
    expect(await failure(stub.call(large(4 * 1024 * 1024)))).toMatchObject({ reason: "rate_limited", outcome: "not_started" });
    const small = requestOf(grant.id);
    const quick = stub.call(small);
    agent.answer((await agent.next("call")).frame.callId);
    await accepted(quick);
    // Its acknowledgement makes room, as its end would.
    agent.send({ type: "ack", callId: first.callId });
    const second = large(4 * 1024 * 1024);
    const next = stub.call(second);
    expect((await agent.next("call")).frame.callId).toBe(second.callId);
    for (const { callId } of [first, second]) agent.answer(callId);
    await Promise.all([accepted(reply), accepted(next)]);
  });

  it("whose link breaks before the agent had all of it is sent again from its beginning", async () => {
    const { stub, agent, grant, deviceId } = await onlineDevice();
    const request = requestOf(grant.id, { payload: `{"arguments":{"text":"${"x".repeat(600_000)}"}}` });
    const reply = stub.call(request);
    await agent.next("call");
    agent.send({ type: "credit", stream: request.callId, bytes: 200_000 });
    await agent.next("chunk");
    agent.socket.close(1000, "gone");
    // The same run gets it again, from its beginning.
    const { agent: second } = await FakeAgent.connect(deviceId);
    const { frame } = await second.next("call");
    expect(frame).toMatchObject({ callId: request.callId });
    second.send({ type: "credit", stream: request.callId, bytes: frame.bytes ?? 0 });
    expect((await second.next("chunk")).frame.offset).toBe(0);
    second.answer(request.callId);
    await accepted(reply);
  });

  it("whose link breaks in the middle goes on where the same run of the agent says it is", async () => {
    const { stub, agent, grant, deviceId } = await onlineDevice();
    const request = requestOf(grant.id, { payload: `{"arguments":{"text":"${"x".repeat(600_000)}"}}` });
    const reply = stub.call(request);
    await agent.next("call");
    agent.send({ type: "credit", stream: request.callId, bytes: 200_000 });
    const first = (await agent.next("chunk")).bytes.length;
    agent.socket.close(1000, "gone");
    const { agent: second } = await FakeAgent.connect(deviceId);
    const { frame } = await second.next("call");
    const bytes = (frame.bytes ?? 0) - first;
    second.send({ type: "credit", stream: request.callId, bytes, offset: first });
    let at = first;
    while (at < first + bytes) {
      const piece = await second.next("chunk");
      expect(piece.frame.offset).toBe(at);
      at += piece.bytes.length;
    }
    second.answer(request.callId);
    await accepted(reply);
  });

  it("comes as a stream when it is large, which is read only when there is room for it", async () => {
    const { stub, agent, grant } = await onlineDevice();
    const large = (bytes: number) => {
      let taken = 0;
      const stream = new ReadableStream({
        type: "bytes",
        pull(controller) {
          taken += 64 * KIB;
          controller.enqueue(new Uint8Array(64 * KIB));
          if (taken < bytes) return;
          controller.close();
          controller.byobRequest?.respond(0);
        },
      });
      return { request: requestOf(grant.id, { payload: "", body: { bytes, stream } }), taken: () => taken };
    };
    const [first, second] = [large(5 * KIB * KIB), large(4 * KIB * KIB)];
    const reply = stub.call(first.request);
    expect((await agent.next("call")).frame.bytes).toBe(5 * KIB * KIB);
    expect(await failure(stub.call(second.request))).toMatchObject({ reason: "rate_limited", outcome: "not_started" });
    expect(first.taken()).toBe(5 * KIB * KIB);
    // What the platform takes ahead of a reader, of a stream that nobody reads.
    expect(second.taken()).toBeLessThan(KIB * KIB);
    agent.answer(first.request.callId);
    await accepted(reply);
    const third = large(8 * KIB * KIB);
    const last = stub.call(third.request);
    await agent.next("call");
    agent.answer(third.request.callId);
    await accepted(last);
  });

  it("of many small ones is bounded as well", async () => {
    const { stub, agent, grant } = await onlineDevice(
      {},
      grantOf({ caps: { callsPerMinute: null, inFlight: 64, parked: 4, listeners: 16 } }),
    );
    const payload = `{"arguments":{"text":"${"x".repeat(250 * KIB)}"}}`;
    const fitting = Math.floor(TUNNEL.heldRequestBytes / payload.length);
    const replies = Array.from({ length: fitting }, () => stub.call(requestOf(grant.id, { payload })));
    const callIds: string[] = [];
    while (callIds.length < fitting) callIds.push((await agent.next("call")).frame.callId);
    expect(await failure(stub.call(requestOf(grant.id, { payload })))).toMatchObject({ reason: "rate_limited", outcome: "not_started" });
    for (const callId of callIds) agent.answer(callId);
    for (const reply of replies) await accepted(reply);
  });

  it("whose header does not fit one message is refused with both sizes", async () => {
    const { stub, grant } = await onlineDevice({ limits: { maxFrameBytes: 4096, maxConcurrentCalls: 4 } });
    const problem = await failure(stub.call(requestOf(grant.id, { meta: { text: "x".repeat(5000) } })));
    expect(problem).toMatchObject({ reason: "too_large", outcome: "not_started", data: { cap: 4096 } });
    expect(problem.data?.["size"]).toBeGreaterThan(5000);
  });

  it("is found by its own id: two with the same client id do not mix", async () => {
    const { stub, agent, grant } = await onlineDevice();
    const [one, two] = [requestOf(grant.id, { clientId: "1" }), requestOf(grant.id, { clientId: "1" })];
    const replies = [stub.call(one), stub.call(two)];
    await agent.next("call");
    await agent.next("call");
    agent.answer(two.callId, `{"n":2}`);
    agent.answer(one.callId, `{"n":1}`);
    const answered = await Promise.all(replies.map((reply) => accepted(reply)));
    expect(answered.map(({ payload }) => payload)).toEqual([`{"n":1}`, `{"n":2}`]);
  });

  it("that is cancelled stops at the agent, and what still comes for it goes nowhere", async () => {
    const { stub, agent, grant } = await onlineDevice();
    const request = requestOf(grant.id);
    const reply = stub.call(request);
    await agent.next("call");
    await stub.cancel(request.callId, "caller_left");
    expect((await agent.next("cancel")).frame).toMatchObject({ callId: request.callId, reason: "caller_left" });
    expect(await failure(reply)).toMatchObject({ reason: "cancelled" });
    agent.answer(request.callId);
    const next = requestOf(grant.id);
    const after = stub.call(next);
    await agent.next("call");
    agent.answer(next.callId);
    await accepted(after);
  });

  it("that fails leaves the last good call as it was: only a result counts as the last good call", async () => {
    const { stub, agent, grant } = await onlineDevice();
    const fail = requestOf(grant.id);
    const failed = stub.call(fail);
    await agent.next("call");
    agent.send({
      type: "error",
      callId: fail.callId,
      seq: 1,
      origin: "agent",
      reason: "upstream_failed",
      outcome: "unknown",
      message: "m",
    });
    await failed;
    expect((await statusOf(stub, agent)).lastCallAt).toBeNull();
    const good = requestOf(grant.id);
    const answered = stub.call(good);
    await agent.next("call");
    agent.answer(good.callId);
    await accepted(answered);
    expect((await statusOf(stub, agent)).lastCallAt).toBeGreaterThan(0);
  });

  it("is told as delivered, many in one frame", async () => {
    const { stub, agent, grant } = await onlineDevice();
    const requests = [requestOf(grant.id), requestOf(grant.id)];
    for (const request of requests) {
      const reply = stub.call(request);
      await agent.next("call");
      agent.answer(request.callId);
      await accepted(reply);
    }
    await Promise.all(requests.map((request) => stub.delivered(request.callId)));
    expect((await agent.next("delivered")).frame.callIds.toSorted()).toEqual(requests.map((request) => request.callId).toSorted());
  });

  it("carries earlier deliveries along", async () => {
    const { stub, agent, grant } = await onlineDevice();
    const earlier = newCallId();
    const request = requestOf(grant.id, { delivered: [earlier] });
    const reply = stub.call(request);
    await agent.next("call");
    agent.answer(request.callId);
    await accepted(reply);
    expect((await agent.next("delivered")).frame.callIds).toEqual([earlier]);
  });
});

describe("an agent's broken frame", () => {
  const cases: [string, (agent: FakeAgent, callId: string, credit: number) => void][] = [
    ["a chunk without its outcome", (agent, callId) => agent.send({ type: "chunk", stream: callId, offset: 0 }, new Uint8Array(3))],
    [
      "a chunk at a wrong offset",
      (agent, callId) => {
        agent.send({ type: "result", callId, seq: 2, protocol: "x", bytes: 10 });
        agent.send({ type: "chunk", stream: callId, offset: 5 }, new Uint8Array(3));
      },
    ],
    [
      "more bytes than were announced",
      (agent, callId) => {
        agent.send({ type: "result", callId, seq: 2, protocol: "x", bytes: 10 });
        agent.send({ type: "chunk", stream: callId, offset: 0 }, new Uint8Array(11));
      },
    ],
    [
      "more bytes than its credit",
      (agent, callId, credit) => agent.send({ type: "event", callId, seq: 2, method: "notifications/progress" }, "x".repeat(credit + 1)),
    ],
    [
      "an event after the outcome",
      (agent, callId) => {
        agent.send({ type: "result", callId, seq: 2, protocol: "x", bytes: 10 });
        agent.send({ type: "event", callId, seq: 3, method: "notifications/progress" }, "{}");
      },
    ],
  ];
  it.each(cases)("(%s) ends that call only", async (_name, breakIt) => {
    const { stub, agent, grant } = await onlineDevice();
    const [broken, other] = [requestOf(grant.id, { progress: true }), requestOf(grant.id)];
    const reply = stub.call(broken);
    const { frame } = await agent.next("call");
    const otherReply = stub.call(other);
    await agent.next("call");
    agent.send({ type: "event", callId: broken.callId, seq: 1, method: "notifications/progress" });
    const rest = new Rest((await accepted(reply)).rest);
    breakIt(agent, broken.callId, frame.credit);
    expect((await agent.next("cancel")).frame.callId).toBe(broken.callId);
    let last = await rest.next();
    for (let message = last; message !== null; message = await rest.next()) last = message;
    expect(last?.frame).toMatchObject({ type: "error", origin: "agent", reason: "upstream_failed", outcome: "unknown" });
    agent.answer(other.callId);
    await accepted(otherReply);
  });

  it("an outcome over the cap is refused with both sizes", async () => {
    const { stub, agent, grant } = await onlineDevice();
    const request = requestOf(grant.id);
    const reply = stub.call(request);
    await agent.next("call");
    agent.send({ type: "result", callId: request.callId, seq: 1, protocol: "x", bytes: CALL.maxResultBytes + 1 });
    expect(await failure(reply)).toMatchObject({ reason: "too_large", data: { size: CALL.maxResultBytes + 1, cap: CALL.maxResultBytes } });
    await agent.next("cancel");
  });
});

describe("admission", () => {
  it("refuses unknown, revoked, paused and expired grants", async () => {
    const { stub } = await onlineDevice();
    const bad = [grantOf({ revokedAt: 1 }), grantOf({ pausedAt: 1 }), grantOf({ expiresAt: Date.now() - 1 })];
    for (const grant of bad) await stub.putGrant(grant);
    for (const id of ["g_unknown", ...bad.map((grant) => grant.id)]) {
      expect(await refusal(stub.call(requestOf(id)))).toEqual({ kind: "grant" });
      expect(await refusal(stub.describe(id))).toEqual({ kind: "grant" });
    }
  });

  it("decides on the body: beyond, absent, unknown method", async () => {
    const { stub, agent, grant } = await onlineDevice({}, grantOf({ rights: { tools: ["lamp", "!lamp_off"] } }));
    expect(await refusal(stub.call(requestOf(grant.id, { target: "shell" })))).toEqual({
      kind: "scope",
      scopes: ["device:read", "device:call", "tool:shell"],
    });
    expect(await refusal(stub.call(requestOf(grant.id, { target: "lamp_off" })))).toEqual({ kind: "absent" });
    expect(await refusal(stub.call(requestOf(grant.id, { method: "prompts/get", target: "p" })))).toMatchObject({ kind: "scope" });
    expect(await refusal(stub.call(requestOf(grant.id, { method: "tasks/get" })))).toEqual({ kind: "method" });
    await agent.settled();
    expect(agent.seen("call")).toEqual([]);
  });

  it("keeps a grant's calls in flight and per minute within its caps", async () => {
    const caps = { callsPerMinute: 3, inFlight: 2, parked: 4, listeners: 16 };
    const { stub, agent, grant } = await onlineDevice({}, grantOf({ caps }));
    const [one, two] = [requestOf(grant.id), requestOf(grant.id)];
    const replies = [stub.call(one), stub.call(two)];
    await agent.next("call");
    await agent.next("call");
    expect(await failure(stub.call(requestOf(grant.id)))).toEqual({
      reason: "rate_limited",
      outcome: "not_started",
      data: { retryAfterMs: QUEUE.retryAfterMs },
    });
    agent.answer(one.callId);
    agent.answer(two.callId);
    await Promise.all(replies);
    const three = requestOf(grant.id);
    const third = stub.call(three);
    await agent.next("call");
    agent.answer(three.callId);
    await third;
    const problem = await failure(stub.call(requestOf(grant.id)));
    expect(problem.reason).toBe("rate_limited");
    expect(problem.data?.["retryAfterMs"]).toBeGreaterThan(50_000);
  });

  it("checks parameter headers against the catalogue's schema, for modern clients", async () => {
    const { stub, agent, grant } = await onlineDevice();
    const schema = { type: "object", properties: { room: { type: "string", "x-mcp-header": "Room" } } };
    const body = {
      discover: { capabilities: { tools: {} }, serverInfo: { name: "pi", version: "1" } },
      tools: [{ name: "lamp", inputSchema: schema }],
      resources: [],
      resourceTemplates: [],
      prompts: [],
    };
    agent.send({ type: "catalogue", digest: "d1" }, JSON.stringify(body));
    await agent.settled();
    const payload = `{"arguments":{"room":"attic"}}`;
    expect(await refusal(stub.call(requestOf(grant.id, { payload, paramHeaders: { room: "cellar" } })))).toMatchObject({ kind: "header" });
    expect(await refusal(stub.call(requestOf(grant.id, { payload, paramHeaders: {} })))).toMatchObject({ kind: "header" });
    const good = requestOf(grant.id, { payload, paramHeaders: { room: "attic" } });
    const reply = stub.call(good);
    await agent.next("call");
    agent.answer(good.callId);
    await accepted(reply);
  });

  it("answers for an object that was never dialled into without writing", async () => {
    const { stub } = newDevice();
    await stub.putGrant(grantOf());
    expect(await failure(stub.call(requestOf("g_1")))).toMatchObject({ reason: "device_offline", outcome: "not_started" });
    expect(await stub.status()).toMatchObject({ online: false, generation: 0, lastSeenAt: null });
    expect(await stub.describe("g_1")).toMatchObject({ ok: true, view: { online: false, known: false } });
    const tables = await runInDurableObject(stub, (_instance, state) =>
      state.storage.sql.exec("SELECT name FROM sqlite_master WHERE name NOT LIKE '\\_cf%' ESCAPE '\\'").toArray(),
    );
    expect(tables).toEqual([]);
  });
});

describe("with time", () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it("a busy agent's calls wait their turn, fairly by grant, and not for ever", async () => {
    const { stub, agent, grant } = await onlineDevice({ limits: { maxFrameBytes: 262_144, maxConcurrentCalls: 1 } });
    const other = grantOf();
    await stub.putGrant(other);
    const first = requestOf(grant.id);
    const replies = [stub.call(first)];
    await agent.next("call");
    const [b, c, d] = [requestOf(grant.id), requestOf(grant.id), requestOf(other.id)];
    for (const request of [b, c, d]) replies.push(stub.call(request));
    await agent.settled();
    expect(agent.seen("call")).toEqual([]);
    agent.answer(first.callId);
    expect((await agent.next("call")).frame.callId).toBe(b.callId);
    agent.answer(b.callId);
    expect((await agent.next("call")).frame.callId).toBe(d.callId);
    agent.send({ type: "ack", callId: d.callId });
    await agent.settled();
    await pass(stub, QUEUE.waitMs);
    const late = replies[2];
    if (late === undefined) throw new Error("no reply");
    expect(await failure(late)).toEqual({ reason: "rate_limited", outcome: "not_started", data: { retryAfterMs: QUEUE.waitMs } });
    agent.answer(d.callId);
    await Promise.all(replies);
  });

  it("a call that waits its turn ends with its grant, and never reaches the agent", async () => {
    const { stub, agent, grant } = await onlineDevice({ limits: { maxFrameBytes: 262_144, maxConcurrentCalls: 1 } });
    const other = grantOf();
    await stub.putGrant(other);
    const first = requestOf(grant.id);
    const running = stub.call(first);
    await agent.next("call");
    const waiting = stub.call(requestOf(other.id));
    await agent.settled();
    await stub.putGrant({ ...other, revokedAt: 1 });
    expect(await failure(waiting)).toMatchObject({ reason: "cancelled", outcome: "not_started" });
    agent.answer(first.callId);
    await running;
    await agent.settled();
    expect(agent.seen("call")).toEqual([]);
  });

  it("a relay that looks late gives the agent as much time again before it takes the link for frozen", async () => {
    const { stub, agent, grant } = await onlineDevice();
    const request = requestOf(grant.id);
    const reply = stub.call(request);
    await agent.next("call");
    vi.setSystemTime(Date.now() + CALL.ackMs / 2);
    await pass(stub, CALL.ackMs + 100);
    agent.answer(request.callId);
    await accepted(reply);
    const second = stub.call(requestOf(grant.id));
    await agent.next("call");
    vi.setSystemTime(Date.now() + CALL.ackMs / 2);
    await pass(stub, CALL.ackMs + 100);
    await pass(stub, CALL.ackMs / 2);
    expect((await failure(second)).reason).toBe("tunnel_lost");
    expect((await agent.closed).code).toBe(4003);
  });

  it("a call that is not acknowledged in time shows a frozen link, which is closed", async () => {
    const { stub, agent, grant } = await onlineDevice();
    const reply = stub.call(requestOf(grant.id));
    await agent.next("call");
    await pass(stub, CALL.ackMs + 1_000);
    expect(await failure(reply)).toEqual({ reason: "tunnel_lost", outcome: "unknown" });
    expect((await agent.closed).code).toBe(4003);
    expect(await failure(stub.call(requestOf(grant.id)))).toMatchObject({ reason: "device_offline", outcome: "not_started" });
  });

  it("a call that is acknowledged may run until its deadline, which names the limit and who set it", async () => {
    const { stub, agent, grant } = await onlineDevice();
    const request = requestOf(grant.id);
    const reply = stub.call(request);
    await agent.next("call");
    agent.send({ type: "ack", callId: request.callId });
    await agent.settled();
    await pass(stub, CALL.timeoutMs);
    await agent.settled();
    expect(agent.seen("cancel")).toEqual([]);
    await pass(stub, CALL.deadlineGraceMs);
    expect(await failure(reply)).toEqual({
      reason: "device_timeout",
      outcome: "unknown",
      data: { limitMs: CALL.timeoutMs, setBy: "relay" },
    });
    expect((await agent.next("cancel")).frame.reason).toBe("deadline");
  });

  it("a large outcome that stands still ends, and holds nothing any more", async () => {
    const { stub, agent, grant } = await onlineDevice();
    const request = requestOf(grant.id);
    const reply = stub.call(request);
    await agent.next("call");
    agent.send({ type: "result", callId: request.callId, seq: 1, protocol: "x", bytes: 1000 });
    const answered = await accepted(reply);
    await pass(stub, CALL.stallMs);
    expect((await new Rest(answered.rest).next())?.frame).toMatchObject({ type: "error", reason: "device_timeout" });
    expect((await statusOf(stub, agent)).inFlight).toBe(0);
  });

  it("a silent link is probed before it is used: one that answers serves, one that does not is closed", async () => {
    const { stub, agent, grant } = await onlineDevice();
    vi.setSystemTime(Date.now() + TUNNEL.probeAfterMs + 1);
    const request = requestOf(grant.id);
    const reply = stub.call(request);
    await agent.answerProbe();
    await agent.next("call");
    agent.answer(request.callId);
    await accepted(reply);
    vi.setSystemTime(Date.now() + TUNNEL.probeAfterMs + 1);
    const second = stub.call(requestOf(grant.id));
    await agent.next("probe");
    await pass(stub, TUNNEL.probeMs + 1_000);
    expect(await failure(second)).toMatchObject({
      reason: "device_offline",
      outcome: "not_started",
      data: { lastSeenAt: expect.any(Number) },
    });
    expect((await agent.closed).code).toBe(4003);
  });
});
