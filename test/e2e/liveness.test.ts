/** What is dead is found and said: a frozen agent, a wedged and a crashed tool server; and `status` tells how old its news is. */
import { readFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { modernRequest, readMessages } from "../support/clients.ts";
import { counting, type Counting } from "../support/counting.ts";
import { eventually, isAlive, temporaryDir } from "../support/processes.ts";
import { longline, startAgent, startRelay, type AgentProcess, type RelayProcess } from "../support/relay-process.ts";

interface Status {
  state: string;
  generation: number;
  lastSeenAt: number;
  lastCallAt: number | null;
  upstreams: { state: string; lastRoundTripMs: number | null; lastRoundTripAt: number | null; problem: string | null }[];
}

let dir: Awaited<ReturnType<typeof temporaryDir>>;
let relay: RelayProcess;
let agent: AgentProcess;
let upstream: Counting;
let mcpUrl: string;
let token: string;

beforeEach(async () => {
  dir = await temporaryDir();
  upstream = counting(dir.path);
  relay = await startRelay();
  const device = await relay.addDevice("pi");
  ({ mcpUrl } = device);
  ({ token } = await relay.createToken("pi"));
  agent = await startAgent({ relay: relay.url, deviceKey: device.deviceKey, args: upstream.args });
});

afterEach(async () => {
  agent.process.child.kill("SIGCONT");
  await agent.stop();
  await relay.stop();
  await dir.remove();
});

async function call(key: string): Promise<Record<string, unknown>> {
  const response = await fetch(mcpUrl, modernRequest(token, "tools/call", { name: "count", arguments: { key } }));
  return (await readMessages(response)).at(-1) ?? {};
}

async function status(): Promise<Status> {
  const { stdout } = await longline(["status", "pi", "--json"], { env: relay.env });
  return JSON.parse(stdout) as Status;
}

/** The tool server's process. */
function server(): number {
  const { pid } = agent.process;
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").map(Number);
  const found = children.find((child) => readFileSync(`/proc/${child}/cmdline`, "utf8").includes("counting.mjs"));
  if (found === undefined) throw new Error("the agent has no tool server");
  return found;
}

test("a frozen agent is found by the next call, which may have run; then the device is offline until it is back", async () => {
  await call("before");
  agent.process.child.kill("SIGSTOP");
  expect(await call("frozen")).toMatchObject({ error: { code: 1003, data: { reason: "tunnel_lost", outcome: "unknown" } } });
  expect(await call("next")).toMatchObject({ error: { code: 1001, data: { reason: "device_offline", outcome: "not_started" } } });
  expect((await status()).state).toBe("offline");
  agent.process.child.kill("SIGCONT");
  await eventually("the device is back", async () => (await status()).state === "online");
  expect(await call("after")).toMatchObject({ result: {} });
  expect(upstream.runs("frozen")).toBeLessThanOrEqual(1);
  expect([upstream.runs("before"), upstream.runs("next"), upstream.runs("after")]).toEqual([1, 0, 1]);
});

test("status tells three ages apart: the link, the tool server, the last good call", async () => {
  const fresh = await status();
  expect(fresh).toMatchObject({ state: "online", lastCallAt: null, upstreams: [{ state: "ready", problem: null }] });
  await call("one");
  const called = await status();
  const lastCallAt = called.lastCallAt ?? 0;
  expect(lastCallAt).toBeGreaterThan(0);
  expect(called.upstreams[0]?.lastRoundTripAt ?? 0).toBeGreaterThanOrEqual(lastCallAt);
  // The tool server is wedged; agent and link are well. A ping that the agent answers by itself would hide that.
  const pid = server();
  process.kill(pid, "SIGSTOP");
  const wedged = await status();
  process.kill(pid, "SIGCONT");
  expect(wedged.state).toBe("online");
  expect(wedged.lastSeenAt).toBeGreaterThanOrEqual(called.lastSeenAt);
  expect(wedged.upstreams[0]?.lastRoundTripAt).toBe(called.upstreams[0]?.lastRoundTripAt);
  expect(wedged.upstreams[0]?.problem).toContain("did not answer");
  expect(wedged.lastCallAt).toBe(lastCallAt);
  const well = await eventually("the tool server answers again", async () => {
    const now = await status();
    return now.upstreams[0]?.problem === null ? now : undefined;
  });
  expect(well.upstreams[0]?.lastRoundTripAt ?? 0).toBeGreaterThan(called.upstreams[0]?.lastRoundTripAt ?? 0);
});

test("a tool server that is killed is started again, and a killed agent leaves none behind", async () => {
  const first = server();
  process.kill(first, "SIGKILL");
  await eventually("another tool server runs", () => {
    try {
      return server() !== first;
    } catch {
      return false;
    }
  });
  await eventually("calls work again", async () => (await call("again"))["result"] !== undefined);
  const second = server();
  agent.process.child.kill("SIGKILL");
  await agent.process.ended();
  await eventually("the tool server is gone", () => !isAlive(second));
});
