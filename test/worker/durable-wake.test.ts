/** A call for a device that sleeps: its wake URL hears of it once a minute, and the call waits for the device a while. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { WAKE } from "../../src/limits.ts";
import { accepted, eventually, failure, onlineDevice, pass } from "./support/device.ts";
import { FakeAgent, requestOf } from "./support/fake-agent.ts";

const URL = "https://wake.test/secret-topic";
let posts: { url: string; method: string; redirect: string; body: string }[];
beforeEach(() => {
  posts = [];
  vi.spyOn(globalThis, "fetch").mockImplementation(async (request) => {
    // Read here: a request belongs to the object that made it.
    const { url, method, redirect } = request as Request;
    posts.push({ url, method, redirect, body: await (request as Request).text() });
    return new Response("never read");
  });
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

/** A device whose agent has left. */
async function asleep() {
  const device = await onlineDevice();
  device.agent.socket.close(1000);
  await eventually(async () => expect((await device.stub.status()).online).toBe(false));
  return device;
}

describe("a call for a device with a wake URL", () => {
  it("posts once without a word of the call, and is sent when the device comes", async () => {
    const { deviceId, stub, grant } = await asleep();
    const request = { ...requestOf(grant.id), wakeUrl: URL, payload: '{"arguments":{"pin":"1234"}}' };
    const reply = stub.call(request);
    await eventually(async () => await Promise.resolve(expect(posts).toHaveLength(1)));
    expect(posts).toEqual([{ url: URL, method: "POST", redirect: "manual", body: '{"event":"call","device":"pi"}' }]);
    const { agent } = await FakeAgent.connect(deviceId);
    await agent.next("call");
    agent.answer(request.callId);
    expect((await accepted(reply)).frame).toMatchObject({ type: "result" });
  });

  it("of several calls one posts, all wait until the time is over, and the next minute posts again", async () => {
    const { stub, grant } = await asleep();
    vi.useFakeTimers({ toFake: ["Date", "setTimeout", "clearTimeout"] });
    const first = stub.call({ ...requestOf(grant.id), wakeUrl: URL });
    const second = stub.call({ ...requestOf(grant.id), wakeUrl: URL });
    await eventually(async () => await Promise.resolve(expect(posts).toHaveLength(1)));
    await pass(stub, WAKE.waitMs);
    expect(await failure(first)).toMatchObject({ reason: "device_offline" });
    expect(await failure(second)).toMatchObject({ reason: "device_offline", outcome: "not_started" });
    // Within the minute nobody waits for what did not come.
    expect(await failure(stub.call({ ...requestOf(grant.id), wakeUrl: URL }))).toMatchObject({ reason: "device_offline" });
    expect(posts).toHaveLength(1);
    await pass(stub, WAKE.pauseMs);
    const later = stub.call({ ...requestOf(grant.id), wakeUrl: URL });
    await eventually(async () => await Promise.resolve(expect(posts).toHaveLength(2)));
    await pass(stub, WAKE.waitMs);
    await failure(later);
  });

  it("posts nothing while the device is there", async () => {
    const { stub, agent, grant } = await onlineDevice();
    const request = { ...requestOf(grant.id), wakeUrl: URL };
    const reply = stub.call(request);
    await agent.next("call");
    agent.answer(request.callId);
    await accepted(reply);
    expect(posts).toEqual([]);
  });
});
