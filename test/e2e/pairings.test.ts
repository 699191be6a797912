/** Input requests in all four pairings of eras, over a real relay, agent and upstream (design section 6). */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { altered } from "../support/altered.ts";
import { modernRequest, readMessages } from "../support/clients.ts";
import { LegacySession, toolValue, type Answering } from "../support/legacy-session.ts";
import { eventually } from "../support/processes.ts";
import { rawUpstream, type RawUpstream } from "../support/raw-upstream.ts";
import { startStack, type Stack } from "../support/stack.ts";

type Json = Record<string, unknown>;
const ALL = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };
const KINDS = ["form", "url", "sampling", "roots"] as const;

/** What a client says to each question, by method and mode. */
const ANSWERS: Record<(typeof KINDS)[number], Json> = {
  form: { action: "accept", content: { name: "Ada" } },
  url: { action: "accept" },
  sampling: { role: "assistant", content: { type: "text", text: "pong" }, model: "m", stopReason: "endTurn", "x-unknown": 1.5 },
  roots: { roots: [{ uri: "file:///work", name: "work" }] },
};

function kindOf(request: { method: string; params?: Json | undefined }): (typeof KINDS)[number] {
  if (request.method === "sampling/createMessage") return "sampling";
  if (request.method === "roots/list") return "roots";
  return request.params?.["mode"] === "url" ? "url" : "form";
}
const answering: Answering = (request) => ANSWERS[kindOf(request)];

const CAPABILITY_OF = { form: "elicitation", url: "elicitation", sampling: "sampling", roots: "roots" } as const;
/** What a client declares, what it lacks, and the question that needs it. */
const LACKING: [object, object, (typeof KINDS)[number]][] = [
  [{}, { elicitation: { form: {} } }, "form"],
  [{ elicitation: { form: {} } }, { elicitation: { url: {} } }, "url"],
  [{ elicitation: {} }, { sampling: {} }, "sampling"],
  [{ elicitation: {}, sampling: {} }, { roots: {} }, "roots"],
];

interface Round {
  resultType: string;
  inputRequests: Record<string, { method: string; params?: Json }>;
  requestState?: string;
}

/** A modern client that answers by hand. */
class ModernCaller {
  readonly stack: Stack;
  readonly token: string;
  constructor(stack: Stack, token = stack.token) {
    this.stack = stack;
    this.token = token;
  }

  /** One request; its status and its answer. */
  async once(tool: string, args: Json, more: Json = {}, capabilities: object = ALL): Promise<{ status: number; answer: Json }> {
    const request = modernRequest(this.token, "tools/call", { name: tool, arguments: args, ...more }, { capabilities });
    const response = await fetch(this.stack.mcpUrl, request);
    const [answer = {}, ...others] = await readMessages(response);
    expect(others).toEqual([]);
    return { status: response.status, answer };
  }

  /** One request that is answered by questions. */
  async asked(tool: string, args: Json, more: Json = {}): Promise<Round> {
    const { answer } = await this.once(tool, args, more);
    const result = answer["result"] as Round | undefined;
    expect(result?.resultType, JSON.stringify(answer)).toBe("input_required");
    return result as Round;
  }

  /** A call with all its rounds; also the questions of each. */
  async call(tool: string, args: Json, answer: (request: { method: string; params?: Json }) => Json = (r) => ANSWERS[kindOf(r)]) {
    const rounds: Round[] = [];
    let more: Json = {};
    for (;;) {
      const { answer: message } = await this.once(tool, args, more);
      const result = message["result"] as Round | undefined;
      if (result?.resultType !== "input_required") return { value: toolValue(message), message, rounds };
      rounds.push(result);
      const responses = Object.entries(result.inputRequests).map(([key, request]) => [key, answer(request)]);
      more = { inputResponses: Object.fromEntries(responses), requestState: result.requestState };
    }
  }
}

describe.each(["legacy", "modern"] as const)("with a %s upstream", (era) => {
  let upstream: RawUpstream;
  let stack: Stack;
  beforeAll(async () => {
    upstream = await rawUpstream(era);
    stack = await startStack({ agent: upstream.agent, alsoStop: [upstream] });
  });
  afterAll(() => stack?.stop());

  describe("and a modern client", () => {
    test.each(KINDS)("%s is asked and answered", async (kind) => {
      const { value, rounds } = await new ModernCaller(stack).call("ask", { kinds: [kind] });
      expect(rounds).toHaveLength(1);
      const [request] = Object.values(rounds[0]?.inputRequests ?? {});
      expect(kindOf(request as { method: string })).toBe(kind);
      expect(request?.params ?? {}).not.toHaveProperty("elicitationId");
      expect(value).toMatchObject({ [kind]: ANSWERS[kind] });
    });

    test("several inputs come in one round", async () => {
      const { value, rounds } = await new ModernCaller(stack).call("ask", { kinds: ["form", "sampling", "roots"] });
      expect(rounds.map((round) => Object.values(round.inputRequests).map(kindOf))).toEqual([["form", "sampling", "roots"]]);
      expect(value).toMatchObject({ form: ANSWERS.form, sampling: ANSWERS.sampling, roots: ANSWERS.roots });
    });

    test("two rounds in one call, each with its own answer", async () => {
      const answers: Json[] = [
        { action: "accept", content: { name: "1" } },
        { action: "accept", content: { name: "2" } },
      ];
      let seen = 0;
      const { value, rounds } = await new ModernCaller(stack).call("two_rounds", {}, () => answers[seen++] as Json);
      expect(value).toEqual(answers);
      expect(rounds.map((round) => Object.values(round.inputRequests).map((r) => r.params?.["message"]))).toEqual([["first"], ["second"]]);
      expect(rounds[0]?.requestState).not.toBe(rounds[1]?.requestState);
    });

    test.each(["decline", "cancel"])("an answer of %s reaches the tool", async (action) => {
      const { value } = await new ModernCaller(stack).call("ask", { kinds: ["form"] }, () => ({ action }));
      expect(value).toMatchObject({ form: { action } });
    });

    test.each(LACKING)(
      "a client with %j is not asked for what it lacks: -32021 names %j",
      async (capabilities, requiredCapabilities, kind) => {
        for (const how of ["error", "result"]) {
          const { status, answer } = await new ModernCaller(stack).once("need", { kinds: [kind], how }, {}, capabilities);
          expect(status).toBe(400);
          expect(answer).toMatchObject({ id: 1, error: { code: -32021, data: { requiredCapabilities } } });
          if (era === "legacy") expect(JSON.stringify(answer)).toContain("Cannot go on");
        }
      },
    );
  });

  describe("and a legacy client", () => {
    test.each(KINDS)("%s is asked on the call's stream and answered by POST", async (kind) => {
      const session = await LegacySession.open(stack.mcpUrl, stack.token, ALL);
      const { value, before, contentType } = await session.callTool("ask", { kinds: [kind] }, answering);
      expect(contentType).toBe("text/event-stream");
      expect(before.map((request) => kindOf(request as { method: string }))).toEqual([kind]);
      if (kind === "url") expect(before[0]?.["params"]).toHaveProperty("elicitationId", expect.any(String));
      expect(value).toMatchObject({ [kind]: ANSWERS[kind] });
    });

    test("several inputs are asked side by side, and answered in any order", async () => {
      const session = await LegacySession.open(stack.mcpUrl, stack.token, ALL);
      const kinds = ["form", "sampling", "roots"];
      const held: (() => void)[] = [];
      const exchange = session.request("tools/call", { name: "ask", arguments: { kinds } }, async (request) => {
        // The last question is answered first; the others when it is.
        const answer = { ...ANSWERS[kindOf(request)] };
        if (held.length < 2) {
          void new Promise<void>((resolve) => held.push(resolve)).then(() =>
            session.post({ jsonrpc: "2.0", id: request.id, result: answer }),
          );
          return undefined;
        }
        held.toReversed().forEach((release) => release());
        return answer;
      });
      const { answer } = await exchange;
      expect(toolValue(answer)).toMatchObject({ form: ANSWERS.form, sampling: ANSWERS.sampling, roots: ANSWERS.roots });
    });

    test("two rounds in one call", async () => {
      const session = await LegacySession.open(stack.mcpUrl, stack.token, ALL);
      const { value, before } = await session.callTool("two_rounds", {}, (request) => ({
        action: "accept",
        content: { name: `to ${String(request.params?.["message"])}` },
      }));
      expect(before.map((request) => (request["params"] as Json)["message"])).toEqual(["first", "second"]);
      expect(new Set(before.map((request) => request["id"])).size).toBe(2);
      expect(value).toEqual([
        { action: "accept", content: { name: "to first" } },
        { action: "accept", content: { name: "to second" } },
      ]);
    });

    test.each(["decline", "cancel"])("an answer of %s reaches the tool", async (action) => {
      const session = await LegacySession.open(stack.mcpUrl, stack.token, ALL);
      const { value } = await session.callTool("ask", { kinds: ["form"] }, () => ({ action }));
      expect(value).toMatchObject({ form: { action } });
    });

    test("an answer nobody waits for is 202 and changes nothing", async () => {
      const session = await LegacySession.open(stack.mcpUrl, stack.token, ALL);
      const { value } = await session.callTool("ask", { kinds: ["form"] }, async (request) => {
        for (const id of ["never-asked", `${request.id}x`, 7]) {
          const { status } = await session.post({ jsonrpc: "2.0", id, result: { action: "accept", content: { name: "Mallory" } } });
          expect(status).toBe(202);
        }
        return ANSWERS.form;
      });
      expect(value).toMatchObject({ form: ANSWERS.form });
    });

    test("a client without the capability is asked nothing", async () => {
      const session = await LegacySession.open(stack.mcpUrl, stack.token, { sampling: {} });
      const { answer, before } = await session.request("tools/call", { name: "ask", arguments: { kinds: ["form"] } }, answering);
      expect(before).toEqual([]);
      if (era === "legacy") expect(toolValue(answer)).toEqual({ form: { error: expect.objectContaining({ code: -32601 }) } });
      else {
        const data = { reason: "upstream_failed", requiredCapabilities: { elicitation: { form: {} } } };
        expect(answer).toMatchObject({ error: { code: 1007, message: expect.stringContaining("elicitation/create"), data } });
      }
    });
  });

  test.each([
    ["modern", "2026-07-28"],
    ["legacy", "2025-11-25"],
    ["legacy", "2025-06-18"],
    ["legacy", "2025-03-26"],
  ] as const)("the audit says what a %s client and the upstream spoke: %s", async (client, version) => {
    const { token, grant } = await stack.relay.createToken(stack.device);
    if (client === "modern") await new ModernCaller(stack, token).once("echo", {});
    else await (await LegacySession.open(stack.mcpUrl, token, {}, version)).callTool("echo");
    const rows = await eventually("the row", async () => {
      const headers = { authorization: `Bearer ${stack.relay.ownerToken}` };
      const response = await fetch(`${stack.relay.url}/api/audit?grant=${grant}`, { headers });
      const calls = ((await response.json()) as { rows: Json[] }).rows.filter((row) => row["kind"] === "call");
      return calls.length > 0 && calls;
    });
    const upstreamProtocol = era === "modern" ? "2026-07-28" : "2025-11-25";
    expect(rows).toMatchObject([{ method: "tools/call", target: "echo", outcome: "ok", clientProtocol: version, upstreamProtocol }]);
  });
});

describe("a legacy upstream and a modern client", () => {
  let upstream: RawUpstream;
  let stack: Stack;
  beforeAll(async () => {
    upstream = await rawUpstream("legacy");
    stack = await startStack({ agent: upstream.agent, alsoStop: [upstream] });
  });
  afterAll(() => stack?.stop());

  test.each(LACKING)("with %j, a tool that can do without goes on: lacks %j", async (capabilities, _required, kind) => {
    // The upstream heard what the client declared; this one asks all the same.
    const { status, answer } = await new ModernCaller(stack).once("ask", { kinds: [kind] }, {}, capabilities);
    const code = Object.hasOwn(capabilities, CAPABILITY_OF[kind]) ? -32602 : -32601;
    expect([status, toolValue(answer)]).toEqual([200, { [kind]: { error: expect.objectContaining({ code }) } }]);
  });

  const form = { inputResponses: { a1: ANSWERS.form } };

  test("a parked call takes its answer once: a replayed state is an error and runs nothing", async () => {
    const caller = new ModernCaller(stack);
    const { inputRequests, requestState } = await caller.asked("two_rounds", {});
    const answers = { inputResponses: Object.fromEntries(Object.keys(inputRequests).map((key) => [key, ANSWERS.form])), requestState };
    const second = await caller.asked("two_rounds", {}, answers);
    const replayed = await caller.once("two_rounds", {}, answers);
    expect(replayed.answer).toMatchObject({ error: { code: -32602 } });
    const last = { inputResponses: Object.fromEntries(Object.keys(second.inputRequests).map((key) => [key, { action: "decline" }])) };
    const ended = await caller.once("two_rounds", {}, { ...last, requestState: second.requestState });
    expect(toolValue(ended.answer)).toEqual([ANSWERS.form, { action: "decline" }]);
    const late = await caller.once("two_rounds", {}, { ...last, requestState: second.requestState });
    expect(late.answer).toMatchObject({ error: { code: -32602 } });
  });

  test("a parked call is asked again when the retry answers nothing that was asked", async () => {
    const caller = new ModernCaller(stack);
    const { inputRequests, requestState } = await caller.asked("ask", { kinds: ["form"] });
    for (const inputResponses of [undefined, {}, { other: { action: "accept" } }, { [Object.keys(inputRequests)[0] ?? ""]: 7 }]) {
      const again = await caller.asked("ask", { kinds: ["form"] }, { inputResponses, requestState });
      expect(again.inputRequests).toEqual(inputRequests);
    }
    const ended = await caller.once("ask", { kinds: ["form"] }, { ...form, requestState });
    expect(toolValue(ended.answer)).toEqual({ form: ANSWERS.form });
  });

  test("a parked call does not open to a changed, a foreign or a borrowed state", async () => {
    const caller = new ModernCaller(stack);
    const { requestState = "" } = await caller.asked("ask", { kinds: ["form"] });
    const { token } = await stack.relay.createToken(stack.device);
    const tampered = altered(requestState);
    for (const [who, tool, args, state] of [
      [caller, "ask", { kinds: ["form"] }, tampered],
      [caller, "ask", { kinds: ["form", "roots"] }, requestState],
      [caller, "two_rounds", { kinds: ["form"] }, requestState],
      [new ModernCaller(stack, token), "ask", { kinds: ["form"] }, requestState],
    ] as const) {
      const { status, answer } = await who.once(tool, args, { ...form, requestState: state });
      expect(status).toBe(200);
      expect(answer).toMatchObject({ id: 1, error: { code: -32602 } });
    }
    const ended = await caller.once("ask", { kinds: ["form"] }, { ...form, requestState });
    expect(toolValue(ended.answer)).toEqual({ form: ANSWERS.form });
  });

  test("a parked call ends with its grant: the upstream hears a cancel, and the state opens nothing", async () => {
    const { token, grant } = await stack.relay.createToken(stack.device);
    const caller = new ModernCaller(stack, token);
    const before = (await upstream.seen("cancelled")).length;
    const { requestState } = await caller.asked("ask", { kinds: ["form"] });
    await fetch(`${stack.relay.url}/api/tokens/${grant}`, {
      method: "DELETE",
      headers: { authorization: `Bearer ${stack.relay.ownerToken}` },
    });
    await upstream.sees("cancelled", before + 1);
    const { status } = await caller.once("ask", { kinds: ["form"] }, { ...form, requestState });
    expect(status).toBe(401);
  });
});

test("an upstream that asks outside any call is refused at once", async () => {
  const upstream = await rawUpstream("legacy");
  const stack = await startStack({ agent: upstream.agent, alsoStop: [upstream] });
  try {
    const session = await LegacySession.open(stack.mcpUrl, stack.token, ALL);
    const { before } = await session.request("tools/call", { name: "ask_outside", arguments: {} });
    const [seen] = await upstream.sees("outside");
    expect(seen?.["answer"]).toMatchObject({ error: { code: -32601 } });
    expect(before).toEqual([]);
  } finally {
    await stack.stop();
  }
});
