import { execFileSync } from "node:child_process";
import { describe, expect, test, vi } from "vitest";
import { UPSTREAM } from "../../src/limits.ts";
import { payloadText } from "../../src/tunnel/codec.ts";
import { within } from "../support/deadline.ts";
import { legacyClient, type AgentSocket } from "../support/fake-relay.ts";
import { connected, everything, fixture, script } from "./harness.ts";
import { rawServer } from "./raw-server.ts";

const T = { method: "tools/call", target: "t" } as const;

function textIn(payload: string): string {
  return (JSON.parse(payload) as { content: [{ text: string }] }).content[0].text;
}

async function callText(agent: AgentSocket, args: unknown = {}): Promise<string> {
  const { frame, payload } = await agent.outcome(agent.call(T, { arguments: args }));
  expect(frame).toMatchObject({ type: "result" });
  return textIn(payload);
}

/** True while a process exists. */
function lives(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // A zombie has no command line left to run.
    return !execFileSync("ps", ["-o", "stat=", "-p", String(pid)])
      .toString()
      .startsWith("Z");
  } catch {
    return false;
  }
}

describe("what a stdio server says passes as it is", () => {
  test("results byte for byte: big integers, escapes, unknown members and content types", async () => {
    const raw = String.raw`{"content":[{"type":"hologram","n":12345678901234567890,"f":1.0,"e":"\u00e9\/"}],"structuredContent":{"b":1,"a":2},"x":{"z":[]}}`;
    const code = rawServer(
      `tool((m) => process.stdout.write('{"result":' + ${JSON.stringify(raw)} + ',"jsonrpc":"2.0","id":' + JSON.stringify(m.id) + '}\\n'));`,
    );
    const { agent } = await connected([script(code)]);
    const { frame, payload } = await agent.outcome(agent.call(T));
    expect(frame).toMatchObject({ type: "result", protocol: "2025-11-25" });
    expect(payload).toBe(raw);
  });

  test("params as the caller wrote them, with its meta and without our names in them", async () => {
    const code = rawServer(`tool((m) => reply(m.id, text(JSON.stringify(m.params))));`);
    const { agent } = await connected([script(code)]);
    const callId = agent.call(
      { ...T, meta: { traceparent: "00-a-b-01", "x/y": 1 } },
      '{"arguments":{"a":[1,{"name":"deep"}]},"other":true}',
    );
    const params = JSON.parse(textIn((await agent.outcome(callId)).payload)) as unknown;
    expect(params).toEqual({
      name: "t",
      arguments: { a: [1, { name: "deep" }] },
      other: true,
      _meta: { traceparent: "00-a-b-01", "x/y": 1 },
    });
  });

  test("a modern server gets the whole envelope of the real caller", async () => {
    const code = rawServer(`isModern(); tool((m) => reply(m.id, { resultType: "complete", ...text(JSON.stringify(m.params._meta)) }));`);
    const { agent } = await connected([script(code)]);
    const client = {
      era: "modern" as const,
      protocol: "2026-07-28",
      capabilities: { sampling: {}, odd: { x: 1 } },
      info: { name: "c", version: "9" },
    };
    const { payload } = await agent.outcome(agent.call({ ...T, client, meta: { traceparent: "t" }, progress: true, logLevel: "error" }));
    expect(JSON.parse(textIn(payload))).toEqual({
      traceparent: "t",
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientCapabilities": { sampling: {}, odd: { x: 1 } },
      "io.modelcontextprotocol/clientInfo": { name: "c", version: "9" },
      "io.modelcontextprotocol/logLevel": "error",
      progressToken: expect.stringMatching(/^ll-/),
    });
  });

  test("errors with code, message and data", async () => {
    const { agent } = await connected([script(rawServer(`tool((m) => fail(m.id, -32050, "own error", { why: [1] }));`))]);
    const callId = agent.call(T);
    const { frame, payload } = await agent.outcome(callId);
    expect(frame).toMatchObject({ type: "error", origin: "upstream", code: -32050, message: "own error", protocol: "2025-11-25" });
    expect(JSON.parse(payload)).toEqual({ why: [1] });
  });

  test("a 20 MB result", async () => {
    const { agent } = await connected([script(rawServer(`tool((m) => reply(m.id, text("x".repeat(20_000_000))));`))]);
    expect((await callText(agent)).length).toBe(20_000_000);
  });
});

describe("a server that misbehaves costs what it must and no more", () => {
  test("garbage on its output is ignored and reported", async () => {
    const code = rawServer(
      `tool((m) => { process.stdout.write("Starting up...\\n\\n{\\"half\\":\\n[1,2]\\nnull\\n"); reply(m.id, text("fine")); });`,
    );
    const { agent, events } = await connected([script(code)]);
    expect(await callText(agent)).toBe("fine");
    expect(events).toContainEqual({ type: "warning", message: expect.stringContaining("not JSON-RPC") });
  });

  test("a message over the cap fails its call, and the server goes on", async () => {
    const code = rawServer(`tool((m) => {
      if (m.params.arguments.ok) return reply(m.id, text("fine"));
      const id = m.params.arguments.last ? "" : '"id":' + JSON.stringify(m.id) + ",";
      process.stdout.write('{"jsonrpc":"2.0",' + id + '"result":{"t":"' + "x".repeat(${UPSTREAM.maxMessageBytes}) + '"}' + (id ? "" : ',"id":' + JSON.stringify(m.id)) + "}\\n");
    });`);
    const { agent } = await connected([script(code)]);
    for (const last of [false, true]) {
      const { frame } = await agent.outcome(agent.call(T, { arguments: { last } }));
      expect(frame).toMatchObject({ type: "error", reason: "too_large", outcome: "unknown", data: { cap: UPSTREAM.maxMessageBytes } });
    }
    expect(await callText(agent, { ok: true })).toBe("fine");
  });

  test("a crash fails the calls in flight at once, with its last words cleaned; then it is started again", async () => {
    const code = rawServer(
      `tool((m) => { if (m.params.arguments.ok) return reply(m.id, text("alive")); console.error("\\u001b[31mboom\\u001b[0m secret-value-1"); process.exit(3); });`,
    );
    const { agent, handle } = await connected([script(code, { isolation: "shared", env: { TOKEN: "secret-value-1" } })]);
    const calls = [agent.call(T, { arguments: {} }), agent.call(T, { arguments: {} })];
    for (const callId of calls) {
      const { frame } = await agent.outcome(callId);
      expect(frame).toMatchObject({ type: "error", reason: "upstream_failed", outcome: "unknown" });
      expect((frame as { message: string }).message).toMatch(/ended with exit code 3: boom \[secret\]$/);
    }
    expect(handle.state().upstreams[0]).toMatchObject({ state: "crashed", problem: expect.stringContaining("boom") });
    const { frame } = await agent.outcome(agent.call(T, { arguments: { ok: true } }));
    expect(frame).toMatchObject({ reason: "upstream_failed", outcome: "not_started" });
    await vi.waitFor(() => expect(handle.state().upstreams[0]).toMatchObject({ state: "ready" }), 10_000);
    expect(await callText(agent, { ok: true })).toBe("alive");
  });

  test("a command that does not exist is named, and the calls say not started", async () => {
    const { agent } = await connected([{ kind: "stdio", alias: "x", command: "/no/such/command", args: [] }]);
    const { frame } = await agent.outcome(agent.call(T));
    expect(frame).toMatchObject({
      reason: "upstream_failed",
      outcome: "not_started",
      message: expect.stringContaining('"/no/such/command" was not found'),
    });
  });

  test("one that exits on an unknown first request is started again as a legacy one", async () => {
    const code = rawServer(`on("server/discover", () => process.exit(1)); tool((m) => reply(m.id, text("legacy")));`);
    const { agent, handle } = await connected([script(code)]);
    expect(await callText(agent)).toBe("legacy");
    expect(handle.state().upstreams[0]).toMatchObject({ era: "legacy", state: "ready" });
  });

  test("one that stays silent on it is taken for a legacy one", async () => {
    const code = rawServer(`on("server/discover", () => undefined); tool((m) => reply(m.id, text("quiet")));`);
    const { agent, handle } = await connected([script(code)]);
    expect(await callText(agent)).toBe("quiet");
    expect(handle.state().upstreams[0]).toMatchObject({ era: "legacy" });
  });

  test("a modern-only server answers legacy callers in its own era", async () => {
    const code = rawServer(`isModern(); tool((m) => reply(m.id, { resultType: "complete", ...text("modern") }));`);
    const { agent, handle } = await connected([script(code)]);
    for (let i = 0; i < 2; i += 1) {
      const { frame } = await agent.outcome(agent.call({ ...T, client: legacyClient() }));
      expect(frame).toMatchObject({ type: "result", protocol: "2026-07-28", resultType: "complete" });
    }
    expect(handle.state().upstreams[0]).toMatchObject({ era: "modern" });
  });
});

describe("cancel and time", () => {
  test("reach the server as a cancelled notification that names its request", async () => {
    const code = rawServer(`
      let first;
      tool((m) => { if (m.params.arguments.report) return reply(m.id, text(JSON.stringify([first, seen.filter((s) => s.method === "notifications/cancelled").map((s) => s.params)]))); first = m.id; });`);
    const { agent } = await connected([script(code, { isolation: "shared" })]);
    const callId = agent.call(T, { arguments: {} });
    await agent.next("ack", (ack) => ack.callId === callId);
    agent.send({ type: "cancel", callId, reason: "caller_left" });
    const [id, cancelled] = JSON.parse(await callText(agent, { report: true })) as [string, unknown[]];
    expect(cancelled).toEqual([{ requestId: id, reason: "caller_left" }]);
  });
});

describe("processes", () => {
  test("get an allow-listed environment, with the device key nowhere", async () => {
    vi.stubEnv("LONGLINE_DEVICE_KEY", "llk_secret");
    vi.stubEnv("SOME_TOKEN", "t");
    const { agent } = await connected([
      script(rawServer(`tool((m) => reply(m.id, text(JSON.stringify(process.env))));`), { env: { MINE: "1" } }),
    ]);
    const env = JSON.parse(await callText(agent)) as Record<string, string>;
    vi.unstubAllEnvs();
    expect(env).toMatchObject({ MINE: "1", PATH: process.env["PATH"] });
    expect(Object.keys(env).filter((name) => name.startsWith("LONGLINE_") || name === "SOME_TOKEN")).toEqual([]);
  });

  test("one that ignores the end of input and TERM, and its own child, are gone after a stop", async () => {
    const code = rawServer(`
      import { spawn } from "node:child_process";
      const child = spawn(process.execPath, ["-e", "process.on('SIGTERM', () => {}); setInterval(() => {}, 1000)"], { stdio: "ignore" });
      process.on("SIGTERM", () => {}); setInterval(() => {}, 1000);
      tool((m) => reply(m.id, text(JSON.stringify([process.pid, child.pid]))));`);
    const { agent, handle } = await connected([script(code, { isolation: "shared" })]);
    const pids = JSON.parse(await callText(agent)) as number[];
    expect(pids.map(lives)).toEqual([true, true]);
    await within(15_000, "the stop", handle.stop("over"));
    await vi.waitFor(() => expect(pids.map(lives)).toEqual([false, false]), 5_000);
  });

  test("each grant has its own legacy child, and one grant keeps its own", async () => {
    const code = rawServer(`let n = 0; tool((m) => reply(m.id, text(JSON.stringify([process.pid, ++n]))));`);
    const { agent } = await connected([script(code)]);
    const run = async (grant: string, capabilities = {}) => {
      const callId = agent.call(
        { ...T, client: legacyClient(capabilities), caller: { grant, label: "l", member: "m" } },
        { arguments: {} },
      );
      return JSON.parse(textIn((await agent.outcome(callId)).payload)) as [number, number];
    };
    const [a1, b1, a2] = [await run("a"), await run("b"), await run("a")];
    expect(a1[0]).not.toBe(b1[0]);
    expect(a2).toEqual([a1[0], 2]);
    expect((await run("a", { elicitation: {} }))[0]).not.toBe(a1[0]);
  });

  test("at most eight instances live; the longest idle one makes room", async () => {
    const { agent } = await connected([script(rawServer(`tool((m) => reply(m.id, text(process.pid)));`))]);
    const pids: number[] = [];
    for (let i = 0; i < UPSTREAM.instances + 1; i += 1) {
      const callId = agent.call({ ...T, client: legacyClient(), caller: { grant: `g${i}`, label: "l", member: "m" } });
      pids.push(Number(textIn((await agent.outcome(callId)).payload)));
    }
    await vi.waitFor(() => expect(pids.map(lives)).toEqual([false, ...Array.from({ length: UPSTREAM.instances }, () => true)]), 10_000);
  });
});

describe("the fixture and the everything server, through the agent", () => {
  test("progress of both eras keeps its order and has no token", async () => {
    const { agent } = await connected([fixture()]);
    for (const client of [undefined, legacyClient()]) {
      const callId = agent.call(
        { method: "tools/call", target: "test_tool_with_progress", progress: true, ...(client ? { client } : {}) },
        { arguments: {} },
      );
      for (const progress of [0, 50, 100]) {
        const { payload } = await agent.next("event", (event) => event.callId === callId);
        expect(JSON.parse(payloadText(payload))).toEqual({ progress, total: 100, message: `Completed step ${progress} of 100` });
      }
      expect((await agent.outcome(callId)).frame.type).toBe("result");
    }
  });

  test("lists, resources, prompts and completion", async () => {
    const { agent } = await connected([fixture()]);
    const { payload: text } = await agent.next("catalogue");
    const catalogue = JSON.parse(String(text)) as {
      discover: { supportedVersions: string[] };
      tools: unknown[];
      resources: { uri: string }[];
      resourceTemplates: unknown[];
      prompts: unknown[];
    };
    expect(catalogue.discover).toMatchObject({
      capabilities: { tools: { listChanged: true } },
      serverInfo: { name: "relay-conformance-fixture" },
    });
    expect(catalogue.resources.map((resource) => resource.uri)).toContain("test://static-text");
    expect([catalogue.tools.length, catalogue.resourceTemplates.length, catalogue.prompts.length].every((count) => count > 0)).toBe(true);
    for (const client of [{}, { client: legacyClient() }]) {
      const read = await agent.outcome(agent.call({ method: "resources/read", target: "test://static-text", ...client }));
      expect(JSON.parse(read.payload)).toMatchObject({ contents: [{ uri: "test://static-text" }] });
      const prompt = await agent.outcome(
        agent.call({ method: "prompts/get", target: "test_prompt_with_arguments", ...client }, { arguments: { arg1: "a", arg2: "b" } }),
      );
      expect(prompt.payload).toContain("arg1='a', arg2='b'");
      const ref = { type: "ref/prompt", name: "test_prompt_with_arguments" };
      const done = await agent.outcome(
        agent.call({ method: "completion/complete", ref, ...client }, { argument: { name: "arg1", value: "x" } }),
      );
      expect(JSON.parse(done.payload)).toMatchObject({ completion: { values: [] } });
      const list = await agent.outcome(agent.call({ method: "tools/list", ...client }));
      expect((JSON.parse(list.payload) as { tools: unknown[] }).tools).toHaveLength(catalogue.tools.length);
      expect((await agent.outcome(agent.call({ method: "resources/read", target: "test://nothing", ...client }))).frame).toMatchObject({
        origin: "upstream",
      });
    }
  });

  test("images and embedded resources of a v1 server", async () => {
    const { agent, events } = await connected([everything()]);
    const { payload } = await agent.outcome(
      agent.call({ method: "tools/call", target: "get-tiny-image", client: legacyClient() }, { arguments: {} }),
    );
    expect(JSON.parse(payload)).toMatchObject({ content: [{}, { type: "image", mimeType: "image/png" }, {}] });
    expect(events.filter((event) => event.type === "warning")).toEqual([]);
  });
});
