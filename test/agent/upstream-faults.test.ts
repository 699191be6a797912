/** Tool servers that end, hang, stutter or are slow to start: what their calls are told, and what becomes of them. */
import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { within } from "../support/deadline.ts";
import { isAlive } from "../support/processes.ts";
import { legacyClient, type AgentSocket } from "../support/fake-relay.ts";
import { connected, DEVICE_KEY, script, startRelay, stateDir } from "./harness.ts";
import { rawServer } from "./raw-server.ts";

const T = { method: "tools/call", target: "t" } as const;
const shared = { isolation: "shared" } as const;

async function callText(agent: AgentSocket, args: unknown = {}): Promise<string> {
  const { frame, payload } = await agent.outcome(agent.call(T, { arguments: args }));
  expect(frame).toMatchObject({ type: "result" });
  return (JSON.parse(payload) as { content: [{ text: string }] }).content[0].text;
}

describe("a server that ends in the middle of a call", () => {
  test.each([
    ["with exit code 0", "process.exit(0)", "exit code 0"],
    ["with exit code 1 and a word", `console.error("disk full"); process.exit(1)`, "exit code 1: disk full"],
    ["by a signal", `process.kill(process.pid, "SIGKILL")`, "signal SIGKILL"],
    [
      "after half a line",
      `process.stdout.write('{"jsonrpc":"2.0","id":' + JSON.stringify(m.id) + ',"result":{"con', () => process.exit(0))`,
      "exit code 0",
    ],
  ])("%s fails that call at once as unknown, says why, and is started again", async (_how, body, said) => {
    const code = rawServer(`tool((m) => { if (m.params.arguments.ok) return reply(m.id, text("alive")); ${body}; });`);
    const { agent, handle } = await connected([script(code, shared)]);
    expect(await callText(agent, { ok: true })).toBe("alive");
    const { frame } = await agent.outcome(agent.call(T, { arguments: {} }));
    expect(frame).toMatchObject({ reason: "upstream_failed", outcome: "unknown", message: expect.stringContaining(said) });
    await vi.waitFor(() => expect(handle.state().upstreams[0]).toMatchObject({ state: "ready" }), 10_000);
    expect(await callText(agent, { ok: true })).toBe("alive");
  });
});

test("one that never answers costs its call the call's own time, and others nothing", async () => {
  const code = rawServer(`tool((m) => { if (m.params.arguments.ok) reply(m.id, text("alive")); });`);
  const { agent } = await connected([script(code, shared)]);
  const hung = agent.call({ ...T, timeoutMs: 400 }, { arguments: {} });
  expect(await callText(agent, { ok: true })).toBe("alive");
  expect((await agent.outcome(hung)).frame).toMatchObject({ reason: "device_timeout", outcome: "unknown", data: { limitMs: 400 } });
});

test("lines that come in halves are one message each", async () => {
  const code = rawServer(`tool(async (m) => {
    const line = JSON.stringify({ jsonrpc: "2.0", id: m.id, result: text("zürich 😀") }) + "\\n";
    for (const byte of Buffer.from(line)) { process.stdout.write(Buffer.from([byte])); await new Promise(setImmediate); }
  });`);
  const { agent } = await connected([script(code, shared)]);
  expect(await callText(agent)).toBe("zürich 😀");
});

test("one that is slow to start gets its first call when it is there, and once", async () => {
  const code = rawServer(`
    const early = server.handlers.initialize;
    on("initialize", (m) => setTimeout(() => early(m), 1500));
    let runs = 0;
    tool((m) => reply(m.id, text(++runs)));`);
  const { agent } = await connected([script(code, shared)]);
  expect(await callText(agent)).toBe("1");
});

test("one that hangs at its start says so with its last words, to whoever looks and to who started the agent", async () => {
  const code = `console.error("waiting for the printer, password hunter2-secret"); setInterval(() => {}, 1000);`;
  const { handle, events } = await connected([script(code, { ...shared, env: { PRINTER: "hunter2-secret" } })]);
  const problem = expect.stringMatching(/^It has been starting for \d+ s and says: waiting for the printer, password \[secret\]$/);
  expect(handle.state().upstreams[0]).toMatchObject({ state: "starting", problem });
  expect(events).toContainEqual({ type: "upstream", alias: "script", state: "starting", problem });
});

test("one that ends at every start is started with growing pauses, and its calls are told its last words", async () => {
  const starts = join(stateDir(), "starts");
  writeFileSync(starts, "");
  const code = `import { appendFileSync } from "node:fs"; appendFileSync(${JSON.stringify(starts)}, "x"); console.error("no such port /dev/ttyUSB0"); process.exit(1);`;
  const { agent, handle } = await connected([script(code, shared)]);
  const { frame } = await agent.outcome(agent.call(T, { arguments: {} }));
  expect(frame).toMatchObject({ reason: "upstream_failed", outcome: "not_started", message: expect.stringContaining("/dev/ttyUSB0") });
  expect(handle.state().upstreams[0]).toMatchObject({ state: "crashed", problem: expect.stringContaining("/dev/ttyUSB0") });
  // Calls do not make it start more often.
  for (let count = 0; count < 200; count += 1) await agent.outcome(agent.call(T, { arguments: {} }));
  expect(readFileSync(starts, "utf8").length).toBeLessThan(20);
});

test("an HTTP server that answers 5xx fails that call as unknown, and the next one runs", async () => {
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (piece) => (body += piece));
    request.on("end", () => {
      const message = JSON.parse(body === "" ? "{}" : body) as {
        id?: unknown;
        method?: string;
        params?: { arguments?: { fail?: boolean } };
      };
      const reply = (result: unknown): void => {
        response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ jsonrpc: "2.0", id: message.id, result }));
      };
      if (request.method !== "POST") response.writeHead(405).end();
      else if (message.method === "initialize")
        reply({ protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo: { name: "s", version: "1" } });
      else if (message.id === undefined) response.writeHead(202).end();
      else if (message.method === "tools/list") reply({ tools: [{ name: "t", inputSchema: { type: "object" } }] });
      else if (message.method !== "tools/call") response.writeHead(404).end();
      else if (message.params?.arguments?.fail === true) response.writeHead(503).end("try later");
      else reply({ content: [{ type: "text", text: "fine" }] });
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  onTestFinished(() => void server.close());
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`);
  const { agent } = await connected([{ kind: "http", alias: "h", url }]);
  const call = { ...T, client: legacyClient() };
  expect((await agent.outcome(agent.call(call, { arguments: { fail: true } }))).frame).toMatchObject({
    reason: "upstream_failed",
    outcome: "unknown",
    message: expect.stringContaining("503"),
  });
  expect((await agent.outcome(agent.call(call, { arguments: {} }))).frame.type).toBe("result");
});

test("a killed agent leaves neither a tool server nor what that started, though both ignore TERM", async () => {
  const relay = await startRelay();
  const server = rawServer(`
    import { spawn } from "node:child_process";
    const child = spawn(process.execPath, ["-e", "process.on('SIGTERM', () => {}); setInterval(() => {}, 1000)"], { stdio: "ignore" });
    process.on("SIGTERM", () => {}); setInterval(() => {}, 1000);
    tool((m) => reply(m.id, text(JSON.stringify([process.pid, child.pid]))));`);
  const options = JSON.stringify({ deviceKey: DEVICE_KEY, stateDir: stateDir(), upstreams: [script(server, shared)] });
  const entry = new URL("../../src/agent/run-agent.ts", import.meta.url).href;
  const code = `import { runAgent } from ${JSON.stringify(entry)}; await runAgent({ ...${options}, relay: new URL(${JSON.stringify(relay.url)}), log: () => {} });`;
  const started = spawn(process.execPath, ["--input-type=module", "-e", code], { stdio: "inherit" });
  const { agent } = await relay.agent();
  const pids = JSON.parse(await callText(agent)) as number[];
  expect(pids.map(isAlive)).toEqual([true, true]);
  const gone = new Promise((resolve) => {
    started.once("exit", resolve);
  });
  started.kill("SIGKILL");
  await within(5_000, "the agent's end", gone);
  await vi.waitFor(() => expect(pids.map(isAlive)).toEqual([false, false]), 10_000);
});
