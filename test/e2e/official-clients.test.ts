/** Official clients of both generations and the Inspector's command line, input requests included, on upstreams of both eras. */
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
  type ElicitResult,
} from "@modelcontextprotocol/sdk/types.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connectV1, connectV2 } from "../support/clients.ts";
import { startProcess } from "../support/processes.ts";
import { rawUpstream } from "../support/raw-upstream.ts";
import { startStack, type Stack } from "../support/stack.ts";

const INSPECTOR = new URL("../../node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js", import.meta.url).pathname;
const CAPABILITIES = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };
const KINDS = ["form", "url", "sampling", "roots"];
const SAMPLED = { role: "assistant" as const, content: { type: "text" as const, text: "pong" }, model: "m" };
const ROOTS = { roots: [{ uri: "file:///work", name: "work" }] };
const elicited = (mode: unknown): ElicitResult => (mode === "url" ? { action: "accept" } : { action: "accept", content: { name: "Ada" } });
const EXPECTED = { form: elicited("form"), url: elicited("url"), sampling: SAMPLED, roots: ROOTS };

interface Asking {
  ask(kinds: readonly string[]): Promise<unknown>;
  close(): Promise<void>;
}

const read = (result: object): unknown => JSON.parse((result as { content: { text: string }[] }).content[0]?.text ?? "null");

async function askingV1(stack: Stack): Promise<Asking> {
  const client = await connectV1(stack.mcpUrl, stack.token, CAPABILITIES);
  client.setRequestHandler(ElicitRequestSchema, (request) => elicited(request.params.mode));
  client.setRequestHandler(CreateMessageRequestSchema, () => SAMPLED);
  client.setRequestHandler(ListRootsRequestSchema, () => ROOTS);
  return {
    ask: async (kinds) => read(await client.callTool({ name: "ask", arguments: { kinds } })),
    close: () => client.close(),
  };
}

async function askingV2(stack: Stack, mode?: Parameters<typeof connectV2>[2]): Promise<Asking> {
  const client = await connectV2(stack.mcpUrl, stack.token, mode, CAPABILITIES);
  client.setRequestHandler("elicitation/create", (request) => elicited(request.params.mode));
  client.setRequestHandler("sampling/createMessage", () => SAMPLED);
  client.setRequestHandler("roots/list", () => ROOTS);
  return {
    ask: async (kinds) => read(await client.callTool({ name: "ask", arguments: { kinds } })),
    close: () => client.close(),
  };
}

describe.each(["legacy", "modern"] as const)("with a %s upstream", (era) => {
  let stack: Stack;
  beforeAll(async () => {
    const upstream = await rawUpstream(era);
    stack = await startStack({ agent: upstream.agent, alsoStop: [upstream] });
  });
  afterAll(() => stack?.stop());

  test.each([
    ["sdk 1.x", () => askingV1(stack)],
    ["client 2.x, default", () => askingV2(stack)],
    ["client 2.x, auto", () => askingV2(stack, "auto")],
    ["client 2.x, pinned to 2026-07-28", () => askingV2(stack, { pin: "2026-07-28" })],
  ] as const)("%s answers elicitation in both modes, sampling and roots, alone and together", async (_name, connect) => {
    const client = await connect();
    for (const kind of KINDS) expect(await client.ask([kind])).toMatchObject({ [kind]: EXPECTED[kind as keyof typeof EXPECTED] });
    expect(await client.ask(KINDS)).toMatchObject(EXPECTED);
    await client.close();
  });

  /** Runs the Inspector's command line without a terminal and without settings of the person who runs the tests. */
  async function inspector(protocol: string, ...args: string[]): Promise<{ code: number | null; stdout: string; stderr: string }> {
    const target = ["--cli", stack.mcpUrl, "--transport", "http", "--header", `Authorization: Bearer ${stack.token}`];
    const run = startProcess(process.execPath, [INSPECTOR, ...target, "--protocol-era", protocol, ...args], {
      env: { HOME: stack.relay.dataDir, MCP_CATALOG_PATH: `${stack.relay.dataDir}/inspector.json` },
    });
    const { code } = await run.ended(60_000);
    return { code, ...run.output };
  }

  test.each(["legacy", "auto", "modern"])(
    "the Inspector, --protocol-era %s, lists, calls, is asked for roots, and hears errors",
    async (protocol) => {
      const listed = await inspector(protocol, "--method", "tools/list");
      expect(listed.code, listed.stderr).toBe(0);
      expect((JSON.parse(listed.stdout) as { tools: { name: string }[] }).tools.map((tool) => tool.name)).toContain("echo");
      const called = await inspector(protocol, "--method", "tools/call", "--tool-name", "echo", "--tool-arg", "n=1");
      expect(read(JSON.parse(called.stdout) as object)).toMatchObject({ args: { n: 1 } });
      const asked = await inspector(protocol, "--method", "tools/call", "--tool-name", "ask", "--tool-args-json", '{"kinds":["roots"]}');
      expect(read(JSON.parse(asked.stdout) as object)).toMatchObject({ roots: { roots: [] } });
      const missing = await inspector(protocol, "--method", "resources/read", "--uri", "raw://gone");
      expect(missing.code).not.toBe(0);
      expect(missing.stderr).toContain("No such resource");
    },
  );
});
