/** `longline connect`: official clients of both generations on its standard streams. */
import { CreateMessageRequestSchema, ElicitRequestSchema, ListRootsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { join } from "node:path";
import { startProcess } from "../support/processes.ts";
import { rawUpstream, type RawUpstream } from "../support/raw-upstream.ts";
import { FIXTURE_STDIO, startStack, type Stack } from "../support/stack.ts";
import { stdioV1, stdioV2, type Setup } from "../support/stdio-clients.ts";

const COMMAND = join(import.meta.dirname, "../../bin/longline.cjs");
const CAPABILITIES = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };
const SAMPLED = { role: "assistant" as const, content: { type: "text" as const, text: "pong" }, model: "m" };
const ACCEPTED = { action: "accept" as const, content: { name: "Ada" } };
const read = (result: object): unknown => JSON.parse((result as { content: { text: string }[] }).content[0]?.text ?? "null");
const setupOf = (stack: Stack): Setup => ({ mcpUrl: stack.mcpUrl, env: { LONGLINE_TOKEN: stack.token } });

/** What both generations do, under one name each. */
interface Official {
  tools(): Promise<string[]>;
  call(name: string, args: object, options?: { onprogress?: (step: { progress: number }) => void; signal?: AbortSignal }): Promise<object>;
  close(): Promise<void>;
}

async function officialV1(setup: Setup): Promise<Official> {
  const client = await stdioV1(setup, CAPABILITIES, (fresh) => {
    fresh.setRequestHandler(ElicitRequestSchema, () => ACCEPTED);
    fresh.setRequestHandler(CreateMessageRequestSchema, () => SAMPLED);
    fresh.setRequestHandler(ListRootsRequestSchema, () => ({ roots: [] }));
  });
  return {
    tools: async () => (await client.listTools()).tools.map((tool) => tool.name),
    call: async (name, args, options) => await client.callTool({ name, arguments: { ...args } }, undefined, options),
    close: async () => await client.close(),
  };
}

async function officialV2(setup: Setup, mode: Parameters<typeof stdioV2>[1]): Promise<Official> {
  const client = await stdioV2(setup, mode, CAPABILITIES, (fresh) => {
    fresh.setRequestHandler("elicitation/create", () => ACCEPTED);
    fresh.setRequestHandler("sampling/createMessage", () => SAMPLED);
    fresh.setRequestHandler("roots/list", () => ({ roots: [] }));
  });
  return {
    tools: async () => (await client.listTools()).tools.map((tool) => tool.name),
    call: async (name, args, options) => await client.callTool({ name, arguments: { ...args } }, options),
    close: async () => await client.close(),
  };
}

const CLIENTS: readonly (readonly [string, (setup: Setup) => Promise<Official>])[] = [
  ["sdk 1.x", officialV1],
  ["client 2.x, auto", (setup) => officialV2(setup, "auto")],
  ["client 2.x, pinned to 2026-07-28", (setup) => officialV2(setup, { pin: "2026-07-28" })],
];

describe.each(["legacy", "modern"] as const)("with a %s upstream", (era) => {
  let stack: Stack;
  let upstream: RawUpstream;
  beforeAll(async () => {
    upstream = await rawUpstream(era);
    stack = await startStack({ agent: upstream.agent, alsoStop: [upstream] });
  });
  afterAll(() => stack?.stop());

  test.each(CLIENTS)("%s lists, calls, answers questions and hears progress on its streams", async (_name, connect) => {
    const client = await connect(setupOf(stack));
    expect(await client.tools()).toContain("echo");
    expect(read(await client.call("echo", { n: 1 }))).toMatchObject({ args: { n: 1 } });
    const asked = read(await client.call("ask", { kinds: ["form", "sampling", "roots"] }));
    expect(asked).toMatchObject({ form: ACCEPTED, sampling: SAMPLED, roots: { roots: [] } });
    const steps: number[] = [];
    await client.call("chatter", { count: 3, pauseMs: 20 }, { onprogress: ({ progress }) => void steps.push(progress) });
    expect(steps).toEqual([1, 2, 3]);
    await client.close();
  });

  // The other pairs are the same two ways: a notice in the session, or the end of the request.
  test(`a ${era} client's cancelled call is cancelled at the tool, and the connection goes on`, async () => {
    const client = era === "legacy" ? await officialV1(setupOf(stack)) : await officialV2(setupOf(stack), { pin: "2026-07-28" });
    const leave = new AbortController();
    const hanging = client.call("hang", {}, { signal: leave.signal });
    await upstream.sees("hang");
    leave.abort();
    await expect(hanging).rejects.toThrow();
    await upstream.sees("cancelled");
    expect(read(await client.call("echo", { n: 2 }))).toMatchObject({ args: { n: 2 } });
    await client.close();
  });
});

describe("the line itself", () => {
  let stack: Stack;
  beforeAll(async () => {
    stack = await startStack({ agent: ["--", ...FIXTURE_STDIO] });
  });
  afterAll(() => stack?.stop());

  function start(env: Record<string, string | undefined> = {}) {
    return startProcess(process.execPath, [COMMAND, "connect", stack.mcpUrl], {
      stdin: "pipe",
      env: { LONGLINE_TOKEN: stack.token, ...env },
    });
  }
  const modern = { "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} };
  const line = (message: object): string => `${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`;

  test("an argument that the revision mirrors in a header gets there from a client that has no headers", async () => {
    const run = start();
    const params = { name: "test_x_mcp_header", arguments: { region: "eu – west" }, _meta: modern };
    run.child.stdin?.write(line({ id: 1, method: "tools/call", params }));
    expect(JSON.parse(await run.line("stdout", () => true))).toMatchObject({ id: 1, result: { content: [{ text: "region=eu – west" }] } });
    await run.stop();
  });

  test("ids go back as they came, a line that is no message is answered, and the end of stdin ends it with 0", async () => {
    const run = start();
    run.child.stdin?.write("{nonsense\n");
    expect(JSON.parse(await run.line("stdout", () => true))).toMatchObject({ id: null, error: { code: -32700 } });
    run.child.stdin?.end(`{"jsonrpc":"2.0","id":"é 1","method":"tools/list","params":{"_meta":${JSON.stringify(modern)}}}\n`);
    expect(await run.ended(10_000)).toEqual({ code: 0, signal: null });
    const last = run.output.stdout.trim().split("\n").at(-1) ?? "";
    expect(JSON.parse(last)).toMatchObject({ id: "é 1", result: { resultType: "complete" } });
  });

  test("a token that is not good is told as an error of the request", async () => {
    const run = start({ LONGLINE_TOKEN: "nonsense" });
    run.child.stdin?.write(
      line({
        id: 7,
        method: "initialize",
        params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "t", version: "1" } },
      }),
    );
    const answer = JSON.parse(await run.line("stdout", () => true)) as { error: { message: string } };
    expect(answer).toMatchObject({ id: 7, error: { data: { reason: "not_authorised" } } });
    expect(answer.error.message).toContain("access token");
    expect(run.output.stdout + run.output.stderr).not.toContain("nonsense");
    await run.stop();
  });
});
