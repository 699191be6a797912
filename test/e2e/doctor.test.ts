/** `longline doctor`: what it finds at a real relay, and what it says to do. */
import { chmod, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runningRelay } from "../../src/serve/lock.ts";
import { temporaryDir } from "../support/processes.ts";
import { longline, startAgent, startRelay, type RelayProcess } from "../support/relay-process.ts";
import { startSessionSpy, type SessionSpy } from "../support/session-spy.ts";
import { FIXTURE_STDIO } from "../support/stack.ts";
import { freePort } from "../support/tcp-proxy.ts";

interface Report {
  ok: boolean;
  findings: { check: string; state: string; message: string; advice?: string }[];
}

let relay: RelayProcess;
let local: string;
/** An HTTP proxy of somebody's network, that knows nothing of WebSockets. */
let web: SessionSpy;
let dir: Awaited<ReturnType<typeof temporaryDir>>;
beforeAll(async () => {
  web = await startSessionSpy();
  relay = await startRelay({ args: ["--origin", web.url] });
  local = runningRelay(relay.dataDir) ?? "";
  web.target(local);
  dir = await temporaryDir();
});
afterAll(async () => {
  await relay.stop();
  await web.stop();
  await dir.remove();
});

async function doctor(args: readonly string[], deviceKey?: string): Promise<{ code: number | null; report: Report; stderr: string }> {
  const { code, stdout, stderr } = await longline(["doctor", "--json", ...args], {
    env: { LONGLINE_DEVICE_KEY: deviceKey, XDG_STATE_HOME: join(dir.path, "xdg") },
  });
  return { code, report: JSON.parse(stdout) as Report, stderr };
}

const found = ({ findings }: Report, check: string) => findings.find((finding) => finding.check === check && finding.state !== "ok");

test("where all is well every check says so, the upstream after a real round trip, and the exit code is 0", async () => {
  const { deviceKey } = await relay.addDevice("well");
  const { code, report } = await doctor(["--relay", local, "--", ...FIXTURE_STDIO], deviceKey);
  expect(report.findings.filter(({ state }) => state !== "ok")).toEqual([]);
  expect(report.findings.map(({ check }) => check)).toEqual(
    expect.arrayContaining(["node", "tcp", "health", "clock", "state", "key", "websocket", "program", "upstream"]),
  );
  expect(report.findings.find(({ check }) => check === "upstream")?.message).toMatch(/answers in [\d.]+ ms \(\d+ tools/);
  expect({ code, ok: report.ok }).toEqual({ code: 0, ok: true });
  expect(JSON.stringify(report)).not.toContain(deviceKey);
});

test("a configuration file is checked with all it offers, and says which built-in tools this machine cannot have", async () => {
  const { deviceKey } = await relay.addDevice("configured");
  const config = join(dir.path, "longline.toml");
  const [program = "", ...args] = FIXTURE_STDIO;
  const text = `[upstreams.fixture]\ncommand = ${JSON.stringify([program, ...args])}\n[builtin.device_status]\n`;
  await writeFile(config, text, { mode: 0o600 });
  const { code, report } = await doctor(["--relay", local, "--config", config], deviceKey);
  expect(report.findings).toContainEqual({ check: "config", state: "ok", message: config });
  expect(report.findings.find(({ message }) => message.startsWith("fixture "))?.message).toMatch(/answers in [\d.]+ ms/);
  for (const { advice } of report.findings.filter(({ check }) => check === "tool")) expect(advice).toMatch(/\w/);
  expect(code).toBe(0);
  await writeFile(config, `${text}[upstream.typo]\n`);
  const broken = await doctor(["--relay", local, "--config", config], deviceKey);
  expect(found(broken.report, "config")).toMatchObject({ state: "failed", advice: expect.stringContaining("docs/agent.md") });
  expect([broken.code, broken.stderr]).toEqual([1, expect.stringContaining(`${config}:4:`)]);
});

test("without a key it checks the way to the relay alone", async () => {
  const { code, report } = await doctor(["--relay", local]);
  expect(report.findings.map(({ check }) => check)).toEqual(["node", "tcp", "health", "clock"]);
  expect(code).toBe(0);
});

test("a relay that is away is told with what to do, and the exit code is 1", async () => {
  const { code, report, stderr } = await doctor(["--relay", `http://127.0.0.1:${await freePort()}`]);
  expect(found(report, "tcp")).toMatchObject({ state: "failed", message: expect.stringContaining("ECONNREFUSED") });
  expect(found(report, "tcp")?.advice).toContain("longline serve");
  expect(code).toBe(1);
  expect(stderr).toContain("1 thing keeps this from working");
});

test("a name without an address is told as that", async () => {
  const { report } = await doctor(["--relay", "https://relay.invalid"]);
  expect(found(report, "dns")).toMatchObject({ state: "failed", advice: expect.stringContaining("--relay") });
});

test("a revoked key is told apart from a good one, and so is one that another machine is online with", async () => {
  const { deviceKey } = await relay.addDevice("shared");
  const other = await startAgent({ relay: local, deviceKey, args: ["--demo"] });
  const rival = await doctor(["--relay", local], deviceKey);
  expect(found(rival.report, "key")).toMatchObject({ state: "failed", message: expect.stringContaining("another machine is online") });
  const own = await doctor(["--relay", local, "--state", other.stateDir], deviceKey);
  expect(own.report.ok).toBe(true);
  expect(own.report.findings.find(({ check }) => check === "key")?.message).toContain("the agent here is online");
  // It left the tunnel alone.
  expect(other.process.output.stderr).not.toContain("offline");
  await other.stop();
  expect((await longline(["device", "revoke-key", "shared"], { env: relay.env })).code).toBe(0);
  const revoked = await doctor(["--relay", local], deviceKey);
  expect(found(revoked.report, "key")).toMatchObject({ state: "failed", advice: expect.stringContaining("rotate-key") });
});

test("a proxy that swallows WebSockets is found", async () => {
  const { deviceKey } = await relay.addDevice("behind");
  const { code, report } = await doctor(["--relay", web.url], deviceKey);
  expect(found(report, "websocket")).toMatchObject({ state: "failed", advice: expect.stringContaining("HTTPS_PROXY") });
  expect(code).toBe(1);
});

test("a missing program, a server that ends at once and an open state directory are told", async () => {
  const { deviceKey } = await relay.addDevice("broken");
  const missing = await doctor(["--relay", local, "--", "no-such-program-anywhere"], deviceKey);
  expect(found(missing.report, "program")).toMatchObject({ state: "failed", message: expect.stringContaining("no-such-program-anywhere") });
  const script = join(dir.path, "ends.mjs");
  await writeFile(script, `console.error("no licence"); process.exit(3);`);
  const state = join(dir.path, "open");
  await mkdir(state);
  await chmod(state, 0o755);
  const crashed = await doctor(["--relay", local, "--state", state, "--", process.execPath, script], deviceKey);
  expect(found(crashed.report, "upstream")).toMatchObject({ state: "failed", message: expect.stringContaining("no licence") });
  expect(found(crashed.report, "state")).toMatchObject({ state: "warning", advice: expect.stringContaining("chmod 700") });
});
