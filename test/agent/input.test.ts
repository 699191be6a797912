import { describe, expect, test, vi } from "vitest";
import { CALL } from "../../src/limits.ts";
import { payloadText } from "../../src/tunnel/codec.ts";
import { legacyClient, type AgentSocket } from "../support/fake-relay.ts";
import { connected, fixture, script } from "./harness.ts";
import { rawServer } from "./raw-server.ts";

const T = { method: "tools/call", target: "t" } as const;
const modernClient = (capabilities: Record<string, unknown>) => ({ era: "modern" as const, protocol: "2026-07-28", capabilities });

function textIn(payload: string): string {
  return (JSON.parse(payload) as { content: [{ text: string }] }).content[0].text;
}

/** Asks once and returns what it was answered. */
const ASKING = rawServer(`
  tool(async (m) => {
    const a = m.params.arguments;
    if (a.report) return reply(m.id, text(JSON.stringify(seen.filter((s) => s.method === undefined && s.id !== undefined))));
    reply(m.id, text(JSON.stringify([a.who ?? null, await ask(a.method ?? "elicitation/create", { message: a.who ?? "?" })])));
  });
`);

async function nextAsk(agent: AgentSocket, callId: string): Promise<{ askId: string; method: string; params: unknown; seq: number }> {
  const { frame, payload } = await agent.next("ask", (ask) => ask.callId === callId);
  return { askId: frame.askId, method: frame.method, seq: frame.seq, params: JSON.parse(payloadText(payload)) };
}

describe("a legacy server's requests", () => {
  test.each([
    ["a legacy caller", legacyClient({ elicitation: {} })],
    ["a modern caller", modernClient({ elicitation: {} })],
  ])("go to %s as an ask, and the answer comes back as it is", async (_who, client) => {
    const { agent } = await connected([script(ASKING)]);
    const callId = agent.call({ ...T, client }, { arguments: { who: "me" } });
    const ask = await nextAsk(agent, callId);
    expect(ask).toMatchObject({ method: "elicitation/create", params: { message: "me" }, seq: 1 });
    agent.send({ type: "answer", callId, askId: ask.askId, kind: "result" }, '{"action":"accept","content":{"n":1}}');
    const { payload } = await agent.outcome(callId);
    expect(JSON.parse(textIn(payload))).toEqual(["me", { action: "accept", content: { n: 1 } }]);
  });

  test("an error for an answer reaches the server as one", async () => {
    const { agent } = await connected([script(ASKING)]);
    const callId = agent.call({ ...T, client: legacyClient({ sampling: {} }) }, { arguments: { method: "sampling/createMessage" } });
    const { askId } = await nextAsk(agent, callId);
    agent.send({ type: "answer", callId, askId, kind: "error" }, '{"code":-1,"message":"no"}');
    expect(JSON.parse(textIn((await agent.outcome(callId)).payload))).toEqual([null, { code: -1, message: "no" }]);
  });

  test("two grants that are asked at the same time each get their own question and answer", async () => {
    const { agent } = await connected([script(ASKING)]);
    const calls = ["a", "b"].map((grant) => ({
      grant,
      id: agent.call(
        { ...T, client: legacyClient({ elicitation: {} }), caller: { grant, label: "l", member: "m" } },
        { arguments: { who: grant } },
      ),
    }));
    for (const { grant, id } of calls.toReversed()) {
      const ask = await nextAsk(agent, id);
      expect(ask.params).toEqual({ message: grant });
      agent.send(
        { type: "answer", callId: id, askId: ask.askId, kind: "result" },
        JSON.stringify({ action: "accept", content: { grant } }),
      );
    }
    for (const { grant, id } of calls) {
      expect(JSON.parse(textIn((await agent.outcome(id)).payload))).toEqual([grant, { action: "accept", content: { grant } }]);
    }
  });

  test("of one grant are asked one after the other, so that none can be taken for another's", async () => {
    const { agent } = await connected([script(ASKING)]);
    const client = legacyClient({ elicitation: {} });
    const [first, second] = ["1", "2"].map((who) => agent.call({ ...T, client }, { arguments: { who } })) as [string, string];
    const ask = await nextAsk(agent, first);
    expect(agent.messages.filter(({ frame }) => frame.type === "ask")).toEqual([]);
    agent.send({ type: "answer", callId: first, askId: ask.askId, kind: "result" }, '{"action":"decline"}');
    expect(JSON.parse(textIn((await agent.outcome(first)).payload))).toEqual(["1", { action: "decline" }]);
    const next = await nextAsk(agent, second);
    expect(next.params).toEqual({ message: "2" });
    agent.send({ type: "cancel", callId: second, reason: "caller_left" });
  });

  test("without a call whose client can answer are refused at once", async () => {
    const code = rawServer(`tool(async (m) => reply(m.id, text(JSON.stringify(await ask(m.params.arguments.method, {})))));`);
    for (const isolation of ["grant", "shared"] as const) {
      const { agent } = await connected([script(code, { isolation })]);
      const client = isolation === "shared" ? legacyClient({ elicitation: {} }) : legacyClient({ roots: {} });
      for (const method of ["sampling/createMessage", "x/unknown"]) {
        const { payload } = await agent.outcome(agent.call({ ...T, client }, { arguments: { method } }));
        expect(JSON.parse(textIn(payload))).toMatchObject({ code: -32601 });
      }
      expect(JSON.parse(textIn((await agent.outcome(agent.call({ ...T, client }, { arguments: { method: "ping" } }))).payload))).toEqual(
        {},
      );
    }
  });

  test("that a client cannot be asked end its call only when it is certain whose they are", async () => {
    const code = rawServer(`
      const waiting = [];
      tool(async (m) => {
        waiting.push(m);
        if (waiting.length < m.params.arguments.at) return;
        for (const one of waiting.splice(0)) void ask("roots/list", {}).then((said) => reply(one.id, { ...text(said.code), isError: true }));
      });`);
    const { agent } = await connected([script(code)]);
    const client = modernClient({});
    const alone = await agent.outcome(agent.call({ ...T, client }, { arguments: { at: 1 } }));
    expect(alone.frame).toMatchObject({
      origin: "agent",
      reason: "upstream_failed",
      data: { requiredCapabilities: { roots: {} }, upstream: { isError: true, content: [{ text: "-32601" }] } },
    });
    const two = [1, 2].map(() => agent.call({ ...T, client }, { arguments: { at: 2 } }));
    for (const callId of two) expect(JSON.parse((await agent.outcome(callId)).payload)).toMatchObject({ isError: true });
  });

  test("a shared instance declares no input capability to the server", async () => {
    const code = rawServer(
      `tool((m) => reply(m.id, text(JSON.stringify(seen.find((s) => s.method === "initialize").params.capabilities))));`,
    );
    const own = await connected([script(code)]);
    const client = legacyClient({ elicitation: { form: {} }, roots: { listChanged: true }, experimental: { x: {} } });
    expect(JSON.parse(textIn((await own.agent.outcome(own.agent.call({ ...T, client }))).payload))).toEqual({
      elicitation: { form: {} },
      roots: {},
    });
    const shared = await connected([script(code, { isolation: "shared" })]);
    expect(JSON.parse(textIn((await shared.agent.outcome(shared.agent.call({ ...T, client }))).payload))).toEqual({});
  });

  test("a cancelled call answers the server with cancel", async () => {
    const { agent } = await connected([script(ASKING)]);
    const client = legacyClient({ elicitation: {} });
    const callId = agent.call({ ...T, client }, { arguments: {} });
    await nextAsk(agent, callId);
    agent.send({ type: "cancel", callId, reason: "caller_asked" });
    const { payload } = await agent.outcome(agent.call({ ...T, client }, { arguments: { report: true } }));
    expect(JSON.parse(textIn(payload))).toMatchObject([{ result: { action: "cancel" } }]);
  });

  test("survive a cut link: the ask is listed, repeated, and can be answered", async () => {
    const { agent, relay } = await connected([script(ASKING)]);
    const callId = agent.call({ ...T, client: legacyClient({ elicitation: {} }) }, { arguments: { who: "x" } });
    const { askId } = await nextAsk(agent, callId);
    agent.cut();
    const second = await relay.agent();
    expect(second.hello.asks).toEqual([{ callId, askId }]);
    second.agent.send({ type: "attach", callId, seq: 0, offset: 0, credit: 10_000 });
    expect((await nextAsk(second.agent, callId)).askId).toBe(askId);
    second.agent.send({ type: "answer", callId, askId, kind: "result" }, '{"action":"accept"}');
    expect(JSON.parse(textIn((await second.agent.outcome(callId)).payload))).toEqual(["x", { action: "accept" }]);
  });

  test("wait for a person apart from the call's own time, and not for ever", async () => {
    const { agent } = await connected([script(ASKING)]);
    const client = legacyClient({ elicitation: {} });
    // Starts the instance, so that the short time below is the call's alone.
    await agent.outcome(agent.call({ ...T, client }, { arguments: { report: true } }));
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"], shouldAdvanceTime: true });
    try {
      const callId = agent.call({ ...T, client, timeoutMs: 2_000 }, { arguments: { who: "slow" } });
      const first = await nextAsk(agent, callId);
      vi.advanceTimersByTime(60_000);
      agent.send({ type: "answer", callId, askId: first.askId, kind: "result" }, '{"action":"accept"}');
      expect((await agent.outcome(callId)).frame.type).toBe("result");
      const expired = agent.call({ ...T, client, timeoutMs: 2_000 }, { arguments: {} });
      await nextAsk(agent, expired);
      vi.advanceTimersByTime(CALL.inputTimeoutMs);
      expect((await agent.outcome(expired)).frame).toMatchObject({
        reason: "input_expired",
        outcome: "unknown",
        data: { limitMs: CALL.inputTimeoutMs },
      });
    } finally {
      vi.useRealTimers();
    }
  });

  test("of the fixture: sampling and elicitation", async () => {
    const { agent } = await connected([fixture()]);
    const client = legacyClient({ elicitation: {}, sampling: {} });
    const elicit = agent.call({ method: "tools/call", target: "test_elicitation", client }, { arguments: { message: "Who?" } });
    const question = await nextAsk(agent, elicit);
    agent.send(
      { type: "answer", callId: elicit, askId: question.askId, kind: "result" },
      '{"action":"accept","content":{"response":"me"}}',
    );
    expect(textIn((await agent.outcome(elicit)).payload)).toContain('action=accept, content={"response":"me"}');
    const sample = agent.call({ method: "tools/call", target: "test_sampling", client }, { arguments: { prompt: "Hi" } });
    const request = await nextAsk(agent, sample);
    expect(request.method).toBe("sampling/createMessage");
    const answer = { role: "assistant", model: "m", content: { type: "text", text: "Hello" } };
    agent.send({ type: "answer", callId: sample, askId: request.askId, kind: "result" }, JSON.stringify(answer));
    expect(textIn((await agent.outcome(sample)).payload)).toBe("LLM response: Hello");
  });
});

/** Modern only: two rounds, several inputs in the first. */
const ROUNDS = rawServer(`
  isModern();
  tool((m) => {
    const { inputResponses: got, requestState: state } = m.params;
    const need = (inputRequests, requestState) => reply(m.id, { resultType: "input_required", inputRequests, requestState });
    if (m.params.arguments.wait && !state) return need(undefined, "again");
    if (!state) return need({ name: { method: "elicitation/create", params: { message: "name?" } }, roots: { method: "roots/list" } }, "s1\\u00e9");
    if (state === "s1\\u00e9") return need({ color: { method: "elicitation/create", params: { message: got.name.content.name } } }, "s2");
    reply(m.id, { resultType: "complete", ...text(JSON.stringify([got ?? null, state, m.params.arguments])) });
  });
`);

describe("a modern server's input_required", () => {
  test("passes through to a modern caller untouched", async () => {
    const { agent } = await connected([script(ROUNDS)]);
    const { frame, payload } = await agent.outcome(
      agent.call({ ...T, client: modernClient({ elicitation: {}, roots: {} }) }, { arguments: {} }),
    );
    expect(frame).toMatchObject({ type: "result", resultType: "input_required" });
    expect(JSON.parse(payload)).toMatchObject({ inputRequests: { name: { method: "elicitation/create" } }, requestState: "s1é" });
    const retry = agent.call(
      { ...T, client: modernClient({ elicitation: {} }) },
      { arguments: {}, requestState: "s2", inputResponses: { color: { action: "accept" } } },
    );
    expect(JSON.parse(textIn((await agent.outcome(retry)).payload))).toEqual([{ color: { action: "accept" } }, "s2", {}]);
  });

  test("becomes asks for a legacy caller, over two rounds within one call", async () => {
    const { agent } = await connected([script(ROUNDS)]);
    const callId = agent.call({ ...T, client: legacyClient({ elicitation: {}, roots: {} }) }, { arguments: { keep: [1] } });
    const asks = [await nextAsk(agent, callId), await nextAsk(agent, callId)];
    expect(asks.map((ask) => ask.method).toSorted()).toEqual(["elicitation/create", "roots/list"]);
    for (const { askId, method } of asks) {
      const answer = method === "roots/list" ? { roots: [] } : { action: "accept", content: { name: "Ada" } };
      agent.send({ type: "answer", callId, askId, kind: "result" }, JSON.stringify(answer));
    }
    const second = await nextAsk(agent, callId);
    expect(second.params).toEqual({ message: "Ada" });
    agent.send({ type: "answer", callId, askId: second.askId, kind: "result" }, '{"action":"decline"}');
    const { frame, payload } = await agent.outcome(callId);
    expect(frame).toMatchObject({ resultType: "complete" });
    expect(JSON.parse(textIn(payload))).toEqual([{ color: { action: "decline" } }, "s2", { keep: [1] }]);
  });

  test("with a state only is sent again after a pause", async () => {
    const { agent } = await connected([script(ROUNDS)]);
    const { payload } = await agent.outcome(agent.call({ ...T, client: legacyClient() }, { arguments: { wait: true } }));
    expect(JSON.parse(textIn(payload))).toEqual([null, "again", { wait: true }]);
  });

  test("for what the client does not offer fails and says so", async () => {
    const { agent } = await connected([script(ROUNDS)]);
    const { frame } = await agent.outcome(agent.call({ ...T, client: legacyClient({ elicitation: {} }) }, { arguments: {} }));
    expect(frame).toMatchObject({ reason: "upstream_failed", message: expect.stringContaining("roots/list") });
  });
});
