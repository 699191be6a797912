/** Callers that share a legacy upstream, in both isolation modes (design section 6, "Upstream instances"). */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { modernRequest, readMessages } from "../support/clients.ts";
import { EventReader } from "../support/event-reader.ts";
import { LegacySession, toolValue } from "../support/legacy-session.ts";
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

  test("two grants with modern clients are asked at the same time, and each answer reaches its own call", async () => {
    type Asked = { result: { inputRequests?: Record<string, unknown>; requestState?: string } };
    const ask = async (token: string, more: object = {}) => {
      const params = { name: "ask", arguments: { kinds: ["form"] }, ...more };
      const response = await fetch(stack.mcpUrl, modernRequest(token, "tools/call", params, { capabilities: ALL }));
      return (await readMessages(response)).at(-1);
    };
    const asked = (await Promise.all([ask(stack.token), ask(other)])) as [unknown, unknown] as [Asked, Asked];
    if (isolation === "shared") {
      for (const answer of asked) expect(toolValue({ ...answer })).toMatchObject({ form: { error: { code: -32601 } } });
      return;
    }
    const answered = async (token: string, { result }: Asked, name: string) => {
      const inputResponses = Object.fromEntries(Object.keys(result.inputRequests ?? {}).map((key) => [key, accept(name)]));
      return toolValue(await ask(token, { inputResponses, requestState: result.requestState }));
    };
    expect(await answered(other, asked[1], "Bob")).toEqual({ form: accept("Bob") });
    expect(await answered(stack.token, asked[0], "Ada")).toEqual({ form: accept("Ada") });
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

  test("an update reaches whoever subscribed and can see it, and one caller's end is not another's", async () => {
    const ada = await LegacySession.open(stack.mcpUrl, stack.token);
    const atAda = await ada.stream();
    await ada.request("resources/subscribe", { uri: "raw://a" });
    const filter = { notifications: { resourceSubscriptions: ["raw://a"] } };
    const atBob = new EventReader(await fetch(stack.mcpUrl, modernRequest(other, "subscriptions/listen", filter)));
    expect(await atBob.next()).toMatchObject({ method: "notifications/subscriptions/acknowledged" });
    const bobTouches = async (uri: string): Promise<void> => {
      const response = await fetch(stack.mcpUrl, modernRequest(other, "tools/call", { name: "touch", arguments: { uri } }));
      expect(await response.text()).toContain("done");
    };
    const update = (uri: string) => expect.objectContaining({ params: expect.objectContaining({ uri }) });

    await ada.callTool("touch", { uri: "raw://a/1" });
    expect(await atAda.next()).toEqual(update("raw://a/1"));
    if (isolation === "shared") expect(await atBob.next()).toEqual(update("raw://a/1"));
    // With a process for each, what changed in one is nobody else's: the next that each hears of is its own.
    await bobTouches("raw://a/2");
    expect(await atBob.next()).toEqual(update("raw://a/2"));
    if (isolation === "shared") expect(await atAda.next()).toEqual(update("raw://a/2"));
    await ada.request("resources/unsubscribe", { uri: "raw://a" });
    await bobTouches("raw://a/3");
    expect(await atBob.next()).toEqual(update("raw://a/3"));
    await ada.request("resources/subscribe", { uri: "raw://b" });
    await ada.callTool("touch", { uri: "raw://b" });
    expect(await atAda.next()).toEqual(update("raw://b"));
    for (const reader of [atAda, atBob]) await reader.cancel();
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
