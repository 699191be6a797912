/** Callers that share a legacy upstream, in both isolation modes (design section 6, "Upstream instances"). */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { LegacySession } from "../support/legacy-session.ts";
import { rawUpstream, type RawUpstream } from "../support/raw-upstream.ts";
import { startStack, type Stack } from "../support/stack.ts";

const ALL = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };
const accept = (name: string) => ({ action: "accept", content: { name } });

describe.each(["grant", "shared"] as const)("isolation: %s", (isolation) => {
  let upstream: RawUpstream;
  let stack: Stack;
  let other: string;
  beforeAll(async () => {
    upstream = await rawUpstream("legacy", ["--isolation", isolation]);
    stack = await startStack({ agent: upstream.agent, alsoStop: [upstream] });
    other = (await stack.relay.createToken(stack.device)).token;
  });
  afterAll(() => stack?.stop());

  test("two grants run an eliciting call at the same time, and neither sees or answers the other's", async () => {
    const [ada, bob] = await Promise.all([
      LegacySession.open(stack.mcpUrl, stack.token, ALL),
      LegacySession.open(stack.mcpUrl, other, ALL),
    ]);
    // In one mode each waits until both were asked; in the other nobody is.
    const bothAsked = Promise.withResolvers<void>();
    let asked = 0;
    const answering = (name: string) => async () => {
      asked += 1;
      if (asked === 2) bothAsked.resolve();
      await bothAsked.promise;
      return accept(name);
    };
    const [one, two] = await Promise.all([
      ada.callTool("ask", { kinds: ["form"] }, answering("Ada")),
      bob.callTool("ask", { kinds: ["form"] }, answering("Bob")),
    ]);
    if (isolation === "grant") {
      expect([one.value, two.value]).toEqual([{ form: accept("Ada") }, { form: accept("Bob") }]);
      expect([one.before.length, two.before.length]).toEqual([1, 1]);
      return;
    }
    // A shared instance declares no input to the server; one that asks all the same is refused or asks its one candidate.
    expect([one.before, two.before]).toEqual([[], []]);
    const refused = { form: { error: expect.objectContaining({ code: -32601 }) } };
    expect([one.value, two.value]).toEqual([refused, refused]);
  });

  test("the log level of one grant does not change another's", async () => {
    const [ada, bob] = await Promise.all([LegacySession.open(stack.mcpUrl, stack.token), LegacySession.open(stack.mcpUrl, other)]);
    const levels = async (session: LegacySession): Promise<unknown[]> => {
      const { before } = await session.callTool("chatter", { count: 4 });
      return before.map((message) => (message["params"] as { level: string }).level);
    };
    await ada.request("logging/setLevel", { level: "debug" });
    await bob.request("logging/setLevel", { level: "error" });
    expect(await levels(ada)).toEqual(["info", "warning", "error", "debug"]);
    expect(await levels(bob)).toEqual(["error"]);
    expect(await levels(ada)).toEqual(["info", "warning", "error", "debug"]);
  });

  test("two calls with one id, one token and one session get their own answers and progress", async () => {
    const session = await LegacySession.open(stack.mcpUrl, stack.token);
    const call = (count: number) =>
      session.request("tools/call", { name: "chatter", arguments: { count, pauseMs: 20 }, _meta: { progressToken: 1 } }, undefined, 1);
    const [three, five] = await Promise.all([call(3), call(5)]);
    const totals = (exchange: typeof three): unknown[] =>
      exchange.before
        .filter((message) => message["method"] === "notifications/progress")
        .map((m) => (m["params"] as { total: number }).total);
    expect(totals(three)).toEqual([3, 3, 3]);
    expect(totals(five)).toEqual([5, 5, 5, 5, 5]);
    expect([three.answer, five.answer]).toMatchObject([{ id: 1 }, { id: 1 }]);
  });
});
