/** Two agents with one device key: on one machine by accident, on two machines, and with --takeover. */
import { cp } from "node:fs/promises";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { modernRequest, readMessages } from "../support/clients.ts";
import { eventually, temporaryDir, type RunningProcess } from "../support/processes.ts";
import { longline, startAgent, startLongline, startRelay, type AgentProcess, type RelayProcess } from "../support/relay-process.ts";

let dir: Awaited<ReturnType<typeof temporaryDir>>;
let relay: RelayProcess;
let device: { device: string; deviceKey: string; mcpUrl: string };
let token: string;
let incumbent: AgentProcess;
const others: RunningProcess[] = [];

beforeAll(async () => {
  dir = await temporaryDir();
  relay = await startRelay();
  device = await relay.addDevice("pi");
  ({ token } = await relay.createToken("pi"));
  incumbent = await startAgent({ relay: relay.url, deviceKey: device.deviceKey, args: ["--demo"], stateDir: `${dir.path}/one` });
});

afterEach(async () => {
  for (const other of others.splice(0)) await other.stop();
});

afterAll(async () => {
  await incumbent.stop();
  await relay.stop();
  await dir.remove();
});

function another(state: string, ...more: string[]): RunningProcess {
  const run = startLongline(["agent", "--relay", relay.url, "--state", `${dir.path}/${state}`, "--json", ...more, "--demo"], {
    env: { LONGLINE_DEVICE_KEY: device.deviceKey },
  });
  others.push(run);
  return run;
}

async function status(): Promise<{ state: string; generation: number; rivalAt: number | null }> {
  const { stdout } = await longline(["status", "pi", "--json"], { env: relay.env });
  return JSON.parse(stdout) as { state: string; generation: number; rivalAt: number | null };
}

async function calls(): Promise<Record<string, unknown> | undefined> {
  return (await readMessages(await fetch(device.mcpUrl, modernRequest(token, "tools/call", { name: "current_time", arguments: {} })))).at(
    -1,
  );
}

test("with the same state directory the second ends at once with one clear line, and the first goes on", async () => {
  const second = another("one");
  expect((await second.ended()).code).toBe(1);
  expect(second.output.stdout).toBe("");
  const lines = second.output.stderr.trim().split("\n");
  expect(lines).toHaveLength(1);
  expect(lines[0]).toContain(`process ${incumbent.process.pid}`);
  expect(await status()).toMatchObject({ state: "online", generation: 1, rivalAt: null });
});

test("from another machine it is refused for good, the owner sees it, and the first goes on", async () => {
  const second = another("two");
  expect((await second.ended()).code).toBe(1);
  expect(second.output.stderr).toContain("--takeover");
  const after = await status();
  expect(after).toMatchObject({ state: "online", generation: 1 });
  expect(Date.now() - (after.rivalAt ?? 0)).toBeLessThan(60_000);
  expect(await calls()).toMatchObject({ result: {} });
});

test("with a copy of the first one's state it is refused for good in the same way", async () => {
  await cp(`${dir.path}/one`, `${dir.path}/copy`, { recursive: true, filter: (path) => !path.endsWith("/lock") });
  const second = another("copy");
  expect((await second.ended()).code).toBe(1);
  expect(second.output.stderr).toContain("--takeover");
  expect(await status()).toMatchObject({ state: "online", generation: 1 });
  expect(await calls()).toMatchObject({ result: {} });
});

test("a killed agent leaves a lock that the next start takes over", async () => {
  incumbent.process.child.kill("SIGKILL");
  await incumbent.process.ended();
  incumbent = await startAgent({ relay: relay.url, deviceKey: device.deviceKey, args: ["--demo"], stateDir: `${dir.path}/one` });
  expect(await status()).toMatchObject({ state: "online", generation: 2 });
});

test("with --takeover the second takes over, and the first sees that it was replaced and is not let back", async () => {
  const second = another("two", "--takeover");
  await second.line("stdout", (line) => line.includes("online"));
  expect((await incumbent.process.ended()).code).toBe(1);
  expect(incumbent.process.output.stderr).toContain("Another machine uses this device key");
  await eventually("the device is online with the second", async () => (await status()).generation === 3);
  expect(await calls()).toMatchObject({ result: {} });
});
