/** `longline serve` as a process: readiness, its data directory, restarts, signals, and what it leaves behind. */
import { readFileSync } from "node:fs";
import { chmod, mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { eventually, isAlive, startProcess, temporaryDir, type RunningProcess } from "../support/processes.ts";
import { longline, startLongline, startRelay, type RelayProcess } from "../support/relay-process.ts";

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

async function relay(args: readonly string[] = []): Promise<RelayProcess> {
  const made = await startRelay({ dataDir, args });
  started.push(made.process);
  return made;
}

describe("a first start", () => {
  test("prints one JSON value when it answers, and nothing else", async () => {
    const { url, ownerToken, consoleUrl, process } = await relay();
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect(ownerToken).toMatch(/^llo_[\w-]{43}$/);
    expect(consoleUrl).toBe(`${url}/console`);
    const health = await fetch(`${url}/health`);
    expect(await health.json()).toMatchObject({ ok: true, runtime: "embedded" });
    await process.stop();
    expect(process.output.stdout.split("\n")).toEqual([JSON.stringify({ url, ownerToken, consoleUrl }), ""]);
    expect(process.output.stderr).not.toContain(ownerToken);
  });

  test("tells a person the next command, which works when pasted in another terminal", async () => {
    const run = startLongline(["serve", "--port", "0", "--data", dataDir]);
    started.push(run);
    const line = await run.line("stderr", (text) => text.startsWith("Next: "));
    expect(line).not.toContain("llo_");
    const script = `longline() { node ${join(import.meta.dirname, "../../bin/longline.cjs")} "$@"; }; ${line.slice("Next: ".length)}`;
    const pasted = startProcess("/bin/sh", ["-c", script.replace("NAME", "workshop")]);
    expect([(await pasted.ended()).code, pasted.output.stdout]).toEqual([0, expect.stringContaining("workshop")]);
  });

  test("keeps data and secrets for their owner only", async () => {
    await relay();
    expect(await modeOf(dataDir)).toBe(0o700);
    for (const name of ["root-key", "owner-token", "config.json", "lock"])
      expect([name, await modeOf(join(dataDir, name))]).toEqual([name, 0o600]);
    for (const name of await filesBelow(join(dataDir, "d1"))) expect((await modeOf(name)) & 0o077).toBe(0);
  });

  test("closes a directory that was open to others, and leaves a foreign one as it is", async () => {
    await mkdir(dataDir, { mode: 0o755 });
    await chmod(dataDir, 0o755);
    await (await relay()).process.stop();
    expect(await modeOf(dataDir)).toBe(0o700);

    dataDir = join(home.path, "shared");
    await mkdir(dataDir);
    await chmod(dataDir, 0o755);
    await writeFile(join(dataDir, "somebody-elses.txt"), "");
    const { process } = await relay();
    expect(await modeOf(dataDir)).toBe(0o755);
    expect(process.output.stderr).toContain("can be read by other users");
  });
});

describe("a second start", () => {
  test("has the same address, owner token and devices", async () => {
    const first = await relay();
    const added = await first.addDevice("workshop");
    expect((await first.process.stop()).code).toBe(0);
    const second = await relay();
    expect({ url: second.url, token: second.ownerToken }).toEqual({ url: first.url, token: first.ownerToken });
    const { stdout } = await longline(["device", "list", "--json"], { env: second.env });
    expect(JSON.parse(stdout)).toMatchObject([{ device: "workshop", state: "never", mcpUrl: added.mcpUrl }]);
  });

  test("narrows a secret's mode again when somebody widened it", async () => {
    await (await relay()).process.stop();
    await chmod(join(dataDir, "owner-token"), 0o644);
    await relay();
    expect(await modeOf(join(dataDir, "owner-token"))).toBe(0o600);
  });

  test("refuses data without its root key rather than making a new one", async () => {
    await (await relay()).process.stop();
    await rm(join(dataDir, "root-key"));
    expect(await failedStart(["--data", dataDir])).toContain("root-key is missing");
  });

  test("refuses a directory that a running relay uses, and names its process", async () => {
    const first = await relay();
    expect(await failedStart(["--data", dataDir, "--port", "0"])).toContain(
      `in use by another Longline relay (process ${first.process.pid})`,
    );
    expect((await fetch(`${first.url}/health`)).status).toBe(200);
  });
});

describe("a start that cannot work says so in one line", () => {
  test("when the port is taken", async () => {
    const server = createServer();
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    const address = server.address();
    const port = typeof address === "object" && address !== null ? String(address.port) : "";
    try {
      expect(await failedStart(["--data", dataDir, "--port", port])).toContain(`Port ${port} is taken`);
      // The directory is free again for a start that works.
      expect(await readdir(dataDir)).not.toContain("lock");
    } finally {
      server.close();
    }
  });

  test("when the data directory cannot be one", async () => {
    const file = join(home.path, "file");
    await writeFile(file, "");
    expect(await failedStart(["--data", file])).toContain("is not a directory");
    expect(await failedStart(["--data", join(file, "below")])).toContain("is not a directory");
    // No user, not even root, can write there.
    expect(await failedStart(["--data", "/proc/longline"])).toMatch(/Cannot (create|write to) \/proc\/longline/);
  });

  test("when its configuration is damaged", async () => {
    await (await relay()).process.stop();
    await writeFile(join(dataDir, "config.json"), "{");
    expect(await failedStart(["--data", dataDir])).toContain("config.json is damaged");
  });
});

describe("origins", () => {
  test("the first --origin is canonical, and the loopback address still answers", async () => {
    const { url, process, dataDir: dir } = await relay(["--origin", "https://relay.example", "--origin", "https://other.example"]);
    expect(url).toBe("https://relay.example");
    const local = localUrl(dir);
    expect((await fetch(`${local}/health`)).status).toBe(200);
    const { stdout } = await longline(["device", "add", "pi", "--json"], {
      env: { LONGLINE_RELAY: local, LONGLINE_OWNER_TOKEN: readFileSync(join(dir, "owner-token"), "utf8").trim() },
    });
    expect(JSON.parse(stdout)).toMatchObject({ mcpUrl: "https://relay.example/mcp/pi" });
    expect((await process.stop()).code).toBe(0);
  });
});

describe("the end", () => {
  test.each(["SIGTERM", "SIGINT"] as const)("%s stops it in order: exit code 0, no lock, no runtime", async (signal) => {
    const { process, url } = await relay();
    const runtime = await runtimeOf(process.pid);
    process.child.kill(signal);
    expect(await process.ended()).toEqual({ code: 0, signal: null });
    expect(await readdir(dataDir)).not.toContain("lock");
    await eventually("the runtime is gone", () => !isAlive(runtime));
    await expect(fetch(`${url}/health`)).rejects.toThrow();
  });

  test("SIGKILL leaves no runtime, and the next start takes over at once", async () => {
    const first = await relay();
    const runtime = await runtimeOf(first.process.pid);
    expect(isAlive(runtime)).toBe(true);
    first.process.child.kill("SIGKILL");
    await first.process.ended();
    const second = await relay();
    expect(second.url).toBe(first.url);
    await eventually("the killed relay's runtime is gone", () => !isAlive(runtime));
    expect((await fetch(`${second.url}/health`)).status).toBe(200);
  });

  test("a runtime that dies ends the relay with an error", async () => {
    const { process } = await relay();
    globalThis.process.kill(await runtimeOf(process.pid), "SIGKILL");
    expect(await process.ended()).toEqual({ code: 1, signal: null });
    expect(process.output.stderr).toContain("runtime ended unexpectedly");
    expect(await readdir(dataDir)).not.toContain("lock");
  });
});

/** A start that must fail with exit code 1, one line on stderr and nothing on stdout; gives the line. */
async function failedStart(args: readonly string[]): Promise<string> {
  const run = startLongline(["serve", "--json", ...args]);
  started.push(run);
  expect((await run.ended()).code).toBe(1);
  expect(run.output.stdout).toBe("");
  expect(run.output.stderr.trim().split("\n")).toHaveLength(1);
  return run.output.stderr;
}

async function modeOf(path: string): Promise<number> {
  return (await stat(path)).mode & 0o777;
}

async function filesBelow(dir: string): Promise<string[]> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

function localUrl(dir: string): string {
  return String(JSON.parse(readFileSync(join(dir, "lock"), "utf8")).url);
}

/** The workerd that a relay's process has started (proc(5)). */
async function runtimeOf(pid: number): Promise<number> {
  const children = (await readFile(`/proc/${pid}/task/${pid}/children`, "utf8")).trim().split(" ").map(Number);
  const names = await Promise.all(children.map(async (child) => ({ child, name: await readFile(`/proc/${child}/cmdline`, "utf8") })));
  const runtime = names.find(({ name }) => name.includes("workerd"));
  if (runtime === undefined) throw new Error("the relay has no runtime");
  return runtime.child;
}
