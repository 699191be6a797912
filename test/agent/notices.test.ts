import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { CATALOGUE, UPSTREAM } from "../../src/limits.ts";
import { payloadText } from "../../src/tunnel/codec.ts";
import { legacyClient } from "../support/fake-relay.ts";
import { eventually } from "../support/processes.ts";
import { connected, fixture, script, stateDir } from "./harness.ts";
import { rawServer } from "./raw-server.ts";

const T = { method: "tools/call", target: "t" } as const;

function textIn(payload: string): string {
  return (JSON.parse(payload) as { content: [{ text: string }] }).content[0].text;
}

/** Logs at every level while a call runs; tells which levels it was set to. */
const LOGGING = rawServer(`
  server.capabilities = { tools: {}, logging: {} };
  tool((m) => {
    for (const level of ["debug", "info", "error"]) send({ method: "notifications/message", params: { level, data: level } });
    reply(m.id, text(JSON.stringify(seen.filter((s) => s.method === "logging/setLevel").map((s) => s.params.level))));
  });
`);

describe("logs", () => {
  test("come at a call's own level, and the instance is set to the most verbose wanted", async () => {
    const { agent } = await connected([script(LOGGING)]);
    const run = async (logLevel?: string) => {
      const callId = agent.call({ ...T, client: legacyClient(), ...(logLevel === undefined ? {} : { logLevel }) });
      const { payload } = await agent.outcome(callId);
      const events = agent.messages
        .filter(({ frame }) => frame.type === "event")
        .map((event) => (JSON.parse(payloadText(event.payload)) as { data: string }).data);
      agent.messages.length = 0;
      return { events, levels: JSON.parse(textIn(payload)) as string[] };
    };
    await agent.next("catalogue");
    expect(await run("error")).toEqual({ events: ["error"], levels: ["error"] });
    expect(await run()).toEqual({ events: [], levels: ["error"] });
    expect(await run("info")).toEqual({ events: ["info", "error"], levels: ["error", "info"] });
    expect(await run("error")).toEqual({ events: ["error"], levels: ["error", "info"] });
  });

  test("on a shared instance reach nobody while two grants' calls are in flight", async () => {
    const code = rawServer(`
      server.capabilities = { tools: {}, logging: {} };
      let first;
      tool((m) => {
        if (!first) { first = m; return; }
        send({ method: "notifications/message", params: { level: "error", data: "whose?" } });
        reply(first.id, text(1)); reply(m.id, text(2));
      });`);
    const { agent } = await connected([script(code, { isolation: "shared" })]);
    const calls = ["a", "b"].map((grant) =>
      agent.call({ ...T, client: legacyClient(), logLevel: "debug", caller: { grant, label: "l", member: "m" } }),
    );
    for (const callId of calls) await agent.outcome(callId);
    expect(agent.messages.filter(({ frame }) => frame.type === "event")).toEqual([]);
  });

  test("of the modern fixture come only when the call set a level", async () => {
    const { agent } = await connected([fixture()]);
    const quiet = agent.call({ method: "tools/call", target: "test_logging_tool" }, { arguments: {} });
    await agent.outcome(quiet);
    const loud = agent.call({ method: "tools/call", target: "test_logging_tool", logLevel: "info" }, { arguments: {} });
    await agent.outcome(loud);
    const events = agent.messages.filter(({ frame }) => frame.type === "event");
    expect(events.map(({ frame }) => "callId" in frame && frame.callId)).toEqual([loud]);
  });
});

describe("changes", () => {
  test("a changed list is told, and the new catalogue follows", async () => {
    const code = rawServer(`
      server.capabilities = { tools: { listChanged: true } };
      tool((m) => { server.tools = [...server.tools, { name: "new", inputSchema: { type: "object" } }]; send({ method: "notifications/tools/list_changed" }); reply(m.id, text("ok")); });`);
    const { agent } = await connected([script(code, { isolation: "shared" })]);
    const { frame: before } = await agent.next("catalogue");
    await agent.outcome(agent.call(T));
    expect((await agent.next("changed")).frame).toMatchObject({ what: "tools" });
    const { frame, payload } = await agent.next("catalogue");
    expect(frame.digest).not.toBe(before.digest);
    expect((JSON.parse(String(payload)) as { tools: { name: string }[] }).tools.map((tool) => tool.name)).toEqual(["t", "new"]);
  });

  test.each([0, 1])("%i tools over the bound: the catalogue holds what it may, and the agent says what it left out", async (over) => {
    const count = CATALOGUE.maxTools + over;
    const code = rawServer(
      `server.tools = Array.from({ length: ${count} }, (_, n) => ({ name: "t" + n, inputSchema: { type: "object" } }));`,
    );
    const { agent, events } = await connected([script(code)]);
    const { payload } = await agent.next("catalogue");
    const text = payloadText(payload);
    expect((JSON.parse(text) as { tools: unknown[] }).tools).toHaveLength(CATALOGUE.maxTools);
    const warnings = events.filter((event) => event.type === "warning");
    expect(warnings).toEqual(over === 0 ? [] : [{ type: "warning", message: "1 items do not fit into the catalogue and are left out" }]);
  });

  test("the modern fixture's notice arrives through its subscription", async () => {
    const { agent } = await connected([fixture()]);
    await agent.next("catalogue");
    await agent.outcome(agent.call({ method: "tools/call", target: "test_trigger_prompt_change" }, { arguments: {} }));
    expect((await agent.next("changed")).frame).toMatchObject({ what: "prompts" });
  });

  test("notices that a server sends by habit after its handshake change nothing", async () => {
    const code = rawServer(`
      server.capabilities = { tools: { listChanged: true } };
      on("notifications/initialized", () => send({ method: "notifications/tools/list_changed" }));
      tool((m) => reply(m.id, text("ok")));`);
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"], shouldAdvanceTime: true });
    try {
      const { agent } = await connected([script(code)]);
      await agent.next("catalogue");
      // A child of its own for the grant, which sends the notice before it answers.
      await agent.outcome(agent.call({ ...T, client: legacyClient() }));
      vi.advanceTimersByTime(UPSTREAM.refreshMs);
      // The lists are read on the first instance; two round trips on it after that show that they were.
      for (const probeId of ["1", "2"]) {
        agent.send({ type: "probe", probeId });
        await agent.next("pong");
      }
      expect(agent.messages.filter(({ frame }) => frame.type === "changed")).toEqual([]);
    } finally {
      vi.useRealTimers();
    }
  });
});

describe("resource subscriptions", () => {
  const code = rawServer(`
    server.capabilities = { tools: {}, resources: { subscribe: true } };
    on("resources/subscribe", (m) => reply(m.id, {})); on("resources/unsubscribe", (m) => reply(m.id, {}));
    tool((m) => {
      for (const uri of ["u:1", "u:2"]) send({ method: "notifications/resources/updated", params: { uri } });
      reply(m.id, text(JSON.stringify(seen.filter((s) => s.method?.includes("subscribe")).map((s) => [s.method, s.params.uri]))));
    });`);

  test("are asked for once however often the relay repeats itself, and updates come only for what is wanted", async () => {
    const { agent } = await connected([script(code, { isolation: "shared" })]);
    const change = async (method: string) => (await agent.outcome(agent.call({ method, target: "u:1" }))).frame;
    expect(await change("resources/subscribe")).toMatchObject({ type: "result" });
    expect(await change("resources/subscribe")).toMatchObject({ type: "result" });
    const first = await agent.outcome(agent.call(T));
    expect(JSON.parse(textIn(first.payload))).toEqual([["resources/subscribe", "u:1"]]);
    expect((await agent.next("changed")).frame).toMatchObject({ what: "resource", uri: "u:1" });
    await change("resources/unsubscribe");
    await change("resources/unsubscribe");
    const second = await agent.outcome(agent.call(T));
    expect(JSON.parse(textIn(second.payload))).toEqual([
      ["resources/subscribe", "u:1"],
      ["resources/unsubscribe", "u:1"],
    ]);
    expect(agent.messages.filter(({ frame }) => frame.type === "changed")).toEqual([]);
  });

  test("of a grant with an instance of its own are asked for there too, and what that one sees is the grant's alone", async () => {
    const { agent } = await connected([script(code)]);
    const by = (grant: string) => ({ client: legacyClient(), caller: { grant, label: "l", member: "m" } });
    const change = async (method: string, target: string, grant: string) => {
      expect((await agent.outcome(agent.call({ method, target, ...by(grant) }))).frame).toMatchObject({ type: "result" });
    };
    const askedOf = async (grant: string) =>
      JSON.parse(textIn((await agent.outcome(agent.call({ ...T, ...by(grant) }))).payload)) as unknown;
    const told = () => agent.messages.splice(0).flatMap(({ frame }) => (frame.type === "changed" ? [[frame.grant, frame.uri]] : []));
    await agent.next("catalogue");
    // Before its instance is there, and while it is.
    await change("resources/subscribe", "u:1", "a");
    expect(await askedOf("a")).toEqual([["resources/subscribe", "u:1"]]);
    expect(told()).toEqual([["a", "u:1"]]);
    await change("resources/subscribe", "u:2", "a");
    await change("resources/subscribe", "u:1", "b");
    expect(await askedOf("b")).toEqual([["resources/subscribe", "u:1"]]);
    expect(told()).toEqual([["b", "u:1"]]);
    await change("resources/unsubscribe", "u:1", "a");
    expect(await askedOf("a")).toEqual([
      ["resources/subscribe", "u:1"],
      ["resources/subscribe", "u:2"],
      ["resources/unsubscribe", "u:1"],
    ]);
    expect(told()).toEqual([["a", "u:2"]]);
    // For nobody: also the grants that the relay has forgotten.
    await change("resources/unsubscribe", "u:1", "");
    expect(await askedOf("b")).toEqual([
      ["resources/subscribe", "u:1"],
      ["resources/unsubscribe", "u:1"],
    ]);
    expect(told()).toEqual([]);
  });

  test("hold their grant's own instance, which else ends when it is idle", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"], shouldAdvanceTime: true });
    try {
      const pids = rawServer(`
        server.capabilities = { tools: {}, resources: { subscribe: true } };
        on("resources/subscribe", (m) => reply(m.id, {})); on("resources/unsubscribe", (m) => reply(m.id, {}));
        tool((m) => reply(m.id, text(process.pid)));`);
      const { agent } = await connected([script(pids)]);
      const client = legacyClient();
      const pid = async () => textIn((await agent.outcome(agent.call({ ...T, client }))).payload);
      const first = await pid();
      await agent.outcome(agent.call({ method: "resources/subscribe", target: "u:1", client }));
      vi.advanceTimersByTime(UPSTREAM.idleMs);
      expect(await pid()).toBe(first);
      await agent.outcome(agent.call({ method: "resources/unsubscribe", target: "u:1", client }));
      vi.advanceTimersByTime(UPSTREAM.idleMs);
      expect(await pid()).not.toBe(first);
    } finally {
      vi.useRealTimers();
    }
  });

  test("of a modern server are a stream that names them", async () => {
    const modern = rawServer(`
      isModern(); server.capabilities = { tools: {}, resources: { subscribe: true } };
      on("resources/list", (m) => reply(m.id, { resultType: "complete", resources: [], ttlMs: 0, cacheScope: "private" }));
      on("resources/templates/list", (m) => reply(m.id, { resultType: "complete", resourceTemplates: [], ttlMs: 0, cacheScope: "private" }));
      let listen;
      on("subscriptions/listen", (m) => { listen = m; send({ method: "notifications/subscriptions/acknowledged", params: { notifications: m.params.notifications, _meta: { "io.modelcontextprotocol/subscriptionId": m.id } } }); });
      tool((m) => {
        send({ method: "notifications/resources/updated", params: { uri: "u:1", _meta: { "io.modelcontextprotocol/subscriptionId": listen.id } } });
        reply(m.id, { resultType: "complete", ...text(JSON.stringify(listen.params.notifications)) });
      });`);
    const { agent } = await connected([script(modern)]);
    await agent.outcome(agent.call({ method: "resources/subscribe", target: "u:1" }));
    const { payload } = await agent.outcome(agent.call(T));
    expect(JSON.parse(textIn(payload))).toEqual({ resourceSubscriptions: ["u:1"] });
    expect((await agent.next("changed")).frame).toMatchObject({ what: "resource", uri: "u:1" });
  });

  test("that a modern server ends are opened again", async () => {
    const modern = rawServer(`
      isModern(); server.capabilities = { tools: {}, resources: { subscribe: true } };
      on("resources/list", (m) => reply(m.id, { resultType: "complete", resources: [], ttlMs: 0, cacheScope: "private" }));
      on("resources/templates/list", (m) => reply(m.id, { resultType: "complete", resourceTemplates: [], ttlMs: 0, cacheScope: "private" }));
      const listens = [];
      const meta = (m) => ({ _meta: { "io.modelcontextprotocol/subscriptionId": m.id } });
      on("subscriptions/listen", (m) => {
        listens.push(m.params.notifications);
        send({ method: "notifications/subscriptions/acknowledged", params: { notifications: m.params.notifications, ...meta(m) } });
        if (listens.length === 1) reply(m.id, { resultType: "complete", ...meta(m) });
      });
      tool((m) => reply(m.id, { resultType: "complete", ...text(JSON.stringify(listens)) }));`);
    const { agent } = await connected([script(modern)]);
    await agent.outcome(agent.call({ method: "resources/subscribe", target: "u:1" }));
    const wanted = { resourceSubscriptions: ["u:1"] };
    await eventually("a second stream", async () => {
      const { payload } = await agent.outcome(agent.call(T));
      return (JSON.parse(textIn(payload)) as unknown[]).length > 1;
    });
    const { payload } = await agent.outcome(agent.call(T));
    expect(JSON.parse(textIn(payload))).toEqual([wanted, wanted]);
  });

  test("of an upstream that refuses are not kept", async () => {
    const { agent } = await connected([
      script(
        rawServer(`server.capabilities = { tools: {}, resources: { subscribe: true } }; tool((m) => {
        send({ method: "notifications/resources/updated", params: { uri: "u:1" } }); reply(m.id, text("ok")); });`),
        { isolation: "shared" },
      ),
    ]);
    expect((await agent.outcome(agent.call({ method: "resources/subscribe", target: "u:1" }))).frame).toMatchObject({ code: -32601 });
    await agent.outcome(agent.call(T));
    expect(agent.messages.filter(({ frame }) => frame.type === "changed")).toEqual([]);
  });

  test("bring what was updated while no link was there, on the next one", async () => {
    const dir = stateDir();
    const [go, gone] = [join(dir, "go"), join(dir, "gone")];
    const watching = rawServer(`
      import { existsSync, writeFileSync } from "node:fs";
      server.capabilities = { tools: {}, resources: { subscribe: true } };
      on("resources/subscribe", (m) => {
        reply(m.id, {});
        const timer = setInterval(() => {
          if (!existsSync(${JSON.stringify(go)})) return;
          clearInterval(timer);
          send({ method: "notifications/resources/updated", params: { uri: "u:1/part" } });
          process.stdout.write("", () => writeFileSync(${JSON.stringify(gone)}, ""));
        }, 5);
      });`);
    const { relay, agent } = await connected([script(watching, { isolation: "shared" })]);
    await agent.outcome(agent.call({ method: "resources/subscribe", target: "u:1" }));
    relay.options = { refuse: 503 };
    agent.cut();
    await relay.dialled(2);
    writeFileSync(go, "");
    await eventually("the update", () => existsSync(gone));
    relay.options = {};
    const { agent: again } = await relay.agent();
    expect((await again.next("changed")).frame).toMatchObject({ what: "resource", uri: "u:1/part" });
  });
});
