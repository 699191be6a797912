/** The agent of examples/: frames of 4 KiB against a scripted relay, then the same program behind a real one. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { connectV1, connectV2, modernRequest, readMessages } from "../support/clients.ts";
import { FakeRelay } from "../support/fake-relay.ts";
import { node20 } from "../support/node-20.ts";
import { eventually, startProcess, type RunningProcess } from "../support/processes.ts";
import { longline, startRelay, type RelayProcess } from "../support/relay-process.ts";
import { freePort, startTcpProxy, type TcpProxy } from "../support/tcp-proxy.ts";

const FILE = join(import.meta.dirname, "../../examples/minimal-agent.mjs");
const FRAME = 4096;
const KEY = `llk_${"0".repeat(32)}_${"A".repeat(43)}`;

function start(relay: string, deviceKey: string): RunningProcess {
  return startProcess(node20(), [FILE, relay], { env: { LONGLINE_DEVICE_KEY: deviceKey } });
}

test("it is under 200 lines, and asks for nothing but Node's own modules", () => {
  const source = readFileSync(FILE, "utf8");
  expect(source.trimEnd().split("\n").length).toBeLessThan(200);
  for (const [, name] of source.matchAll(/(?:from|import\() ?"([^"]+)"/g)) expect(name).toMatch(/^node:/);
});

describe("the frames it claims", () => {
  let relay: FakeRelay;
  let run: RunningProcess;
  beforeEach(async () => {
    relay = await FakeRelay.start();
    run = start(relay.url.href, KEY);
  });
  afterEach(async () => {
    for (const agent of relay.agents) expect(agent.problem).toBeNull();
    await run.stop();
    await relay.stop();
  });

  test("hello names 4 KiB and its machine, the catalogue follows when it is wanted, and a probe is answered", async () => {
    const { agent, hello } = await relay.agent();
    expect(hello).toMatchObject({ limits: { maxFrameBytes: FRAME }, held: [], protocol: { min: 1, max: 1 } });
    expect(agent.headers["authorization"]).toBe(`Bearer ${KEY}`);
    const { payload, frame } = await agent.next("catalogue");
    expect(frame.digest).toBe(hello.catalogue);
    expect(JSON.parse(String(payload))).toMatchObject({ tools: [{ name: "echo" }, { name: "fill" }, { name: "wait" }] });
    agent.send({ type: "probe", probeId: "p1" });
    expect((await agent.next("pong")).frame).toMatchObject({ probeId: "p1", upstreams: [{ state: "ready" }] });
  });

  test("a large result comes in chunks that keep to frame and credit", async () => {
    const { agent } = await relay.agent();
    const callId = agent.call({ method: "tools/call", target: "fill", credit: 5_000 }, { arguments: { bytes: 50_000 } });
    const { frame } = await agent.next("result");
    const bytes = frame.bytes ?? 0;
    expect(bytes).toBeGreaterThan(50_000);
    const first = await agent.next("chunk");
    expect(first.bytes).toBeLessThanOrEqual(FRAME);
    const second = await agent.next("chunk");
    const gone = (first.payload?.length ?? 0) + (second.payload?.length ?? 0);
    expect(gone).toBe(5_000);
    const rest = await agent.chunks(callId, bytes, gone);
    expect(rest.toString().endsWith('xxx"}],"isError":false}')).toBe(true);
  });

  test("progress comes with numbers, a cancelled call says nothing more, an unknown tool is refused", async () => {
    const { agent } = await relay.agent();
    const callId = agent.call({ method: "tools/call", target: "wait", progress: true }, { arguments: { ms: 200 } });
    const { frame, payload } = await agent.next("event");
    expect(frame).toMatchObject({ callId, seq: 1, method: "notifications/progress" });
    expect(JSON.parse(String(payload))).toEqual({ progress: 1, total: 4 });
    agent.send({ type: "cancel", callId, reason: "caller_asked" });
    // What it says next belongs to the next call.
    const other = agent.call({ method: "tools/call", target: "nonsense" });
    expect((await agent.outcome(other)).frame).toMatchObject({ type: "error", code: -32602 });
    const third = agent.call({ method: "tools/call", target: "wait" }, { arguments: { ms: 300 } });
    await agent.outcome(third);
    expect(agent.messages.filter(({ frame: said }) => said.type === "result" && said.callId === callId)).toEqual([]);
  });

  test("a new link says what is held and goes on where the relay was; what is delivered is forgotten", async () => {
    const { agent } = await relay.agent();
    const callId = agent.call({ method: "tools/call", target: "fill", credit: 1_000 }, { arguments: { bytes: 9_000 } });
    const { frame } = await agent.next("result");
    const bytes = frame.bytes ?? 0;
    await agent.next("chunk");
    agent.cut();
    const again = await relay.agent();
    expect(again.hello).toMatchObject({ held: [callId] });
    again.agent.send({ type: "attach", callId, seq: 1, offset: 600, credit: 100 });
    const rest = await again.agent.chunks(callId, bytes, 600);
    expect(rest.length).toBe(bytes - 600);
    again.agent.send({ type: "delivered", callIds: [callId] });
    again.agent.send({ type: "attach", callId, seq: 0, offset: 0, credit: 100 });
    expect((await again.agent.outcome(callId)).frame).toMatchObject({ type: "error", reason: "agent_restarted" });
  });
});

describe("behind a real relay", () => {
  let relay: RelayProcess;
  let link: TcpProxy;
  let run: RunningProcess;
  let mcpUrl: string;
  let token: string;
  beforeAll(async () => {
    const port = await freePort();
    link = await startTcpProxy(port);
    const tunnel = `http://127.0.0.1:${link.port}`;
    relay = await startRelay({ args: ["--port", String(port), "--origin", `http://127.0.0.1:${port}`, "--origin", tunnel] });
    const device = await relay.addDevice("board");
    ({ mcpUrl } = device);
    ({ token } = await relay.createToken("board"));
    run = start(tunnel, device.deviceKey);
    await run.line("stderr", (line) => line.includes("online as"));
  });
  afterAll(async () => {
    await run.stop();
    await relay.stop();
    await link.close();
  });

  test.each([
    ["sdk 1.x", async () => await connectV1(mcpUrl, token)],
    ["client 2.x, pinned to 2026-07-28", async () => await connectV2(mcpUrl, token, { pin: "2026-07-28" })],
  ] as const)("%s lists and calls, a large result too", async (_name, connect) => {
    const client = await connect();
    expect((await client.listTools()).tools.map((tool) => tool.name)).toEqual(["echo", "fill", "wait"]);
    expect(await client.callTool({ name: "echo", arguments: { text: "hé" } })).toMatchObject({ content: [{ text: "hé" }] });
    const filled = (await client.callTool({ name: "fill", arguments: { bytes: 1_000_000 } })) as { content: { text: string }[] };
    expect(filled.content[0]?.text.length).toBe(1_000_000);
    await client.close();
  });

  test("a call survives the loss of its link, and one that is cancelled ends", async () => {
    const waiting = fetch(mcpUrl, modernRequest(token, "tools/call", { name: "wait", arguments: { ms: 2_000 } })).then(readMessages);
    await eventually("the call runs", async () => (await inFlight()) > 0);
    link.cut();
    expect((await waiting).at(-1)).toMatchObject({ result: { content: [{ text: "done" }] } });
    const client = await connectV1(mcpUrl, token);
    const leave = new AbortController();
    const cancelled = client.callTool({ name: "wait", arguments: { ms: 60_000 } }, undefined, { signal: leave.signal });
    await eventually("the call runs", async () => (await inFlight()) > 0);
    leave.abort();
    await expect(cancelled).rejects.toThrow();
    await eventually("nothing runs", async () => (await inFlight()) === 0);
    await client.close();
  });

  async function inFlight(): Promise<number> {
    const { stdout } = await longline(["status", "board", "--json"], { env: relay.env });
    return (JSON.parse(stdout) as { inFlight: number }).inFlight;
  }
});
