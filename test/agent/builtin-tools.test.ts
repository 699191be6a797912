/** The built-in tools that need no desktop, called as a relay calls them. */
import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { describe, expect, onTestFinished, test } from "vitest";
import { PolicySection } from "../../src/agent/config/policy-section.ts";
import { ToolsSection } from "../../src/agent/config/tools-section.ts";
import { builtinTools } from "../../src/agent/tools/builtin-tools.ts";
import { supportBundleTool } from "../../src/agent/tools/support-bundle.ts";
import type { UpstreamConfig } from "../../src/agent/types.ts";
import type { Call } from "../../src/tunnel/frames.ts";
import { payloadText } from "../../src/tunnel/codec.ts";
import type { AgentSocket } from "../support/fake-relay.ts";
import { eventually, isAlive, startProcess } from "../support/processes.ts";
import { connected, DEVICE_KEY, startRelay, stateDir } from "./harness.ts";

const OPEN = { policy: PolicySection.parse({ rules: [{ action: "allow" }] }) };

function upstream(section: unknown): UpstreamConfig {
  return { kind: "builtin", alias: "builtin", tools: builtinTools(ToolsSection.parse(section)).tools };
}

type Result = {
  content: { type: string; text?: string; resource?: { uri: string; mimeType: string; blob: string } }[];
  structuredContent: Record<string, unknown>;
  isError?: boolean;
};

async function run(agent: AgentSocket, target: string, args: Record<string, unknown>, more: Partial<Call> = {}): Promise<Result> {
  const { payload } = await agent.outcome(agent.call({ method: "tools/call", target, ...more }, { arguments: args }));
  return JSON.parse(payload) as Result;
}

/** A directory without links in its path, as `pwd` shows it. */
function directory(): string {
  const path = realpathSync(mkdtempSync(join(tmpdir(), "longline-shell-")));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

describe("shell", () => {
  test("runs a command line in its directory and tells both outputs and the exit code", async () => {
    const cwd = directory();
    const { agent } = await connected([upstream({ shell: { cwd } })], {}, OPEN);
    const result = await run(agent, "shell", { command: "pwd; cat; echo oops >&2; exit 3", stdin: "typed" });
    expect(result).toMatchObject({
      content: [{ type: "text", text: `${cwd}\ntyped\nstderr:\noops\n\n[exit code 3]` }],
      structuredContent: { exitCode: 3, signal: null, stdout: `${cwd}\ntyped`, stderr: "oops\n", truncated: false, timedOut: false },
      isError: true,
    });
    expect((await run(agent, "shell", { command: "true" })).isError).toBeUndefined();
  });

  test("gives the command an allow-listed environment and what is configured, and no secret of ours", async () => {
    process.env["LONGLINE_DEVICE_KEY"] = DEVICE_KEY;
    onTestFinished(() => void delete process.env["LONGLINE_DEVICE_KEY"]);
    const { agent } = await connected([upstream({ shell: { env: { GREETING: "hi", LONGLINE_X: "y" } } })], {}, OPEN);
    const { structuredContent } = await run(agent, "shell", { command: "env" });
    expect(structuredContent["stdout"]).toContain("GREETING=hi");
    expect(structuredContent["stdout"]).not.toContain("LONGLINE_");
  });

  test("tells its output as it comes, as progress and as log notifications, to whoever wants them", async () => {
    const cwd = directory();
    const { agent } = await connected([upstream({ shell: { cwd } })], {}, OPEN);
    const command = "echo first; while [ ! -e go ]; do sleep 0.02; done; echo second >&2";
    const id = agent.call({ method: "tools/call", target: "shell", progress: true, logLevel: "info" }, { arguments: { command } });
    const progress = await agent.next("event", (frame) => frame.method === "notifications/progress");
    // It still waits for the file: what came before is told already.
    expect(JSON.parse(payloadText(progress.payload))).toEqual({ progress: 6, message: "first\n" });
    const { payload: logged } = await agent.next("event", (frame) => frame.method === "notifications/message");
    expect(JSON.parse(payloadText(logged))).toEqual({ level: "info", logger: "shell", data: { stream: "stdout", text: "first\n" } });
    await run(agent, "shell", { command: "touch go" });
    const second = await agent.next("event", (frame) => frame.method === "notifications/message");
    expect(JSON.parse(payloadText(second.payload))).toMatchObject({ data: { stream: "stderr", text: "second\n" } });
    expect(JSON.parse((await agent.outcome(id)).payload)).toMatchObject({ structuredContent: { exitCode: 0, stdout: "first\n" } });
  });

  test("tells nobody who did not ask", async () => {
    const { agent } = await connected([upstream({ shell: {} })], {}, OPEN);
    await run(agent, "shell", { command: "echo quiet" });
    expect(agent.messages.filter(({ frame }) => frame.type === "event")).toEqual([]);
  });

  test("keeps the beginning of output that is too long, without half a character, and lets the command end", async () => {
    const { agent } = await connected([upstream({ shell: { maxOutputBytes: 10 } })], {}, OPEN);
    const { structuredContent } = await run(agent, "shell", { command: "printf 'ääääää%080000d' 1; echo end >&2" });
    expect(structuredContent).toMatchObject({ stdout: "äääää", stderr: "end\n", truncated: true, exitCode: 0 });
  });

  test("ends a command at its time limit, together with what it started", async () => {
    const cwd = directory();
    const { agent } = await connected([upstream({ shell: { cwd, timeoutSeconds: 5 } })], {}, OPEN);
    const command = "sleep 300 & echo $! > pid; echo started; wait";
    const result = await run(agent, "shell", { command, timeoutSeconds: 0.3 });
    expect(result.structuredContent).toMatchObject({ exitCode: null, timedOut: true, stdout: "started\n" });
    expect(result.content[0]?.text).toBe("started\n\n[ended after its 0.3 s]");
    const { structuredContent } = await run(agent, "shell", { command: "cat pid" });
    await eventually("the end of what it started", () => !isAlive(Number(structuredContent["stdout"])));
  });

  test("ends everything when its call is cancelled, also what ignores TERM", async () => {
    const cwd = directory();
    const { agent } = await connected([upstream({ shell: { cwd } })], {}, OPEN);
    const command = `trap "" TERM; (trap "" TERM; echo $$ > pid; touch there; while :; do sleep 0.1; done) & wait`;
    const id = agent.call({ method: "tools/call", target: "shell" }, { arguments: { command } });
    await eventually("the command's start", () => existsSync(join(cwd, "there")));
    const { structuredContent } = await run(agent, "shell", { command: "cat pid" });
    agent.send({ type: "cancel", callId: id, reason: "caller_left" });
    await eventually("the command's end", () => !isAlive(Number(structuredContent["stdout"])));
  });

  test("does not outlive an agent that is killed", async () => {
    const cwd = directory();
    const relay = await startRelay();
    const source = (name: string) => JSON.stringify(new URL(`../../src/agent/${name}.ts`, import.meta.url).href);
    const code = `
      import { runAgent } from ${source("run-agent")};
      import { shellTool } from ${source("tools/shell")};
      const tools = [shellTool({ cwd: ${JSON.stringify(cwd)}, timeoutSeconds: 60, maxOutputBytes: 1000 })];
      await runAgent({ deviceKey: ${JSON.stringify(DEVICE_KEY)}, stateDir: ${JSON.stringify(stateDir())}, relay: new URL(${JSON.stringify(relay.url)}),
        upstreams: [{ kind: "builtin", alias: "b", tools }], policy: { ...${JSON.stringify(OPEN.policy)} }, log: () => {} });`;
    const started = startProcess(process.execPath, ["--input-type=module", "-e", code]);
    const { agent } = await relay.agent();
    agent.call({ method: "tools/call", target: "shell" }, { arguments: { command: "echo $$ > pid; mv pid running; sleep 300" } });
    const pid = await eventually(
      "the command's start",
      () => existsSync(join(cwd, "running")) && Number(readFileSync(join(cwd, "running"), "utf8")),
    );
    started.child.kill("SIGKILL");
    await eventually("the command's end", () => !isAlive(pid));
  }, 90_000);

  test("says when its directory is gone, or an argument is wrong", async () => {
    const { agent } = await connected([upstream({ shell: { cwd: "/nonexistent/here" } })], {}, OPEN);
    expect(await run(agent, "shell", { command: "true" })).toMatchObject({
      isError: true,
      content: [{ text: 'The working directory "/nonexistent/here" does not exist.' }],
    });
    for (const [args, text] of [
      [{}, "The argument command is missing or not what the tool's inputSchema says."],
      [{ command: "true", timeoutSeconds: 61 }, "The argument timeoutSeconds is missing or not what the tool's inputSchema says."],
      [{ command: "true", cwd: "/" }, "There is no argument cwd."],
    ] as const)
      expect((await run(agent, "shell", args)).content[0]?.text).toBe(text);
  });
});

test("device_status tells load, memory, disk, network and uptime", async () => {
  const { agent } = await connected([upstream({ device_status: {} })], {}, OPEN);
  const { structuredContent } = await run(agent, "device_status", {});
  expect(structuredContent).toMatchObject({
    system: { platform: process.platform },
    load: { processors: expect.any(Number) as number },
    memory: { totalBytes: expect.any(Number) as number },
    disk: { totalBytes: expect.any(Number) as number },
    network: expect.any(Array) as unknown[],
  });
  expect(structuredContent["uptimeSeconds"]).toBeGreaterThan(0);
});

describe("support_bundle", () => {
  test("is a compressed file with state, events and versions, and without secrets", async () => {
    const http: UpstreamConfig = {
      kind: "http",
      alias: "gone",
      url: new URL("http://127.0.0.1:9/mcp"),
      headers: { authorization: "Bearer very-secret-token" },
    };
    const { agent, events } = await connected([upstream({ support_bundle: {} }), http], {}, { ...OPEN, version: "9.9.9" });
    await eventually("the crash", () => events.some((event) => event.type === "upstream" && event.state === "crashed"));
    const { content, structuredContent } = await run(agent, "support_bundle", {});
    const { uri, mimeType, blob } = content[0]?.resource ?? { uri: "", mimeType: "", blob: "" };
    const text = gunzipSync(Buffer.from(blob, "base64")).toString("utf8");
    expect({ uri, mimeType }).toEqual({ uri: structuredContent["uri"], mimeType: "application/gzip" });
    expect(JSON.parse(text)).toMatchObject({
      version: "9.9.9",
      versions: { node: process.version },
      status: { link: "online", upstreams: [{ alias: "builtin" }, { alias: "gone", state: "crashed" }] },
      callLog: expect.stringContaining('"target":"support_bundle"') as string,
    });
    expect(text).toContain('"type": "upstream"');
    for (const secret of ["very-secret-token", DEVICE_KEY]) expect(text).not.toContain(secret);
  });

  test("is made one at a time; more are refused with the reason", async () => {
    const packing = Promise.withResolvers<Buffer>();
    const tool = supportBundleTool(
      () => [],
      () => packing.promise,
    );
    const { agent } = await connected([{ kind: "builtin", alias: "b", tools: [tool] }], {}, OPEN);
    const first = agent.call({ method: "tools/call", target: "support_bundle" });
    expect(await run(agent, "support_bundle", {})).toMatchObject({
      isError: true,
      content: [{ text: "A support bundle is being made already. Call again when that call has ended." }],
    });
    packing.resolve(Buffer.from("x"));
    expect((await agent.outcome(first)).frame.type).toBe("result");
    expect((await run(agent, "support_bundle", {})).isError).toBeUndefined();
  });
});
