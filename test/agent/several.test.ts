/** Several upstreams behind one agent: one table of names, and another configuration while calls run. */
import { describe, expect, test } from "vitest";
import type { UpstreamConfig } from "../../src/agent/types.ts";
import { payloadText } from "../../src/tunnel/codec.ts";
import { eventually } from "../support/processes.ts";
import { legacyClient, type AgentSocket } from "../support/fake-relay.ts";
import { connected, fixture, script } from "./harness.ts";
import { rawServer } from "./raw-server.ts";

type Extra = Partial<Extract<UpstreamConfig, { kind: "stdio" }>>;
interface Body {
  discover: { capabilities: object; instructions?: string; prefixes?: object };
  tools: { name: string; big?: unknown }[];
  resources: { uri: string }[];
}

/** A server whose tools say who they are and what they were called. */
function named(alias: string, tools: readonly string[], extra: Extra & { body?: string } = {}): UpstreamConfig {
  const { body = "", ...config } = extra;
  const code = rawServer(
    `${body}
     server.tools = ${JSON.stringify(tools)}.map((name) => ({ name, inputSchema: { type: "object" } }));
     tool((m) => reply(m.id, text(${JSON.stringify(alias)} + ":" + m.params.name)));`,
  );
  return script(code, { alias, isolation: "shared", ...config });
}

/** The newest catalogue once it fits. */
async function catalogue(agent: AgentSocket, fits: (body: Body) => boolean): Promise<Body> {
  for (;;) {
    const { payload } = await agent.next("catalogue");
    const body = JSON.parse(payloadText(payload)) as Body;
    if (fits(body)) return body;
  }
}

async function call(agent: AgentSocket, target: string, more: object = {}) {
  const { frame, payload } = await agent.outcome(agent.call({ method: "tools/call", target, ...more }, { arguments: {} }));
  return { frame, text: frame.type === "result" ? (JSON.parse(payload) as { content: { text: string }[] }).content[0]?.text : undefined };
}

const names = ({ tools }: Body) => tools.map(({ name }) => name);

describe("names", () => {
  test("stay as they are, or get a prefix; calls reach their owner under its own name", async () => {
    const { agent } = await connected([named("a", ["one"]), named("b", ["one", "shell"], { prefix: "x_" }), fixture()]);
    const body = await catalogue(agent, (it) => it.tools.length > 5);
    expect(names(body)).toEqual(expect.arrayContaining(["one", "x_one", "x_shell", "test_simple_text"]));
    expect(body.discover.prefixes).toEqual({ names: ["x_"], resources: [] });
    expect((await call(agent, "one")).text).toBe("a:one");
    expect((await call(agent, "x_one", { names: ["one"] })).text).toBe("b:one");
    expect((await call(agent, "one", { client: legacyClient() })).text).toBe("a:one");
    expect((await call(agent, "test_simple_text")).text).toContain("text");
    expect((await call(agent, "nobody")).frame).toMatchObject({ type: "error", origin: "upstream", code: -32602 });
  });

  test("under a prefix are refused when the relay did not decide by the upstream's own name", async () => {
    const { agent } = await connected([named("a", ["one"]), named("b", ["shell"], { prefix: "x_" })]);
    await catalogue(agent, (it) => it.tools.length === 2);
    for (const others of [undefined, [], ["other"]])
      expect((await call(agent, "x_shell", others && { names: others })).frame).toMatchObject({
        reason: "refused_by_device",
        outcome: "not_started",
      });
    expect((await call(agent, "x_shell", { names: ["shell"] })).text).toBe("b:shell");
  });

  test("that two have belong to the first; status and log name both, and all else works", async () => {
    const { agent, handle, events } = await connected([named("a", ["same", "mine"]), named("b", ["same", "other"])]);
    expect(names(await catalogue(agent, (it) => it.tools.length === 3))).toEqual(["same", "mine", "other"]);
    expect((await call(agent, "same")).text).toBe("a:same");
    expect((await call(agent, "other")).text).toBe("b:other");
    const problem = handle.state().upstreams.find(({ alias }) => alias === "b")?.problem;
    expect(problem).toMatch(/"same" of b .* a has one/);
    expect(events).toContainEqual({ type: "warning", message: problem });
  });

  test("keep the item as its server wrote it", async () => {
    const body = `on("tools/list", (m) => process.stdout.write('{"jsonrpc":"2.0","id":' + JSON.stringify(m.id) + ',"result":{"tools":[{"big":12345678901234567890,"name":"t","inputSchema":{"type":"object"}}]}}\\n'));`;
    const code = rawServer(body);
    const { agent } = await connected([script(code, { prefix: "p_", isolation: "shared" })]);
    const { payload } = await agent.next("catalogue");
    expect(payloadText(payload)).toContain('{"big":12345678901234567890,"name":"p_t","inputSchema":{"type":"object"}}');
    const listed = await agent.outcome(agent.call({ method: "tools/list" }));
    expect(listed.payload).toContain("12345678901234567890");
  });
});

describe("resources, prompts and completion", () => {
  const files = `
    server.capabilities = { tools: {}, resources: { subscribe: true }, prompts: {}, completions: {} };
    server.tools = [];
    on("resources/list", (m) => reply(m.id, { resources: [{ uri: "file:///a", name: "a" }] }));
    on("resources/templates/list", (m) => reply(m.id, { resourceTemplates: [{ uriTemplate: "note:///{name}", name: "n" }] }));
    on("prompts/list", (m) => reply(m.id, { prompts: [{ name: "plan" }] }));
    on("prompts/get", (m) => reply(m.id, { messages: [{ role: "user", content: { type: "resource", resource: { uri: "file:///p", text: m.params.name } } }] }));
    on("resources/read", (m) => reply(m.id, { contents: [{ uri: m.params.uri, text: "T" }] }));
    on("completion/complete", (m) => reply(m.id, { completion: { values: [JSON.stringify(m.params.ref)] } }));
    on("resources/subscribe", (m) => { reply(m.id, {}); send({ method: "notifications/resources/updated", params: { uri: m.params.uri } }); });
    tool((m) => reply(m.id, { content: [{ type: "resource_link", uri: "file:///l", name: "l" }, { type: "resource_link", uri: "https://x.example/", name: "w" }] }));`;
  const prefixed = { names: ["file:///a", "note:///b", "note:///{name}", "plan", "file:///nowhere"] };

  test("go by the table, by templates, and by the only server that can be meant; addresses in results are public", async () => {
    const { agent } = await connected([
      named("a", ["one"]),
      script(rawServer(files), { alias: "files", isolation: "shared", prefix: "f_", resourcePrefix: "files+" }),
    ]);
    const body = await catalogue(agent, (it) => it.resources.length === 1);
    expect(body.resources[0]?.uri).toBe("files+file:///a");
    const read = async (target: string) => (await agent.outcome(agent.call({ method: "resources/read", target, ...prefixed }))).payload;
    expect(await read("files+file:///a")).toContain('"uri":"files+file:///a"');
    expect(await read("files+note:///b")).toContain('"uri":"files+note:///b"');
    expect(await read("files+file:///nowhere")).toContain('"uri":"files+file:///nowhere"');
    const prompt = await agent.outcome(agent.call({ method: "prompts/get", target: "f_plan", ...prefixed }));
    expect(prompt.payload).toContain('"uri":"files+file:///p","text":"plan"');
    const ref = { type: "ref/resource", uri: "files+note:///{name}" };
    const completion = await agent.outcome(
      agent.call({ method: "completion/complete", ref, ...prefixed }, { argument: { name: "name", value: "" } }),
    );
    expect(completion.payload).toContain(String.raw`{\"type\":\"ref/resource\",\"uri\":\"note:///{name}\"}`);
    const link = await agent.outcome(agent.call({ method: "tools/call", target: "f_hidden", names: ["hidden"] }, {}));
    expect(link.payload).toContain('"uri":"files+file:///l"');
    expect(link.payload).toContain('"uri":"https://x.example/"');
    await agent.outcome(agent.call({ method: "resources/subscribe", target: "files+file:///a", ...prefixed }));
    expect((await agent.next("changed", ({ what }) => what === "resource")).frame).toMatchObject({ uri: "files+file:///a" });
  });

  test("capabilities are joined, and instructions stand under their aliases", async () => {
    const say = (text: string) =>
      `on("initialize", (m) => reply(m.id, { protocolVersion: m.params.protocolVersion, capabilities: { tools: { listChanged: true } }, serverInfo: { name: "raw", version: "1" }, instructions: ${JSON.stringify(text)} }));`;
    const { agent } = await connected([
      named("a", ["one"], { body: say("Be kind.") }),
      script(rawServer(files), { alias: "files", isolation: "shared" }),
    ]);
    const { discover } = await catalogue(agent, (it) => it.resources.length === 1 && it.tools.length === 1);
    expect(discover.capabilities).toMatchObject({ tools: { listChanged: true }, resources: { subscribe: true }, completions: {} });
    expect(discover.instructions).toBe("## a\n\nBe kind.");
  });
});

describe("another configuration", () => {
  const slow = `tool((m) => { if (m.params.name === "wait") setTimeout(() => reply(m.id, text("waited in " + process.pid)), Number(m.params.arguments.ms)); else reply(m.id, text(String(process.pid))); });`;
  const server = (alias: string, tools: readonly string[], extra: Extra = {}) =>
    script(rawServer(`server.tools = ${JSON.stringify(tools)}.map((name) => ({ name, inputSchema: { type: "object" } })); ${slow}`), {
      alias,
      isolation: "shared",
      ...extra,
    });

  test("leaves what is the same alone, with its calls, and keeps the link", async () => {
    const same = server("a", ["wait", "pid"]);
    const { relay, agent, handle } = await connected([same, server("b", ["b1"])]);
    await catalogue(agent, (it) => it.tools.length === 3);
    const { text: pid } = await call(agent, "pid");
    const running = agent.call({ method: "tools/call", target: "wait" }, { arguments: { ms: 600 } });
    await agent.next("ack", ({ callId }) => callId === running);
    handle.reconfigure([server("c", ["c1"]), same]);
    expect(names(await catalogue(agent, (it) => names(it).includes("c1")))).toEqual(["c1", "wait", "pid"]);
    expect((await agent.outcome(running)).payload).toContain(`waited in ${pid}`);
    expect((await call(agent, "pid")).text).toBe(pid);
    expect((await call(agent, "c1")).text).toMatch(/^\d+$/);
    expect(relay.dials).toBe(1);
  });

  test("lets calls of what is replaced end, tells of lists only where they differ, and starts the next one after them", async () => {
    const { agent, handle } = await connected([server("a", ["wait", "pid"]), named("z", ["z"])]);
    await catalogue(agent, (it) => it.tools.length === 3);
    const { text: pid } = await call(agent, "pid");
    const running = agent.call({ method: "tools/call", target: "wait" }, { arguments: { ms: 500 } });
    await agent.next("ack", ({ callId }) => callId === running);
    agent.messages.length = 0;
    handle.reconfigure([server("a", ["wait", "pid"], { env: { CHANGED: "1" } }), named("z", ["z"])]);
    const after = await call(agent, "pid");
    expect(after.text).toMatch(/^\d+$/);
    expect(after.text).not.toBe(pid);
    expect((await agent.outcome(running)).payload).toContain(`waited in ${pid}`);
    expect(agent.messages.filter(({ frame }) => frame.type === "changed" || frame.type === "catalogue")).toEqual([]);
    handle.reconfigure([named("z", ["z"])]);
    expect((await agent.next("changed")).frame).toMatchObject({ what: "tools" });
    expect(names(await catalogue(agent, () => true))).toEqual(["z"]);
  });

  test("ends calls that take longer than the moment they have, and says that the outcome is unknown", async () => {
    const { agent, handle } = await connected([server("a", ["wait"]), named("z", ["z"])]);
    await catalogue(agent, (it) => it.tools.length === 2);
    const running = agent.call({ method: "tools/call", target: "wait" }, { arguments: { ms: 60_000 } });
    await agent.next("ack", ({ callId }) => callId === running);
    handle.reconfigure([named("z", ["z"])]);
    const { frame } = await agent.outcome(running);
    expect(frame).toMatchObject({
      reason: "upstream_failed",
      outcome: "unknown",
      message: expect.stringContaining("configuration changed"),
    });
  });

  test("changes a prefix without a restart, and moves subscriptions on", async () => {
    const watched = `server.capabilities = { tools: {}, resources: { subscribe: true } };
      on("resources/list", (m) => reply(m.id, { resources: [{ uri: "x:///a", name: "a" }] }));
      on("resources/subscribe", (m) => { reply(m.id, {}); send({ method: "notifications/resources/updated", params: { uri: m.params.uri } }); });
      tool((m) => reply(m.id, text(String(process.pid))));`;
    const config = (extra: Extra) => script(rawServer(watched), { alias: "w", isolation: "shared", ...extra });
    const { agent, handle } = await connected([config({}), named("z", ["z"])]);
    await catalogue(agent, (it) => it.tools.length === 2);
    const { text: pid } = await call(agent, "t");
    await agent.outcome(agent.call({ method: "resources/subscribe", target: "x:///a" }));
    await agent.next("changed", ({ uri }) => uri === "x:///a");
    handle.reconfigure([config({ prefix: "w_" }), named("z", ["z"])]);
    await catalogue(agent, (it) => names(it).includes("w_t"));
    expect((await call(agent, "w_t", { names: ["t"] })).text).toBe(pid);
    handle.reconfigure([config({ prefix: "w_", env: { CHANGED: "1" } }), named("z", ["z"])]);
    await agent.next("changed", ({ uri }) => uri === "x:///a");
    await eventually("another process", async () => (await call(agent, "w_t", { names: ["t"] })).text !== pid);
  });
});
