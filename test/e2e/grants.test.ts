/** What a grant lets through while the device changes behind it, and how soon a change of the grant counts. */
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { runAgent } from "../../src/agent/run-agent.ts";
import type { AgentHandle, BuiltinTool, UpstreamConfig } from "../../src/agent/types.ts";
import { modernRequest, readMessages } from "../support/clients.ts";
import { within } from "../support/deadline.ts";
import { temporaryDir } from "../support/processes.ts";
import { type RelayProcess, startRelay } from "../support/relay-process.ts";

type Token = Awaited<ReturnType<RelayProcess["createToken"]>>;

let relay: RelayProcess;
let home: Awaited<ReturnType<typeof temporaryDir>>;
let deviceKey: string;
let agent: AgentHandle | undefined;
const ran: string[] = [];

beforeAll(async () => {
  home = await temporaryDir();
  relay = await startRelay();
  ({ deviceKey } = await relay.addDevice("bench"));
});
afterEach(async () => await agent?.stop("the test is over"));
afterAll(async () => {
  await relay.stop();
  await home.remove();
});

function upstream(alias: string, names: readonly string[]): UpstreamConfig {
  const tool = (name: string): BuiltinTool => ({
    name,
    description: name,
    inputSchema: { type: "object" },
    run: () => {
      ran.push(`${alias}.${name}`);
      return { content: [{ type: "text", text: `${alias}.${name}` }] };
    },
  });
  return { kind: "builtin", alias, tools: names.map(tool) };
}

/** The device online with these upstreams, the same installation each time. */
async function online(...upstreams: UpstreamConfig[]): Promise<void> {
  await agent?.stop("other upstreams");
  await within(
    10_000,
    "the device online",
    new Promise<void>((resolve, reject) => {
      const log = (event: { type: string }): void => (event.type === "online" ? resolve() : undefined);
      const options = { relay: new URL(relay.url), deviceKey, stateDir: join(home.path, "state"), upstreams, log };
      runAgent(options).then((handle) => (agent = handle), reject);
    }),
  );
}

async function ask({ mcpUrl, token }: Token, method: string, params: Record<string, unknown> = {}) {
  const response = await fetch(mcpUrl, modernRequest(token, method, params));
  const [message = {}] = (await readMessages(response)).slice(-1);
  return { status: response.status, text: JSON.stringify(message), message };
}

async function tools(token: Token): Promise<string[]> {
  const { message } = await ask(token, "tools/list");
  return (message["result"] as { tools: { name: string }[] }).tools.map((tool) => tool.name);
}

async function change(grant: string, body: Record<string, unknown>): Promise<void> {
  const headers = { Authorization: `Bearer ${relay.ownerToken}`, "Content-Type": "application/json" };
  const response = await fetch(`${relay.url}/api/tokens/${grant}`, { method: "PATCH", headers, body: JSON.stringify(body) });
  expect(response.status).toBe(200);
}

describe("a second upstream", () => {
  test("opens nothing that `* !shell` excludes, whoever offers it and in whatever order", async () => {
    const token = await relay.createToken("bench", ["--tools", "*,!shell"]);
    const [one, two] = [upstream("one", ["echo", "shell"]), upstream("two", ["shell", "lamp"])];
    await online(one);
    expect(await tools(token)).toEqual(["echo"]);
    for (const both of [
      [one, two],
      [two, one],
    ]) {
      await online(...both);
      expect((await tools(token)).toSorted()).toEqual(["echo", "lamp"]);
      const refused = await ask(token, "tools/call", { name: "shell", arguments: {} });
      expect(refused.message).toMatchObject({ error: { code: -32602 } });
      expect((await ask(token, "tools/call", { name: "lamp", arguments: {} })).text).toContain("two.lamp");
    }
    expect(ran.filter((name) => name.endsWith(".shell"))).toEqual([]);
  });

  test("opens nothing to a grant that names its tools", async () => {
    const token = await relay.createToken("bench", ["--tools", "echo"]);
    await online(upstream("one", ["echo"]), upstream("two", ["lamp"]));
    expect(await tools(token)).toEqual(["echo"]);
    expect((await ask(token, "tools/call", { name: "lamp", arguments: {} })).status).toBe(403);
  });
});

test("each change of a grant counts from the next call", async () => {
  const token = await relay.createToken("bench");
  const echo = (): Promise<{ status: number; text: string }> => ask(token, "tools/call", { name: "echo", arguments: {} });
  await online(upstream("one", ["echo", "lamp"]));
  expect((await echo()).text).toContain("one.echo");
  await change(token.grant, { callsPerMinute: 1 });
  expect((await echo()).text).toContain("one.echo");
  expect((await echo()).text).toContain("limited to 1");
  await change(token.grant, { callsPerMinute: null });
  expect((await echo()).text).toContain("one.echo");
  await change(token.grant, { rights: { tools: ["lamp"] } });
  expect((await echo()).status).toBe(403);
  expect(await tools(token)).toEqual(["lamp"]);
  await change(token.grant, { rights: { tools: ["*", "!echo"] } });
  expect((await echo()).text).toContain("-32602");
  await change(token.grant, { rights: { tools: ["echo"] } });
  expect((await echo()).text).toContain("one.echo");
  await change(token.grant, { paused: true });
  expect((await echo()).status).toBe(401);
  await change(token.grant, { paused: false });
  expect((await echo()).text).toContain("one.echo");
});
