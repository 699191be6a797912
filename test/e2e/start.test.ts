/** `npm start`: relay, agent and first call in one command, what it prints, and what it finds again. */
import { execFile } from "node:child_process";
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, test } from "vitest";
import { eventually, isAlive, startProcess, temporaryDir, type RunningProcess } from "../support/processes.ts";
import { longline, startLongline } from "../support/relay-process.ts";

const execute = promisify(execFile);
const ROOT = join(import.meta.dirname, "../..");

let home: Awaited<ReturnType<typeof temporaryDir>>;
let dataDir: string;
const started: RunningProcess[] = [];

beforeEach(async () => {
  home = await temporaryDir();
  dataDir = join(home.path, "data");
});
afterEach(async () => {
  await Promise.all(started.splice(0).map(async (run) => await run.stop()));
  await home.remove();
});

function start(...args: string[]): RunningProcess {
  const run = startLongline(["start", "--port", "0", "--data", dataDir, ...args]);
  started.push(run);
  return run;
}

/** What `start --json` prints. */
interface Ready {
  url: string;
  ownerToken: string;
  device: string;
  mcpUrl: string;
  token: string;
  grant: string;
}

async function ready(run: RunningProcess): Promise<Ready> {
  return JSON.parse(await run.line("stdout", () => true)) as Ready;
}

test("shows a call's result and entries that work, and the printed curl line works when pasted", async () => {
  const run = start();
  await run.line("stdout", (line) => line.includes("Ctrl-C"));
  const text = run.output.stdout;
  expect(text).toMatch(/Called the tool "echo" on device "[a-z0-9-]+"[^\n]*\n[^\n]*Hello from/);
  const mcpUrl = /MCP URL: +(\S+)/.exec(text)?.[1] ?? "";
  const token = /Access token: +(\S+)/.exec(text)?.[1] ?? "";
  expect(mcpUrl).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/mcp\/[a-z0-9-]+$/);
  for (const client of ["Claude Code", "VS Code", "Cursor", "mcpServers"]) expect(text).toContain(client);
  expect(text).toMatch(/claude\.ai and ChatGPT[^]*--origin/);
  expect(text).toContain(`claude mcp add --transport http ${mcpUrl.split("/").at(-1)} ${mcpUrl} --header "Authorization: Bearer ${token}"`);

  const curl = text.split("\n").find((line) => line.startsWith("curl ")) ?? "";
  const { stdout } = await execute("/bin/sh", ["-c", curl]);
  expect(JSON.parse(stdout)).toMatchObject({ jsonrpc: "2.0", id: 1, result: { content: [{ type: "text" }] } });
  expect(stdout).toContain("Hello from");
});

test("a second start finds data, device, key, grant and token again", async () => {
  const first = await ready(start("--json"));
  expect((await stat(join(dataDir, "start.json"))).mode & 0o777).toBe(0o600);
  expect(await started[0]?.stop()).toEqual({ code: 0, signal: null });
  const second = await ready(start("--json"));
  expect(second).toEqual(first);
  const env = { LONGLINE_RELAY: second.url, LONGLINE_OWNER_TOKEN: second.ownerToken };
  const { stdout } = await longline(["token", "list", "--json"], { env });
  expect(JSON.parse(stdout)).toMatchObject([{ grant: first.grant, state: "active" }]);
  expect(JSON.parse((await longline(["device", "list", "--json"], { env })).stdout)).toMatchObject([
    { device: first.device, state: "online" },
  ]);

  // A token that was revoked is not shown again.
  await longline(["token", "revoke", first.grant], { env });
  await started[1]?.stop();
  const third = await ready(start("--json"));
  expect(third).toMatchObject({ device: first.device, mcpUrl: first.mcpUrl });
  expect(third.grant).not.toBe(first.grant);
});

test.each(["Ctrl-C", "SIGTERM to npm"])("through npm, %s ends relay and agent together", async (how) => {
  const npm = startProcess("npm", ["start", "--", "--port", "0", "--data", dataDir, "--json"], { cwd: ROOT, detached: true });
  started.push(npm);
  const line = await npm.line("stdout", (text) => text.startsWith("{"));
  const { url } = JSON.parse(line) as Ready;
  const lock = JSON.parse(await readFile(join(dataDir, "lock"), "utf8")) as { pid: number };
  const children = await childrenOf(lock.pid);
  expect(children.length).toBeGreaterThanOrEqual(2);
  // A terminal signals its whole foreground process group; npm passes SIGTERM on to its shell only.
  if (how === "Ctrl-C") process.kill(-npm.pid, "SIGINT");
  else npm.child.kill("SIGTERM");
  await npm.ended();
  for (const pid of [lock.pid, ...children]) await eventually(`process ${pid} is gone`, () => !isAlive(pid));
  await expect(fetch(`${url}/health`)).rejects.toThrow();
  expect(await readdir(dataDir)).not.toContain("lock");
});

test.each(["SIGINT", "SIGTERM"] as const)("%s ends it with exit code 0, also while it is still starting", async (signal) => {
  const running = start("--json");
  await ready(running);
  running.child.kill(signal);
  expect(await running.ended()).toEqual({ code: 0, signal: null });
  const starting = start("--json");
  await starting.line("stderr", (line) => line.includes("Relay ready"));
  starting.child.kill(signal);
  expect(await starting.ended()).toEqual({ code: 0, signal: null });
  expect(await readdir(dataDir)).not.toContain("lock");
});

test("SIGKILL leaves neither agent nor runtime", async () => {
  const run = start("--json");
  await ready(run);
  const children = await childrenOf(run.pid);
  expect(children.length).toBeGreaterThanOrEqual(2);
  run.child.kill("SIGKILL");
  await run.ended();
  for (const pid of children) await eventually(`process ${pid} is gone`, () => !isAlive(pid));
});

/** The processes that a process has started (proc(5)). */
async function childrenOf(pid: number): Promise<number[]> {
  const text = (await readFile(`/proc/${pid}/task/${pid}/children`, "utf8")).trim();
  return text === "" ? [] : text.split(" ").map(Number);
}
