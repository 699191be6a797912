/** Legacy sessions and the copy of grants: what counts, what sleeps, what ends, and what survives. */
import { evictDurableObject, runDurableObjectAlarm } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { SessionInit } from "../../durable/rpc.ts";
import { SESSION } from "../../src/limits.ts";
import { accepted, failure, onlineDevice, refusal, statusOf } from "./support/device.ts";
import { FakeAgent, grantOf, requestOf, type Stub } from "./support/fake-agent.ts";

const INIT: SessionInit = { version: "2025-06-18", capabilities: { roots: {} }, clientInfo: { name: "c", version: "1" } };
const CATALOGUE = `{"discover":{"capabilities":{},"serverInfo":{"name":"a","version":"1"}},"tools":[],"resources":[],"resourceTemplates":[],"prompts":[]}`;

async function device(grant = grantOf()) {
  const online = await onlineDevice({}, grant);
  online.agent.send({ type: "catalogue", digest: "d" }, CATALOGUE);
  return online;
}

async function open(stub: Stub, grant: string): Promise<string> {
  const opened = await stub.openSession(grant, INIT);
  if (!opened.ok) throw new Error(JSON.stringify(opened.refusal));
  return opened.sessionId;
}

/** A session that counts. */
async function used(stub: Stub, grant: string): Promise<string> {
  const id = await open(stub, grant);
  expect(await stub.useSession(grant, { id })).toMatchObject({ ok: true });
  return id;
}

function inSession(grant: string, id: string) {
  const { client: _client, ...rest } = requestOf(grant);
  return { ...rest, session: { id } };
}

const UNKNOWN = { kind: "session", why: "unknown" };

describe("a session", () => {
  it("tells what it was opened with, and lends it to its calls", async () => {
    const { stub, agent, grant } = await device();
    const id = await open(stub, grant.id);
    expect(await stub.useSession(grant.id, { id, headerVersion: "2025-06-18" })).toEqual({
      ok: true,
      session: { version: "2025-06-18", capabilities: { roots: {} } },
    });
    await stub.setLogLevel(grant.id, { id }, "warning");
    const request = inSession(grant.id, id);
    const reply = stub.call(request);
    expect((await agent.next("call")).frame).toMatchObject({
      client: { era: "legacy", protocol: "2025-06-18", capabilities: { roots: {} }, info: INIT.clientInfo },
      logLevel: "warning",
    });
    agent.answer(request.callId);
    expect((await accepted(reply)).session).toEqual({ version: "2025-06-18", capabilities: { roots: {} } });
  });

  it("survives sleep and a closed tunnel", async () => {
    const { stub, grant } = await device();
    const id = await used(stub, grant.id);
    await evictDurableObject(stub);
    expect(await stub.useSession(grant.id, { id })).toMatchObject({ ok: true });
    await evictDurableObject(stub, { webSockets: "close" });
    expect(await stub.useSession(grant.id, { id })).toMatchObject({ ok: true });
    expect((await failure(stub.call(inSession(grant.id, id)))).reason).toBe("device_offline");
  });

  it("is unknown to others, refuses another version, and ends for good", async () => {
    const { stub, grant } = await device();
    const other = grantOf();
    await stub.putGrant(other);
    const id = await used(stub, grant.id);
    expect(await refusal(stub.useSession(other.id, { id }))).toEqual(UNKNOWN);
    expect(await refusal(stub.call(inSession(other.id, id)))).toEqual(UNKNOWN);
    expect(await refusal(stub.endSession(other.id, id))).toEqual(UNKNOWN);
    expect(await refusal(stub.useSession(grant.id, { id, headerVersion: "2025-11-25" }))).toEqual({ kind: "session", why: "version" });
    expect(await stub.endSession(grant.id, id)).toEqual({ ok: true });
    for (const again of [stub.useSession(grant.id, { id }), stub.endSession(grant.id, id)]) expect(await refusal(again)).toEqual(UNKNOWN);
  });

  it("that ends takes its calls with it, and no others", async () => {
    const { stub, agent, grant } = await device();
    const [mine, other] = [inSession(grant.id, await used(stub, grant.id)), requestOf(grant.id)];
    const replies = [stub.call(mine), stub.call(other)];
    await agent.next("call");
    await agent.next("call");
    await stub.endSession(grant.id, mine.session.id);
    expect((await agent.next("cancel")).frame.callId).toBe(mine.callId);
    agent.answer(other.callId);
    const [ended, answered] = replies;
    if (ended === undefined || answered === undefined) throw new Error("no replies");
    expect(await failure(ended)).toMatchObject({ reason: "cancelled" });
    await accepted(answered);
  });

  it("too large to keep is refused", async () => {
    const { stub, grant } = await device();
    const init = { ...INIT, capabilities: { experimental: { x: "x".repeat(SESSION.recordBytes) } } };
    expect(await refusal(stub.openSession(grant.id, init))).toMatchObject({ kind: "params" });
  });
});

describe("with time", () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["Date"] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });
  const wait = (ms: number) => vi.setSystemTime(Date.now() + ms);

  it("only used sessions count, and the ninth evicts the longest idle one", async () => {
    const { stub, agent, grant } = await device();
    const ids: string[] = [];
    for (let n = 0; n < SESSION.perGrant; n += 1) {
      ids.push(await used(stub, grant.id));
      wait(1_000);
    }
    for (let n = 0; n < 5; n += 1) await open(stub, grant.id);
    const [oldest = "", second = ""] = ids;
    await stub.useSession(grant.id, { id: oldest });
    wait(1_000);
    await used(stub, grant.id);
    expect(await refusal(stub.useSession(grant.id, { id: second }))).toEqual(UNKNOWN);
    expect(await stub.useSession(grant.id, { id: oldest })).toMatchObject({ ok: true });
    expect((await statusOf(stub, agent)).sessions).toBe(SESSION.perGrant);
  });

  it("one with a call in flight is never evicted; when all have one, no more can be opened", async () => {
    const { stub, agent, grant } = await device();
    const requests = [];
    for (let n = 0; n < SESSION.perGrant; n += 1) requests.push(inSession(grant.id, await used(stub, grant.id)));
    const replies = requests.map((request) => stub.call(request));
    for (let n = 0; n < requests.length; n += 1) await agent.next("call");
    expect(await failure(stub.openSession(grant.id, INIT))).toMatchObject({ reason: "rate_limited", outcome: "not_started" });
    const [first] = requests;
    if (first === undefined) throw new Error("no request");
    agent.answer(first.callId);
    await replies[0];
    await used(stub, grant.id);
    expect(await refusal(stub.useSession(grant.id, first.session))).toEqual(UNKNOWN);
    for (const request of requests.slice(1)) agent.answer(request.callId);
    await Promise.all(replies);
  });

  it("sleeps after its idle time, is woken for a day, and is unknown after it", async () => {
    const { stub, agent, grant } = await device(grantOf({ expiresAt: Date.now() + SESSION.asleepMs * 9 }));
    const [one, two] = [await used(stub, grant.id), await used(stub, grant.id)];
    wait(SESSION.idleMs + 1);
    expect((await statusOf(stub, agent)).sessions).toBe(0);
    await evictDurableObject(stub);
    expect(await stub.useSession(grant.id, { id: one })).toMatchObject({ ok: true });
    wait(SESSION.asleepMs);
    await evictDurableObject(stub);
    expect(await refusal(stub.useSession(grant.id, { id: two }))).toEqual(UNKNOWN);
    expect(await stub.useSession(grant.id, { id: one })).toMatchObject({ ok: true });
  });

  it("is not idle while a call is in flight", async () => {
    const { stub, agent, grant } = await device();
    const request = inSession(grant.id, await used(stub, grant.id));
    const reply = stub.call(request);
    await agent.next("call");
    agent.send({ type: "ack", callId: request.callId });
    await agent.settled();
    wait(SESSION.idleMs * 2);
    expect((await statusOf(stub, agent)).sessions).toBe(1);
    agent.answer(request.callId);
    await accepted(reply);
    wait(SESSION.idleMs - 1_000);
    expect((await statusOf(stub, agent)).sessions).toBe(1);
  });

  it("a grant that expires ends its sessions and calls by the alarm", async () => {
    const grant = grantOf({ expiresAt: Date.now() + 60_000 });
    const { stub, agent } = await device(grant);
    const request = inSession(grant.id, await used(stub, grant.id));
    const reply = stub.call(request);
    await agent.next("call");
    wait(60_001);
    await runDurableObjectAlarm(stub);
    expect((await agent.next("cancel")).frame.reason).toBe("expired");
    expect(await failure(reply)).toMatchObject({ reason: "cancelled" });
    expect(await refusal(stub.call(request))).toEqual({ kind: "grant" });
  });
});

describe("the copy of grants", () => {
  it("never goes back to an older revision, and a revocation is final", async () => {
    const { stub, grant } = await device(grantOf({ revision: 5, rights: { tools: ["a"] } }));
    await stub.putGrant({ ...grant, revision: 4, rights: {} });
    expect(await refusal(stub.call(requestOf(grant.id, { target: "b" })))).toMatchObject({ kind: "scope" });
    await stub.putGrant({ ...grant, revokedAt: 1 });
    await stub.putGrant({ ...grant, revision: 9 });
    expect(await refusal(stub.call(requestOf(grant.id)))).toEqual({ kind: "grant" });
    await evictDurableObject(stub);
    expect(await refusal(stub.call(requestOf(grant.id)))).toEqual({ kind: "grant" });
  });

  it("a revocation ends calls, sessions and what waits in line, of that grant only", async () => {
    const { deviceId, stub, agent, grant } = await device();
    const other = grantOf();
    await stub.putGrant(other);
    const { agent: back } = await FakeAgent.connect(deviceId, { limits: { maxFrameBytes: 262_144, maxConcurrentCalls: 2 } });
    await agent.closed;
    const id = await used(stub, grant.id);
    const [mine, theirs, queued] = [inSession(grant.id, id), requestOf(other.id), requestOf(grant.id)];
    const replies = [stub.call(mine), stub.call(theirs), stub.call(queued)];
    await back.next("call");
    await back.next("call");
    await stub.putGrant({ ...grant, revokedAt: Date.now() });
    expect((await back.next("cancel")).frame).toMatchObject({ callId: mine.callId, reason: "revoked" });
    const [ended, answered, never] = replies;
    if (ended === undefined || answered === undefined || never === undefined) throw new Error("no replies");
    expect(await failure(ended)).toEqual({ reason: "cancelled", outcome: "unknown" });
    expect(await failure(never)).toEqual({ reason: "cancelled", outcome: "not_started" });
    back.answer(theirs.callId);
    await accepted(answered);
    await back.settled();
    expect(back.seen("call")).toEqual([]);
    expect(back.seen("cancel")).toEqual([]);
  });

  it("a pause ends what runs, and its end lets the grant work again", async () => {
    const { stub, agent, grant } = await device();
    const reply = stub.call(requestOf(grant.id));
    await agent.next("call");
    await stub.putGrant({ ...grant, pausedAt: 1 });
    expect(await failure(reply)).toMatchObject({ reason: "cancelled" });
    expect(await refusal(stub.call(requestOf(grant.id)))).toEqual({ kind: "grant" });
    await stub.putGrant({ ...grant, revision: 2 });
    const request = requestOf(grant.id);
    const again = stub.call(request);
    await agent.next("call");
    agent.answer(request.callId);
    await accepted(again);
  });
});
