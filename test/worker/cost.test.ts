/** Counts the billable events of each case of docs/cost.md: nothing that costs may begin unnoticed. */
import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, describe, expect, it, vi } from "vitest";
import { insertDevice, markBorn } from "../../src/db/devices.ts";
import { PING_TEXT, PONG_TEXT } from "../../src/tunnel/frames.ts";
import { BUSY_CALL, CONNECT, LISTENER, QUIET_CALL } from "../support/cost-model.ts";
import { accepted, eventually, onlineDevice, pass } from "./support/device.ts";
import { FakeAgent, grantOf, newDevice, requestOf, type Stub } from "./support/fake-agent.ts";
import { catalogueOf, ListenerEnd } from "./support/listening.ts";
import { meterOf, type Meter } from "./support/meter.ts";

let meter: (Meter & { restore(): void }) | undefined;
afterEach(() => {
  meter?.restore();
  meter = undefined;
  vi.useRealTimers();
});

async function calls(stub: Stub, agent: FakeAgent, grant: string, count: number): Promise<void> {
  let last: string | undefined;
  for (let made = 0; made < count; made += 1) {
    // As at the edge: the word that the last one was delivered travels with the next.
    const request = requestOf(grant, last === undefined ? {} : { delivered: [last] });
    const reply = stub.call(request);
    await agent.next("call");
    agent.answer(request.callId);
    await accepted(reply);
    last = request.callId;
  }
  if (last !== undefined) await stub.delivered(last);
}

describe("what costs", () => {
  it.each([
    ["a hundred calls in a row", 100, BUSY_CALL],
    ["one call", 1, QUIET_CALL],
  ])("%s: one message in each, four or five rows of audit in D1, and nothing in the object", async (_name, count, expected) => {
    const { stub, agent, grant } = await onlineDevice();
    // The first batch of an instance also sweeps old rows.
    await calls(stub, agent, grant.id, 1);
    await agent.next("delivered");
    meter = await meterOf(stub);
    await calls(stub, agent, grant.id, count);
    await eventually(async () => {
      const row = await env.DB.prepare("SELECT COUNT(*) AS rows FROM audit WHERE grant_id = ?").bind(grant.id).first();
      expect(row).toEqual({ rows: count + 1 });
    });
    const { databaseRows, messages, objectRows } = meter;
    expect({ messages: messages / count, objectRows }).toEqual({ messages: expected.messages, objectRows: expected.objectRows });
    // The row and its three indexes; and once for each batch, of which a slow machine makes more, the row of AUTOINCREMENT.
    expect(databaseRows).toBeGreaterThan(4 * count);
    expect(databaseRows).toBeLessThanOrEqual(5 * count);
  });

  it("a device that connects and goes: a few rows, all of them at that moment", async () => {
    const { deviceId, stub } = newDevice();
    await insertDevice(env.DB, { id: deviceId, name: deviceId, keyHash: deviceId, createdAt: 1 });
    await markBorn(env.DB, deviceId, 2);
    // Its first time makes the tables.
    const first = await FakeAgent.connect(deviceId);
    first.agent.socket.close(1000);
    meter = await meterOf(stub);
    const { agent } = await FakeAgent.connect(deviceId);
    agent.send({ type: "catalogue", digest: "d1" }, catalogueOf(["lamp"]));
    await stub.putGrant(grantOf());
    await eventually(async () => expect(await stub.offeredTools()).not.toBeNull());
    agent.socket.close(1000);
    await eventually(async () => {
      const row = await env.DB.prepare("SELECT online FROM devices WHERE id = ?").bind(deviceId).first();
      expect(row).toEqual({ online: 0 });
    });
    const { databaseRows, messages, objectRows } = meter;
    expect(messages).toBe(CONNECT.messages);
    expect(objectRows).toBeLessThanOrEqual(CONNECT.objectRows);
    expect(databaseRows).toBeLessThanOrEqual(CONNECT.databaseRows);
  });
});

describe("what costs nothing while it lasts", () => {
  it("an idle device with an idle listener: no timer, no row, no alarm before a grant ends, and `ping` reaches nobody", async () => {
    vi.useFakeTimers();
    const { deviceId, stub, agent, grant } = await onlineDevice();
    agent.send({ type: "catalogue", digest: "d1" }, catalogueOf(["lamp"]));
    await eventually(async () => expect(await stub.describe(grant.id)).toMatchObject({ view: { known: true } }));
    const before = (meter = await meterOf(stub));
    const listener = await ListenerEnd.open(deviceId, { grant: grant.id, filter: { lists: ["tools"], resources: [] } });
    await listener.next();
    expect(before.objectRows).toBe(LISTENER.objectRows);
    await pass(stub, 2_000);
    const pong = new Promise((resolve) => agent.socket.addEventListener("message", ({ data }) => data === PONG_TEXT && resolve(data)));
    agent.socket.send(PING_TEXT);
    expect(await pong).toBe(PONG_TEXT);
    expect(before).toMatchObject({ messages: 0, objectRows: 0, databaseRows: 0 });
    const state = await runInDurableObject(stub, async (_instance, ctx) => ({
      alarm: await ctx.storage.getAlarm(),
      timers: vi.getTimerCount(),
    }));
    expect(state).toEqual({ alarm: grant.expiresAt, timers: 0 });
  });
});
