/** What an object has to know again after it slept; docs/testing.md lists every state with its test. */
import { evictDurableObject } from "cloudflare:test";
import { expect, it } from "vitest";
import { failure, onlineDevice, statusOf } from "./support/device.ts";
import { FakeAgent, requestOf } from "./support/fake-agent.ts";

it("a paused device is still paused after its object slept, and runs again when it is told to", async () => {
  const { stub, agent, grant } = await onlineDevice();
  await stub.configure({ pausedAt: 1 });
  await evictDurableObject(stub);
  expect((await failure(stub.call(requestOf(grant.id)))).message).toContain("paused");
  await stub.configure({ pausedAt: null });
  const reply = stub.call(requestOf(grant.id));
  agent.answer((await agent.next("call")).frame.callId);
  expect((await reply).ok).toBe(true);
});

it("a refused second agent is still seen in the status after the object slept", async () => {
  const { deviceId, stub, agent } = await onlineDevice();
  const rival = await FakeAgent.dial(deviceId);
  rival.hello({ installation: "machine-2" });
  await agent.answerProbe();
  await rival.closed;
  await evictDurableObject(stub);
  expect((await statusOf(stub, agent)).rival).toMatchObject({ at: expect.any(Number) });
});

it("a removed device is as if it had never been, also after its object slept", async () => {
  const { stub, grant } = await onlineDevice();
  await stub.destroy();
  await evictDurableObject(stub);
  expect(await failure(stub.call(requestOf(grant.id)))).toMatchObject({ reason: "device_offline", data: { lastSeenAt: null } });
  expect(await stub.status()).toMatchObject({ online: false, generation: 0 });
});
