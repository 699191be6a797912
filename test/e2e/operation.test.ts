/** What whoever runs a relay looks at and relies on: metrics, readiness, and a copy of the data. */
import { cp } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { answerOf, postTool } from "../support/modern-call.ts";
import { eventually, temporaryDir } from "../support/processes.ts";
import { startAgent, startRelay } from "../support/relay-process.ts";
import { FIXTURE_STDIO, startStack, type Stack } from "../support/stack.ts";

let stack: Stack;
beforeAll(async () => {
  stack = await startStack({ agent: ["--", ...FIXTURE_STDIO] });
});
afterAll(() => stack?.stop());

async function asOwner(path: string): Promise<Response> {
  return await fetch(`${stack.relay.url}${path}`, { headers: { Authorization: `Bearer ${stack.relay.ownerToken}` } });
}

/** The value of one line of the metrics; undefined when there is none. */
async function metric(name: string): Promise<number | undefined> {
  const text = await (await asOwner("/metrics")).text();
  const line = text.split("\n").find((each) => each.startsWith(`${name} `));
  return line === undefined ? undefined : Number(line.slice(name.length + 1));
}

describe("metrics", () => {
  test("count calls by how they ended, with their time and bytes, and say how many devices are online", async () => {
    const before = (await metric('longline_calls_total{outcome="ok"}')) ?? 0;
    await answerOf(await postTool(stack, "test_simple_text"));
    await eventually("the call is counted", async () => (await metric('longline_calls_total{outcome="ok"}')) === before + 1);
    expect(await metric('longline_call_duration_seconds_bucket{le="+Inf"}')).toBe(await metric("longline_call_duration_seconds_count"));
    expect(await metric('longline_call_bytes_total{direction="out"}')).toBeGreaterThan(0);
    expect([await metric("longline_devices"), await metric("longline_devices_online")]).toEqual([1, 1]);
  });

  test("are text that Prometheus reads, each name announced once, and hold no name of a person, device or tool", async () => {
    const response = await asOwner("/metrics");
    expect(response.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
    const lines = (await response.text()).trimEnd().split("\n");
    const announced = lines.filter((line) => line.startsWith("# TYPE ")).map((line) => line.split(" ")[2] ?? "");
    expect(new Set(announced).size).toBe(announced.length);
    for (const line of lines.filter((each) => !each.startsWith("#"))) {
      expect(line).toMatch(/^longline_[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? [0-9.e+-]+$/);
      expect(announced.some((name) => line.startsWith(name))).toBe(true);
      expect(line).not.toMatch(/bench|test_simple_text|llo_/);
    }
  });

  test("are for owners only", async () => {
    expect((await fetch(`${stack.relay.url}/metrics`)).status).toBe(401);
  });
});

test("a device is ready when its agent is online and every upstream answers; away, it is not", async () => {
  const ready = await asOwner(`/api/devices/${stack.device}/ready`);
  expect([ready.status, await ready.json()]).toMatchObject([200, { ready: true, state: "online", upstreams: [{ state: "ready" }] }]);
  const { device } = await stack.relay.addDevice("drawer");
  const never = await asOwner(`/api/devices/${device}/ready`);
  expect([never.status, await never.json()]).toMatchObject([503, { ready: false, state: "never" }]);
  expect((await asOwner("/api/devices/nothing/ready")).status).toBe(404);
});

test("a copy of a stopped relay's data directory is the same relay: tokens, devices and audit", async () => {
  const home = await temporaryDir();
  const dataDir = join(home.path, "data");
  const first = await startRelay({ dataDir });
  const { device, deviceKey, mcpUrl } = await first.addDevice("pi");
  const { token } = await first.createToken(device);
  await first.process.stop();
  const copy = join(home.path, "restored");
  await cp(dataDir, copy, { recursive: true });

  const restored = await startRelay({ dataDir: copy });
  expect([restored.url, restored.ownerToken]).toEqual([first.url, first.ownerToken]);
  const agent = await startAgent({ relay: restored.url, deviceKey, args: ["--", ...FIXTURE_STDIO] });
  expect(await answerOf(await postTool({ mcpUrl, token }, "test_simple_text"))).toMatchObject({ result: { content: [{ type: "text" }] } });
  await agent.stop();
  await restored.process.stop();
  await home.remove();
});
