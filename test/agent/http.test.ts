import { spawn, type ChildProcess } from "node:child_process";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { UpstreamConfig } from "../../src/agent/types.ts";
import { payloadText } from "../../src/tunnel/codec.ts";
import { within } from "../support/deadline.ts";
import { legacyClient } from "../support/fake-relay.ts";
import { connected } from "./harness.ts";

const FIXTURE = new URL("../fixtures/upstream/http.mjs", import.meta.url).pathname;
const T = { method: "tools/call", target: "t" } as const;

function textIn(payload: string): string {
  return (JSON.parse(payload) as { content: [{ text: string }] }).content[0].text;
}

/** A port nobody listens on, for as long as it takes to start something there. */
async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => {
    server.close(resolve);
  });
  return port;
}

async function startFixture(port: number): Promise<ChildProcess> {
  const child = spawn(process.execPath, [FIXTURE], {
    env: { PATH: process.env["PATH"], PORT: String(port) },
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  await within(
    15_000,
    "the fixture",
    new Promise((resolve) => {
      child.stdout?.once("data", resolve);
    }),
  );
  return child;
}

function upstream(port: number, extra: Partial<Extract<UpstreamConfig, { kind: "http" }>> = {}): UpstreamConfig {
  return { kind: "http", alias: "http", url: new URL(`http://127.0.0.1:${port}/mcp`), ...extra };
}

type Handler = (
  message: { id?: unknown; method: string; params: Record<string, unknown> },
  request: IncomingMessage,
  response: ServerResponse,
) => void;

/** An HTTP server of a test's own. */
async function serve(handler: Handler): Promise<{ port: number; server: Server }> {
  const server = createServer((request, response) => {
    if (request.method !== "POST") {
      response.writeHead(405).end();
      return;
    }
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => handler(JSON.parse(Buffer.concat(parts).toString()) as Parameters<Handler>[0], request, response));
  });
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  return { port: (server.address() as AddressInfo).port, server };
}

function json(response: ServerResponse, value: unknown, status = 200): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
}

const TOOL = { name: "t", inputSchema: { type: "object", properties: { room: { type: "string", "x-mcp-header": "Room" } } } };

/** A modern server with one tool, run by the test. */
async function modernServer(tool: Handler): Promise<number> {
  const base = { resultType: "complete", ttlMs: 0, cacheScope: "private" };
  const { port } = await serve((message, request, response) => {
    const { id, method } = message;
    if (method === "server/discover")
      json(response, { jsonrpc: "2.0", id, result: { ...base, supportedVersions: ["2026-07-28"], capabilities: { tools: {} } } });
    else if (method === "tools/list") json(response, { jsonrpc: "2.0", id, result: { ...base, tools: [TOOL] } });
    else if (method === "tools/call") tool(message, request, response);
    else json(response, { jsonrpc: "2.0", id, error: { code: -32601, message: "no" } }, 404);
  });
  return port;
}

describe("the fixture over HTTP", () => {
  test("answers both eras, with progress, images and errors", async () => {
    const port = await freePort();
    await startFixture(port);
    const { agent, handle } = await connected([upstream(port)]);
    for (const [client, protocol] of [
      [undefined, "2026-07-28"],
      [legacyClient(), "2025-11-25"],
    ] as const) {
      const who = client ? { client } : {};
      const image = await agent.outcome(agent.call({ method: "tools/call", target: "test_image_content", ...who }, { arguments: {} }));
      expect(image.frame).toMatchObject({ type: "result", protocol });
      expect(JSON.parse(image.payload)).toMatchObject({ content: [{ type: "image" }] });
      const callId = agent.call({ method: "tools/call", target: "test_tool_with_progress", progress: true, ...who }, { arguments: {} });
      for (const progress of [0, 50, 100]) {
        const { payload } = await agent.next("event", (event) => event.callId === callId);
        expect(JSON.parse(payloadText(payload))).toMatchObject({ progress });
      }
      expect((await agent.outcome(callId)).frame.type).toBe("result");
      expect((await agent.outcome(agent.call({ method: "resources/read", target: "test://no", ...who }))).frame).toMatchObject({
        origin: "upstream",
      });
    }
    expect(handle.state().upstreams[0]).toMatchObject({ era: "dual", state: "ready" });
    agent.send({ type: "probe", probeId: "p" });
    expect((await agent.next("pong")).frame.upstreams[0]?.lastRoundTripMs).toBeGreaterThanOrEqual(0);
  });

  test("tells of changes through a subscription", async () => {
    const port = await freePort();
    await startFixture(port);
    const { agent } = await connected([upstream(port)]);
    await agent.next("catalogue");
    await agent.outcome(agent.call({ method: "tools/call", target: "test_trigger_tool_change" }, { arguments: {} }));
    expect((await agent.next("changed")).frame).toMatchObject({ what: "tools" });
  });

  test("continues a stream that the server closed before the result", async () => {
    const port = await freePort();
    await startFixture(port);
    const { agent } = await connected([upstream(port)]);
    const { payload } = await agent.outcome(
      agent.call({ method: "tools/call", target: "test_reconnection", client: legacyClient() }, { arguments: {} }),
    );
    expect(textIn(payload)).toContain("resumed");
  });

  test("asks on a call's own stream, for calls of one grant side by side", async () => {
    const port = await freePort();
    await startFixture(port);
    const { agent } = await connected([upstream(port, { isolation: "grant" })]);
    const client = legacyClient({ elicitation: {} });
    const calls = ["one", "two"].map((message) => ({
      message,
      id: agent.call({ method: "tools/call", target: "test_elicitation", client }, { arguments: { message } }),
    }));
    const asks = [];
    for (const { message, id } of calls) {
      const { frame, payload } = await agent.next("ask", (ask) => ask.callId === id);
      expect(JSON.parse(payloadText(payload))).toMatchObject({ message });
      asks.push({ message, id, askId: frame.askId });
    }
    for (const { message, id, askId } of asks) {
      agent.send(
        { type: "answer", callId: id, askId, kind: "result" },
        JSON.stringify({ action: "accept", content: { response: message } }),
      );
    }
    for (const { message, id } of calls) expect(textIn((await agent.outcome(id)).payload)).toContain(`"response":"${message}"`);
  });

  test("a session the server forgot is opened anew, and the call that met it runs once", async () => {
    const port = await freePort();
    const first = await startFixture(port);
    const { agent } = await connected([upstream(port)]);
    const call = async () =>
      await agent.outcome(agent.call({ method: "tools/call", target: "test_simple_text", client: legacyClient() }, { arguments: {} }));
    expect((await call()).frame).toMatchObject({ type: "result", protocol: "2025-11-25" });
    first.kill("SIGKILL");
    await new Promise((resolve) => {
      first.once("exit", resolve);
    });
    expect((await call()).frame).toMatchObject({
      type: "error",
      reason: "upstream_failed",
      outcome: "not_started",
      message: expect.stringContaining("ECONNREFUSED"),
    });
    await startFixture(port);
    expect((await call()).frame).toMatchObject({ type: "result", protocol: "2025-11-25" });
  });
});

describe("a modern HTTP server", () => {
  test("gets the mirrored headers of every caller, and the agent's own credentials", async () => {
    const seen: IncomingMessage["headers"][] = [];
    const port = await modernServer(({ id }, request, response) => {
      seen.push(request.headers);
      json(response, { jsonrpc: "2.0", id, result: { resultType: "complete", content: [] } });
    });
    const { agent } = await connected([upstream(port, { headers: { authorization: "Bearer own" } })]);
    await agent.next("catalogue");
    for (const client of [{}, { client: legacyClient() }]) {
      await agent.outcome(agent.call({ ...T, ...client, paramHeaders: { other: "o" } }, { arguments: { room: "zürich" } }));
    }
    for (const headers of seen) {
      expect(headers).toMatchObject({
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "t",
        "mcp-param-room": "=?base64?esO8cmljaA==?=",
        "mcp-param-other": "o",
        authorization: "Bearer own",
      });
      expect(headers).not.toHaveProperty("mcp-session-id");
    }
    expect(seen).toHaveLength(2);
  });

  test("sees a cancelled call as a closed stream", async () => {
    const closed = Promise.withResolvers<void>();
    const port = await modernServer((_message, _request, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" }).write(": here\n\n");
      response.on("close", closed.resolve);
    });
    const { agent } = await connected([upstream(port)]);
    const callId = agent.call(T);
    await agent.next("ack", (ack) => ack.callId === callId);
    agent.send({ type: "cancel", callId, reason: "caller_left" });
    await within(5_000, "the close", closed.promise);
  });

  test.each([
    [
      "an error with a status",
      (id: unknown, response: ServerResponse): void =>
        json(response, { jsonrpc: "2.0", id, error: { code: -32021, message: "need", data: { requiredCapabilities: {} } } }, 400),
      { origin: "upstream", code: -32021 },
    ],
    [
      "HTML",
      (_id: unknown, response: ServerResponse): void => void response.writeHead(502, { "content-type": "text/html" }).end("<html>"),
      { reason: "upstream_failed", outcome: "unknown" },
    ],
    [
      "a refusal of our credentials",
      (_id: unknown, response: ServerResponse): void => void response.writeHead(401).end(),
      { reason: "upstream_failed", outcome: "not_started" },
    ],
    [
      "a connection that breaks",
      (_id: unknown, response: ServerResponse): void => void response.destroy(),
      { reason: "upstream_failed", outcome: "unknown" },
    ],
    [
      "a stream without a result",
      (_id: unknown, response: ServerResponse): void =>
        void response.writeHead(200, { "content-type": "text/event-stream" }).end(": bye\n\n"),
      { reason: "upstream_failed", outcome: "unknown" },
    ],
    [
      "somebody else's answer",
      (_id: unknown, response: ServerResponse): void => json(response, { jsonrpc: "2.0", id: "other", result: {} }),
      { reason: "upstream_failed", outcome: "unknown" },
    ],
  ] as const)("that answers with %s fails that call in words of its own", async (_what, answer, expected) => {
    const port = await modernServer(({ id, params }, _request, response) => {
      if ((params["arguments"] as { ok?: boolean }).ok === true)
        json(response, { jsonrpc: "2.0", id, result: { resultType: "complete", content: [] } });
      else answer(id, response);
    });
    const { agent } = await connected([upstream(port)]);
    expect((await agent.outcome(agent.call(T, { arguments: {} }))).frame).toMatchObject({ type: "error", ...expected });
    expect((await agent.outcome(agent.call(T, { arguments: { ok: true } }))).frame).toMatchObject({ type: "result" });
  });

  test("passes results byte for byte, from JSON over several lines and from SSE", async () => {
    const result = String.raw`{"content":[{"type":"odd","n":12345678901234567890,"e":"\u00e9"}],"f":1.0}`;
    const port = await modernServer(({ id, params }, _request, response) => {
      const isSse = (params["arguments"] as { sse?: boolean }).sse === true;
      const message = `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}`;
      response.writeHead(200, { "content-type": isSse ? "text/event-stream; charset=utf-8" : "application/json" });
      response.end(isSse ? `data: ${message}\n\n` : `\n${message}\n`);
    });
    const { agent } = await connected([upstream(port)]);
    for (const sse of [true, false]) expect((await agent.outcome(agent.call(T, { arguments: { sse } }))).payload).toBe(result);
  });
});

test("a server that is away is named in the state, and is found when it comes", async () => {
  const port = await freePort();
  const { agent, handle } = await connected([upstream(port)]);
  expect((await agent.outcome(agent.call(T))).frame).toMatchObject({ reason: "upstream_failed", outcome: "not_started" });
  expect(handle.state().upstreams[0]).toMatchObject({ state: "crashed", problem: expect.stringContaining("ECONNREFUSED") });
  await startFixture(port);
  await vi.waitFor(() => expect(handle.state().upstreams[0]).toMatchObject({ state: "ready" }), 15_000);
});
