/** What a device's object puts on record: one row per call and refused attempt, in batches, surviving D1 and the object. */
import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { AuditBuffer } from "../../durable/audit-buffer.ts";
import type { NewAuditRow } from "../../src/db/audit.ts";
import { AUDIT } from "../../src/limits.ts";
import { newCallId } from "../../src/tunnel/frames.ts";
import { accepted, eventually, onlineDevice, refusal } from "./support/device.ts";
import { FakeAgent, grantOf, newDevice, requestOf, stubOf } from "./support/fake-agent.ts";

async function row(id: string): Promise<Record<string, unknown> | null> {
  return env.DB.prepare("SELECT * FROM audit WHERE id = ?").bind(id).first();
}

async function rowSoon(id: string): Promise<Record<string, unknown>> {
  let found: Record<string, unknown> | null = null;
  await eventually(async () => {
    found = await row(id);
    expect(found).not.toBeNull();
  });
  return found ?? {};
}

describe("a call's row", () => {
  it("says who called what and how it ended, and holds neither arguments nor result", async () => {
    const { deviceId, stub, agent, grant } = await onlineDevice();
    const request = requestOf(grant.id, {
      payload: `{"arguments":{"secret":"argument-canary"}}`,
      client: { era: "modern", protocol: "2026-07-28", capabilities: {}, info: { name: "Inspector", version: "3.1" } },
    });
    const reply = stub.call(request);
    await agent.next("call");
    agent.answer(request.callId, `{"content":[{"type":"text","text":"result-canary"}]}`);
    await accepted(reply);
    const found = await rowSoon(request.callId);
    expect(found).toMatchObject({
      kind: "call",
      device_id: deviceId,
      device: "pi",
      grant_id: grant.id,
      label: "Ada's laptop",
      member_id: "m_1",
      client: "Inspector",
      client_version: "3.1",
      client_protocol: "2026-07-28",
      upstream_protocol: "2026-07-28",
      method: "tools/call",
      target: "lamp",
      outcome: "ok",
      reason: null,
      duration_ms: expect.any(Number),
      bytes_in: request.payload.length,
      bytes_out: 52,
    });
    expect(JSON.stringify(found)).not.toContain("canary");
  });

  it("tells an upstream's error, the agent's failure and a cancellation apart", async () => {
    const { stub, agent, grant } = await onlineDevice();
    const [upstream, failed, cancelled] = [requestOf(grant.id), requestOf(grant.id), requestOf(grant.id)];
    const replies = [upstream, failed, cancelled].map((request) => stub.call(request));
    for (let i = 0; i < 3; i++) await agent.next("call");
    agent.send({
      type: "error",
      callId: upstream.callId,
      seq: 1,
      origin: "upstream",
      protocol: "2025-06-18",
      code: -32_001,
      message: "no",
    });
    agent.send({
      type: "error",
      callId: failed.callId,
      seq: 1,
      origin: "agent",
      reason: "refused_by_device",
      outcome: "not_started",
      message: "no",
    });
    await stub.cancel(cancelled.callId, "caller_asked");
    await Promise.all(replies);
    expect(await rowSoon(upstream.callId)).toMatchObject({ outcome: "error", reason: "-32001", upstream_protocol: "2025-06-18" });
    expect(await rowSoon(failed.callId)).toMatchObject({ outcome: "failed", reason: "refused_by_device" });
    expect(await rowSoon(cancelled.callId)).toMatchObject({ outcome: "cancelled", reason: "caller_asked" });
  });

  it("is written for refused attempts too, with why, up to a bound for each grant", async () => {
    const { stub, grant } = await onlineDevice({}, grantOf({ rights: { tools: ["screenshot", "!shell"] } }));
    const beyond = requestOf(grant.id, { target: "reboot" });
    const absent = requestOf(grant.id, { target: "shell" });
    const unknown = requestOf("g_unknown");
    for (const request of [beyond, absent, unknown]) await refusal(stub.call(request));
    expect(await rowSoon(beyond.callId)).toMatchObject({
      kind: "refused",
      outcome: "refused",
      reason: "scope",
      target: "reboot",
      grant_id: grant.id,
    });
    expect(await rowSoon(absent.callId)).toMatchObject({ kind: "refused", reason: "absent", target: "shell" });
    expect(await rowSoon(unknown.callId)).toMatchObject({ kind: "refused", reason: "grant", grant_id: "g_unknown", label: null });
    const other = grantOf({ rights: { tools: ["screenshot"] } });
    await stub.putGrant(other);
    for (let i = 0; i < AUDIT.refusedPerMinute; i++) await refusal(stub.call(requestOf(other.id, { target: "reboot" })));
    const last = requestOf(other.id, { target: "reboot" });
    await refusal(stub.call(last));
    await eventually(async () => {
      const count = await env.DB.prepare("SELECT COUNT(*) AS n FROM audit WHERE grant_id = ?").bind(other.id).first<number>("n");
      expect(count).toBe(AUDIT.refusedPerMinute);
    });
    expect(await row(last.callId)).toBeNull();
  });

  it("is bounded for ids that nobody gave out as for one grant", async () => {
    const { deviceId, stub } = await onlineDevice();
    for (let i = 0; i < AUDIT.refusedPerMinute + 10; i++) expect((await refusal(stub.call(requestOf(`forged-${i}`)))).kind).toBe("grant");
    await eventually(async () => {
      const rows = await env.DB.prepare("SELECT COUNT(*) AS n FROM audit WHERE device_id = ? AND kind = 'refused'")
        .bind(deviceId)
        .first("n");
      expect(rows).toBe(AUDIT.refusedPerMinute);
    });
  });

  it("is written for another machine that comes with the device's key", async () => {
    const { deviceId, agent } = await onlineDevice();
    const thief = await FakeAgent.dial(deviceId);
    thief.hello({ installation: "machine-2" });
    await agent.answerProbe();
    await thief.closed;
    await eventually(async () => {
      const found = await env.DB.prepare("SELECT reason FROM audit WHERE device_id = ? AND method = 'tunnel.hello'").bind(deviceId).first();
      expect(found).toEqual({ reason: "other_installation" });
    });
  });
});

describe("an outcome", () => {
  it("is forgotten by the agent only once its row is stored", async () => {
    const { stub, agent, grant } = await onlineDevice();
    const request = requestOf(grant.id);
    const reply = stub.call(request);
    await agent.next("call");
    agent.answer(request.callId);
    await accepted(reply);
    await stub.delivered(request.callId);
    const { frame } = await agent.next("delivered");
    expect(frame.callIds).toEqual([request.callId]);
    expect(await row(request.callId)).not.toBeNull();
  });

  it("of a call that the object lost is on record: first as unknown, then as it ended", async () => {
    const { deviceId, stub, agent, grant } = await onlineDevice();
    const request = requestOf(grant.id);
    void stub.call(request).catch(() => undefined);
    await agent.next("call");
    // The object is lost while the agent runs the call; a new instance hears of it from the agent alone.
    agent.socket.close(1000, "cut");
    const other = newDevice();
    const { agent: back } = await FakeAgent.connect(other.deviceId, { held: [request.callId] });
    await other.stub.putGrant(grant);
    expect(await rowSoon(request.callId)).toMatchObject({ outcome: "unknown", reason: "relay_restarted", method: null });
    const again = other.stub.attach(grant.id, request.callId, 0, 0, {
      method: "tools/call",
      target: "lamp",
      client: { era: "modern", protocol: "2026-07-28", capabilities: {} },
      at: Date.now(),
    });
    await back.next("attach");
    back.answer(request.callId);
    await accepted(again);
    await eventually(async () => {
      expect(await row(request.callId)).toMatchObject({ outcome: "ok", reason: null, method: "tools/call", target: "lamp" });
    });
    expect(deviceId).not.toBe(other.deviceId);
  });

  it("is not overwritten by what is heard later of a call with a row", async () => {
    const { deviceId, stub, agent, grant } = await onlineDevice();
    const request = requestOf(grant.id);
    const reply = stub.call(request);
    await agent.next("call");
    agent.answer(request.callId);
    await accepted(reply);
    await rowSoon(request.callId);
    await evictDurableObject(stub);
    const probe = newCallId();
    const { agent: back } = await FakeAgent.connect(deviceId, { held: [request.callId, probe] });
    await rowSoon(probe);
    expect(await row(request.callId)).toMatchObject({ outcome: "ok", target: "lamp" });
    back.socket.close();
  });
});

/** A buffer over a device's storage and a D1 that does as the test says. */
function newRow(id: string): NewAuditRow {
  return { id, kind: "call", at: Date.now(), outcome: "ok" };
}

describe("rows on their way", () => {
  it("are kept by the object while D1 is away, and handed over once when it is back", async () => {
    const { stub, agent, grant } = await onlineDevice();
    await env.DB.prepare("ALTER TABLE audit RENAME TO audit_away").run();
    const request = requestOf(grant.id);
    try {
      const reply = stub.call(request);
      await agent.next("call");
      agent.answer(request.callId);
      await accepted(reply);
      await stub.delivered(request.callId);
      // Kept is stored: the agent may forget.
      expect((await agent.next("delivered")).frame.callIds).toEqual([request.callId]);
    } finally {
      await env.DB.prepare("ALTER TABLE audit_away RENAME TO audit").run();
    }
    expect(await row(request.callId)).toBeNull();
    await evictDurableObject(stub);
    await runInDurableObject(stub, (_object, state) => {
      state.storage.sql.exec("UPDATE due SET at = 0 WHERE work = 'audit'");
    });
    await runDurableObjectAlarm(stub);
    expect(await rowSoon(request.callId)).toMatchObject({ outcome: "ok", method: "tools/call" });
    await eventually(() =>
      runInDurableObject(stub, (_object, state) => {
        expect(state.storage.sql.exec("SELECT COUNT(*) AS n FROM audit_kept").one()["n"]).toBe(0);
      }).then(() => undefined),
    );
  });

  it("go in one batch after a moment, or at once when there are many, and each id is held until then", async () => {
    const { stub } = await onlineDevice();
    await runInDurableObject(stub, async (_object, state) => {
      const batches: number[] = [];
      const gate = Promise.withResolvers<void>();
      const db = {
        prepare: () => ({ bind: (json: string) => ({ json }) }),
        batch: async ([first]: { json: string }[]) => {
          batches.push((JSON.parse(first?.json ?? "[]") as unknown[]).length);
          await gate.promise;
        },
      } as unknown as D1Database;
      const stored = Promise.withResolvers<void>();
      const buffer = new AuditBuffer({
        sql: state.storage.sql,
        db,
        planRetry: () => undefined,
        onStored: stored.resolve,
        now: () => Date.now(),
      });
      for (let i = 0; i < AUDIT.batchRows; i++) buffer.add(newRow(`r${i}`));
      buffer.add(newRow("late"));
      expect(batches).toEqual([AUDIT.batchRows]);
      expect([buffer.holds("r0"), buffer.holds("late"), buffer.holds("other")]).toEqual([true, true, false]);
      gate.resolve();
      await stored.promise;
      await buffer.flush();
      expect(batches).toEqual([AUDIT.batchRows, 1]);
      expect([buffer.holds("r0"), buffer.holds("late")]).toEqual([false, false]);
    });
  });
});

describe("calls per minute", () => {
  it("are still counted after the object slept", async () => {
    const { deviceId, stub, agent, grant } = await onlineDevice(
      {},
      grantOf({ caps: { callsPerMinute: 1, inFlight: 8, parked: 4, listeners: 16 } }),
    );
    const request = requestOf(grant.id);
    const reply = stub.call(request);
    await agent.next("call");
    agent.answer(request.callId);
    await accepted(reply);
    await rowSoon(request.callId);
    await evictDurableObject(stub);
    const refused = await refusal(stubOf(deviceId).call(requestOf(grant.id)));
    expect(refused).toMatchObject({ kind: "failure", failure: { reason: "rate_limited", outcome: "not_started" } });
    expect(refused).toMatchObject({
      failure: { message: expect.stringMatching(/^Calls per minute of this grant are limited to 1\. Wait \d+ s/) },
    });
  });
});
