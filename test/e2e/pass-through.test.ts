/** What crosses the relay unchanged, and what must not, in all four pairings of eras (design section 5). */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { modernRequest, readMessages } from "../support/clients.ts";
import { LegacySession, toolValue } from "../support/legacy-session.ts";
import { answerOf, postTool } from "../support/modern-call.ts";
import { rawUpstream, type RawUpstream } from "../support/raw-upstream.ts";
import { messagesOf } from "../support/sse-messages.ts";
import { startStack, type Stack } from "../support/stack.ts";

type Json = Record<string, unknown>;

describe.each(["legacy", "modern"] as const)("with a %s upstream", (era) => {
  let upstream: RawUpstream;
  let stack: Stack;
  let session: LegacySession;
  beforeAll(async () => {
    upstream = await rawUpstream(era);
    stack = await startStack({ agent: upstream.agent, alsoStop: [upstream] });
    session = await LegacySession.open(stack.mcpUrl, stack.token);
  });
  afterAll(() => stack?.stop());

  /** The answer's text and value by caller. */
  async function call(caller: "legacy" | "modern", name: string, args: Json): Promise<{ status: number; text: string; answer: Json }> {
    const response =
      caller === "modern"
        ? await postTool(stack, name, args, { id: 7 })
        : await session.post({ jsonrpc: "2.0", id: 7, method: "tools/call", params: { name, arguments: args } });
    // One that took more than a second, as the first on a new child can, is an event.
    for await (const { raw, message } of messagesOf(response)) return { status: response.status, text: raw, answer: message };
    throw new Error(`no answer: ${response.status}`);
  }

  test.each(["modern", "legacy"] as const)(
    "a %s client gets results to the letter: unknown members, content types and numbers",
    async (caller) => {
      const { text, answer } = await call(caller, "odd", {});
      for (const part of [
        '"depth":1.50',
        '"x-new":{"a":[1,2]}',
        '"\\u00e9\\n\\ud83d\\ude00"',
        '"n":-0.0,"big":12345678901234567890,"tiny":1e-7',
      ]) {
        expect(text).toContain(part);
      }
      const result = answer["result"] as Json;
      expect(result["structuredContent"]).toEqual({ a: 1 });
      expect(result["_meta"]).toMatchObject({ "example.com/k": true });
      expect(result["resultType"]).toBe(caller === "modern" ? "complete" : undefined);
    },
  );

  test.each(["[1,2]", '"s"', "7", "null", "true"])(
    "structuredContent %s passes to a modern client, and is left out for a legacy one",
    async (structured) => {
      const modern = await call("modern", "odd", { structured });
      expect((modern.answer["result"] as Json)["structuredContent"]).toEqual(JSON.parse(structured));
      const legacy = await call("legacy", "odd", { structured });
      expect(legacy.answer["result"]).not.toHaveProperty("structuredContent");
      expect((legacy.answer["result"] as { content: unknown[] }).content).toHaveLength(2);
    },
  );

  test("a tool's members and schema keywords stay; an outputSchema that is no object's only for modern clients", async () => {
    const [modern = {}] = await readMessages(await fetch(stack.mcpUrl, modernRequest(stack.token, "tools/list")));
    const legacy = (await session.request("tools/list")).answer ?? {};
    const listed = (message: Json): unknown => (message["result"] as { tools: Json[] }).tools.find((tool) => tool["name"] === "listed");
    const tool = {
      name: "listed",
      title: "Listed",
      inputSchema: { type: "object", $defs: { a: { $ref: "#/$defs/a" } }, "x-unknown": 1 },
      "x-member": { deep: [null] },
    };
    expect(listed(modern)).toEqual({ ...tool, outputSchema: { type: "array" } });
    expect(listed(legacy)).toEqual(tool);
    expect(modern["result"]).toMatchObject({ resultType: "complete", ttlMs: 0, cacheScope: "private" });
    expect(legacy["result"]).not.toHaveProperty("ttlMs");
    const names = (message: Json): unknown[] => (message["result"] as { tools: Json[] }).tools.map((one) => one["name"]);
    expect(names(modern)).toEqual(names(legacy));
  });

  test("arguments and _meta reach the tool as sent: trace context and unknown keys, no token and no header of ours", async () => {
    const args = { "x-unknown": { deep: [1, null, "é"] }, name: "inner", n: 0.1 };
    const meta = { traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "example.com/k": { a: 1 } };
    const answer = await answerOf(await postTool(stack, "echo", args, { meta: { ...meta, progressToken: "mine" } }));
    const echoed = toolValue(answer) as { args: Json; meta: Json };
    expect(echoed.args).toEqual(args);
    expect(echoed.meta).toMatchObject(meta);
    // The token is the agent's own, so that two callers' equal ones stay two.
    expect(echoed.meta["progressToken"]).not.toBe("mine");
    expect(JSON.stringify(echoed)).not.toContain(stack.token);
    const envelope = "io.modelcontextprotocol/clientCapabilities";
    if (era === "modern") expect(echoed.meta[envelope]).toEqual({});
    else expect(echoed.meta).not.toHaveProperty(envelope);
  });

  test.each([
    // code, its HTTP status and code for a modern client; a legacy one gets it as it is.
    [7, 200, 7],
    [-32000, 200, -32000],
    [-32603, 200, -32603],
    [-32002, 200, -32603],
    [-32042, 200, -32603],
    [-32050, 200, -32603],
  ])("an upstream's error %i is %i/%i for a modern client and itself for a legacy one", async (code, status, shown) => {
    const data = { code: "mine", n: 1.5 };
    const modern = await call("modern", "fail", { code, data });
    expect(modern.status).toBe(status);
    expect(modern.answer).toMatchObject({
      id: 7,
      error: { code: shown, message: "The tool server says no", data: shown === code ? data : { upstream: { code, data } } },
    });
    const legacy = await call("legacy", "fail", { code, data });
    expect(legacy).toMatchObject({ status: 200, answer: { id: 7, error: { code, message: "The tool server says no", data } } });
  });

  test("a missing resource has each era's own code; an unknown tool is -32602", async () => {
    const uri = "raw://gone";
    const read = await fetch(stack.mcpUrl, modernRequest(stack.token, "resources/read", { uri }));
    expect(await read.json()).toMatchObject({ error: { code: -32602, data: { uri } } });
    expect((await session.request("resources/read", { uri })).answer).toMatchObject({ error: { code: -32002, data: { uri } } });
    for (const caller of ["modern", "legacy"] as const)
      expect((await call(caller, "gone", {})).answer).toMatchObject({ error: { code: -32602 } });
  });

  test.each(["tasks/get", "tasks/result", "tasks/list", "x-vendor/secret", "sampling/createMessage"])(
    "the method %s never reaches the device",
    async (method) => {
      const modern = await fetch(stack.mcpUrl, modernRequest(stack.token, method, {}));
      expect([modern.status, await modern.json()]).toMatchObject([404, { error: { code: -32601 } }]);
      expect((await session.request(method)).answer).toMatchObject({ error: { code: -32601 } });
    },
  );

  test("a 2025-03-26 session sends a batch and gets one array, each element with its own checks", async () => {
    const old = await LegacySession.open(stack.mcpUrl, stack.token, {}, "2025-03-26");
    expect(old.version).toBe("2025-03-26");
    const response = await old.post([
      { jsonrpc: "2.0", id: "a", method: "tools/call", params: { name: "echo", arguments: { n: 1 } } },
      { jsonrpc: "2.0", method: "notifications/initialized" },
      { jsonrpc: "2.0", id: 2, method: "ping" },
      { jsonrpc: "2.0", id: 3, method: "nope" },
      { jsonrpc: "2.0", id: 4, method: "initialize", params: {} },
      { no: "message" },
    ]);
    expect(response.status).toBe(200);
    const answers = (await response.json()) as Json[];
    expect(answers).toMatchObject([
      { id: "a", result: {} },
      { id: 2, result: {} },
      { id: 3, error: { code: -32601 } },
      { id: 4, error: { code: -32600 } },
      { error: { code: -32600 } },
    ]);
    expect(toolValue(answers[0])).toMatchObject({ args: { n: 1 } });
    expect((await session.post([{ jsonrpc: "2.0", id: 1, method: "ping" }])).status).toBe(400);
  });
});

describe("bad input while a call runs", () => {
  let upstream: RawUpstream;
  let stack: Stack;
  beforeAll(async () => {
    upstream = await rawUpstream("modern");
    stack = await startStack({ agent: upstream.agent, alsoStop: [upstream] });
  });
  afterAll(() => stack?.stop());

  test("each is answered for itself, and the call goes on", async () => {
    const running = postTool(stack, "chatter", { count: 20, pauseMs: 50 }, { meta: { progressToken: 1 } });
    const good = modernRequest(stack.token, "tools/list");
    const send = async (init: RequestInit): Promise<[number, unknown]> => {
      const response = await fetch(stack.mcpUrl, { ...good, ...init });
      const text = await response.text();
      return [response.status, text === "" ? undefined : (JSON.parse(text) as { error?: { code: unknown } }).error?.code];
    };
    const headers = (more: Record<string, string>): RequestInit => ({ headers: Object.assign({}, good.headers, more) });
    const deep = `${"[".repeat(5_000)}${"]".repeat(5_000)}`;
    const cases: [string, RequestInit, unknown][] = [
      ["no JSON", { body: "{" }, [400, -32700]],
      ["no UTF-8", { body: new Uint8Array([0x7b, 0xff, 0x7d]) }, [400, -32700]],
      ["no envelope", { body: '{"id":1,"method":"tools/list"}' }, [400, -32600]],
      ["an id that is no id", { body: '{"jsonrpc":"2.0","id":{},"method":"tools/list"}' }, [400, -32600]],
      ["an id over the cap", { body: `{"jsonrpc":"2.0","id":"${"x".repeat(2_000)}","method":"tools/list"}` }, [400, -32600]],
      ["an integer over 2^53", { body: '{"jsonrpc":"2.0","id":9007199254740993,"method":"tools/list"}' }, [400, -32600]],
      ["deep nesting", { body: `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":${deep}}` }, [400, -32600]],
      ["a response nobody asked for", { body: '{"jsonrpc":"2.0","id":1,"result":{}}' }, [400, -32600]],
      ["a batch", { body: "[]" }, [400, -32600]],
      ["a wrong content type", headers({ "content-type": "text/plain" }), [415, "unsupported_media_type"]],
      ["giant headers", headers({ "x-giant": "x".repeat(17_000) }), [431, "headers_too_large"]],
    ];
    for (const [name, init, expected] of cases) expect([name, ...(await send(init))]).toEqual([name, ...(expected as unknown[])]);
    const messages = await readMessages(await running);
    expect(messages).toHaveLength(21);
    expect(messages.at(-1)).toMatchObject({ id: 1, result: { content: [{ text: "done" }] } });
  });
});
