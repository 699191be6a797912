/** The reference stdio server of both eras behind the relay: each row of its table that a relay can keep or break. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { dynosaiUpstream, type DynosaiUpstream } from "../devices/dynosai-process.ts";
import { isObject, META, objectAt, type Json } from "../devices/json.ts";
import { connectV1, connectV2, modernRequest, readMessages } from "../support/clients.ts";
import { EventReader } from "../support/event-reader.ts";
import { LegacySession } from "../support/legacy-session.ts";
import { answerOf, postTool } from "../support/modern-call.ts";
import { eventually } from "../support/processes.ts";
import { messagesOf } from "../support/sse-messages.ts";
import { startStack, type Stack } from "../support/stack.ts";

const FORM = { elicitation: { form: {} } };
const APPROVE = { action: "accept", content: { decision: "approve" } };
const NEXT = "dynosai_get_next_action";

let upstream: DynosaiUpstream;
let stack: Stack;
beforeAll(async () => {
  upstream = await dynosaiUpstream();
  stack = await startStack({ agent: upstream.agent, alsoStop: [upstream] });
});
afterAll(() => stack?.stop());

const post = async (method: string, params: Json = {}, options: Parameters<typeof modernRequest>[3] = {}): Promise<Json> =>
  (await readMessages(await fetch(stack.mcpUrl, modernRequest(stack.token, method, params, options)))).at(-1) ?? {};
const call = async (name: string, args: Json = {}, options: Parameters<typeof postTool>[3] = {}): Promise<Json> =>
  await answerOf(await postTool(stack, name, args, options));
const structured = (answer: Json | undefined): Json => objectAt(objectAt(answer, "result"), "structuredContent");
const names = (answer: Json): unknown[] => (objectAt(answer, "result")["tools"] as Json[]).map((tool) => tool["name"]);
/** What the server was told, of one method. */
const told = async (method: string): Promise<{ pid: number; line: Json }[]> =>
  (await upstream.told()).filter((one): one is { pid: number; line: Json } => isObject(one.line) && one.line["method"] === method);

describe("its eras", () => {
  test("each process hears one era only, whatever callers do at the same time", async () => {
    const session = await LegacySession.open(stack.mcpUrl, stack.token, FORM);
    const work = async (): Promise<void> => {
      await session.callTool("dynosai_board");
      await call("dynosai_board");
    };
    await Promise.all([work(), work()]);
    const eras = new Map<number, Set<string>>();
    for (const { pid, line } of await upstream.told()) {
      if (!isObject(line) || line["id"] === undefined || line["method"] === undefined) continue;
      const isModern = objectAt(objectAt(line, "params"), "_meta")[META.protocolVersion] !== undefined;
      eras.set(pid, (eras.get(pid) ?? new Set()).add(isModern ? "modern" : "legacy"));
    }
    expect(eras.size).toBeGreaterThan(1);
    for (const spoken of eras.values()) expect(spoken.size).toBe(1);
  });

  test("discovery is private at the relay, though the server calls it public for an hour", async () => {
    const { result } = (await post("server/discover")) as { result: Json };
    expect(result).toMatchObject({
      cacheScope: "private",
      instructions: "Provider-neutral guidance.",
      capabilities: { tools: { listChanged: true } },
      _meta: { [META.serverInfo]: { name: "dynosai-flow", version: "1.0.0rc9" } },
    });
    expect(result["ttlMs"]).toBeLessThanOrEqual(60_000);
  });

  test.each(["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"])(
    "a client of %s shakes hands, also at a version the server refuses",
    async (version) => {
      const session = await LegacySession.open(stack.mcpUrl, stack.token, {}, version);
      const { answer } = await session.callTool("dynosai_git_status");
      expect(structured(answer)).toEqual({ accepted: true, tool: "dynosai_git_status" });
      expect(answer?.["result"]).not.toHaveProperty("resultType");
    },
  );

  test("a request without metadata, a forged version, and initialize at the stateless version never reach it", async () => {
    const before = (await upstream.told()).length;
    const send = async (body: Json, headers: Record<string, string>): Promise<[number, Json]> => {
      const usual: Record<string, string> = modernRequest(stack.token, String(body["method"])).headers;
      const response = await fetch(stack.mcpUrl, {
        method: "POST",
        headers: { ...usual, ...headers },
        body: JSON.stringify({ jsonrpc: "2.0", id: 1, ...body }),
      });
      return [response.status, (await response.json()) as Json];
    };
    expect(await send({ method: "tools/list", params: {} }, {})).toMatchObject([400, { error: { code: -32602 } }]);
    const meta = { [META.protocolVersion]: "2027-01-01", [META.clientCapabilities]: {} };
    expect(await send({ method: "tools/list", params: { _meta: meta } }, { "mcp-protocol-version": "2027-01-01" })).toMatchObject([
      400,
      { error: { code: -32022 } },
    ]);
    expect(await send({ method: "ping", params: { _meta: { ...meta, [META.protocolVersion]: "2026-07-28" } } }, {})).toMatchObject([
      404,
      { error: { code: -32601 } },
    ]);
    expect(await upstream.told()).toHaveLength(before);
  });

  test("a vendor's _meta without a version reaches it in a legacy session as it is", async () => {
    const session = await LegacySession.open(stack.mcpUrl, stack.token);
    const params = { name: "dynosai_board", arguments: {}, _meta: { "com.example/turn": { id: 7 } } };
    expect((await session.request("tools/call", params)).answer).toMatchObject({ result: { isError: false } });
    const seen = (await told("tools/call")).map(({ line }) => objectAt(objectAt(line, "params"), "_meta"));
    expect(seen).toContainEqual({ "com.example/turn": { id: 7 } });
  });
});

describe("a person's approval, for a modern caller", () => {
  const withForm = { capabilities: FORM };
  const gateOf = (answer: Json): string => {
    expect(answer).toMatchObject({ result: { resultType: "input_required" } });
    return Object.keys(objectAt(objectAt(answer, "result"), "inputRequests"))[0] ?? "";
  };

  test("is asked as the server asks it, under its key, and the answer goes back with nothing added", async () => {
    const args = { work_id: "M-1" };
    const first = await call(NEXT, args, withForm);
    const gate = gateOf(first);
    expect(gate).toMatch(/^dynosai-gate-INT-\d+$/);
    expect(objectAt(first, "result")).toMatchObject({
      inputRequests: { [gate]: { method: "elicitation/create", params: { mode: "form", message: "Approve the plan?" } } },
    });
    const inputResponses = { [gate]: APPROVE };
    const second = await call(NEXT, args, { ...withForm, id: "again", params: { inputResponses } });
    expect(second).toMatchObject({ id: "again", result: { structuredContent: { next_action: "implement" } } });
    const params = objectAt((await told("tools/call")).at(-1)?.line, "params");
    expect(params["inputResponses"]).toEqual(inputResponses);
    expect(params).not.toHaveProperty("requestState");
  });

  test("forged, repeated or of another work is refused by the server, in its own words", async () => {
    const args = { work_id: "M-2" };
    const gate = gateOf(await call(NEXT, args, withForm));
    const answer = async (inputResponses: Json, work = "M-2"): Promise<Json> =>
      objectAt(await call(NEXT, { work_id: work }, { ...withForm, params: { inputResponses } }), "error");
    expect(await answer({ "dynosai-gate-INT-999": APPROVE })).toMatchObject({ code: -32602, data: { reason: "unknown_interaction" } });
    expect(await answer({ other: APPROVE })).toMatchObject({ code: -32602, data: { reason: "invalid_input_request_key" } });
    expect(await answer({ [gate]: APPROVE }, "M-3")).toMatchObject({ code: -32602, data: { reason: "interaction_work_mismatch" } });
    expect(await answer({ [gate]: { action: "accept", content: {} } })).toMatchObject({ data: { reason: "invalid_interaction_content" } });
    expect(await answer({ [gate]: APPROVE })).toEqual({});
    const id = gate.replace("dynosai-gate-", "");
    expect(await answer({ [gate]: APPROVE })).toMatchObject({
      data: { reason: "interaction_not_pending", interaction_id: id, status: "accepted" },
    });
  });

  test("is not asked of one that cannot show it; capabilities of an earlier request do not count", async () => {
    const args = { work_id: "M-4" };
    gateOf(await call(NEXT, args, withForm));
    const answer = await call(NEXT, args);
    expect(answer).toMatchObject({ result: { resultType: "complete", isError: false } });
    expect(structured(answer)).toMatchObject({ human_interaction: { status: "pending" } });
  });

  test("is asked by the 2.x client itself", async () => {
    const client = await connectV2(stack.mcpUrl, stack.token, "auto", FORM);
    client.setRequestHandler("elicitation/create", () => APPROVE as { action: "accept"; content: { decision: string } });
    const result = await client.callTool({ name: NEXT, arguments: { work_id: "M-5" } });
    expect(result.structuredContent).toMatchObject({ next_action: "implement" });
    await client.close();
  });
});

describe("a person's approval, for a legacy caller", () => {
  test("is a request on its call's stream, and the answer reaches the server under the server's own string id", async () => {
    const session = await LegacySession.open(stack.mcpUrl, stack.token, FORM);
    const { before, answer } = await session.callTool(NEXT, { work_id: "L-1" }, () => APPROVE);
    expect(before).toMatchObject([{ method: "elicitation/create", params: { mode: "form", message: "Approve the plan?" } }]);
    expect(structured(answer)).toMatchObject({ next_action: "implement" });
    const answers = (await upstream.told()).map(({ line }) => line).filter((line) => isObject(line) && line["method"] === undefined);
    expect(answers.at(-1)).toMatchObject({ id: expect.stringMatching(/^dynosai-elicitation-\d+$/), result: APPROVE });
  });

  test.each([
    ["declined", { action: "decline" }],
    ["cancelled", { action: "cancel" }],
    ["answered with an error", { error: { code: -32000, message: "no window" } }],
  ])("that is %s approves nothing", async (_how, reply) => {
    const session = await LegacySession.open(stack.mcpUrl, stack.token, FORM);
    const { answer } = await session.callTool(NEXT, { work_id: `L-${_how}` }, () => reply);
    expect(structured(answer)).toMatchObject({ human_interaction: { status: "pending" } });
  });

  test("may take its time: other callers and other calls are served meanwhile", async () => {
    const session = await LegacySession.open(stack.mcpUrl, stack.token, FORM);
    const params = { name: NEXT, arguments: { work_id: "L-2" } };
    const response = await session.post({ jsonrpc: "2.0", id: "gate", method: "tools/call", params });
    for await (const { message } of messagesOf(response)) {
      if (!("method" in message)) {
        expect(message).toMatchObject({ id: "gate", result: { structuredContent: { next_action: "implement" } } });
        continue;
      }
      const plain = await LegacySession.open(stack.mcpUrl, stack.token);
      expect(structured((await plain.callTool("dynosai_board")).answer)).toMatchObject({ accepted: true });
      expect(structured(await call("dynosai_board"))).toMatchObject({ accepted: true });
      await session.post({ jsonrpc: "2.0", id: message["id"], result: APPROVE });
    }
  });

  test("is not asked of one that did not declare it", async () => {
    const session = await LegacySession.open(stack.mcpUrl, stack.token);
    const { before, answer } = await session.callTool(NEXT, { work_id: "L-3" });
    expect(before).toEqual([]);
    expect(structured(answer)).toMatchObject({ human_interaction: { status: "pending" } });
  });
});

describe("its results", () => {
  test("a failure it does not flag stays as it is, text and structure", async () => {
    const missing = await call(NEXT);
    expect(objectAt(missing, "result")).toMatchObject({
      isError: false,
      structuredContent: {
        accepted: false,
        error_type: "tool_input_validation",
        message: "missing required argument(s): work_id",
        repair_required: true,
      },
    });
    const thrown = await call("dynosai_ask");
    expect(objectAt(thrown, "result")).toMatchObject({ isError: false, structuredContent: { isError: true, error_type: "RuntimeError" } });
    expect(objectAt(thrown, "result")["content"]).toEqual([{ type: "text", text: JSON.stringify(structured(thrown)) }]);
    expect(structured(await call("dynosai_read", { reads: Array.from({ length: 9 }, () => "a") }))).toMatchObject({
      message: "at most 8 reads",
    });
  });

  test("the client's name reaches it, so that Codex gets its short text", async () => {
    const answer = await call(
      "dynosai_board",
      { n: 1 },
      { meta: { "io.modelcontextprotocol/clientInfo": { name: "codex", version: "1" } } },
    );
    expect(objectAt(answer, "result")).toMatchObject({
      content: [{ text: '{"accepted":true}' }],
      structuredContent: { tool: "dynosai_board", n: 1 },
    });
  });

  test("a tool that is dispatched and not listed can be called", async () => {
    expect(names(await post("tools/list"))).not.toContain("dynosai_get_symbol");
    expect(structured(await call("dynosai_get_symbol"))).toEqual({ accepted: true, tool: "dynosai_get_symbol" });
  });

  test("a call it cannot cancel is over for its caller all the same, and the next one is answered", async () => {
    const session = await LegacySession.open(stack.mcpUrl, stack.token);
    const validations = async (): Promise<unknown[]> =>
      (await told("tools/call")).filter(({ line }) => objectAt(line, "params")["name"] === "dynosai_run_validation");
    const waiting = session.request("tools/call", { name: "dynosai_run_validation", arguments: { ms: 500 } }, undefined, "slow");
    await eventually("the call to arrive", async () => (await validations()).length === 1);
    await session.post({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: "slow" } });
    expect((await waiting).answer).toBeUndefined();
    await eventually("the device to hear of it", async () => (await told("notifications/cancelled")).length === 1);
    expect(structured((await session.callTool("dynosai_stats")).answer)).toEqual({ accepted: true, tool: "dynosai_stats" });
  });

  test("it is never sent a line that is no message", async () => {
    expect((await upstream.told()).filter(({ line }) => typeof line === "string")).toEqual([]);
  });
});

describe("its list of tools", () => {
  test("is in its order, private and for now, and shrinks with the phase: listeners are told, and the next list is right", async () => {
    const before = await post("tools/list");
    expect(objectAt(before, "result")).toMatchObject({ ttlMs: 0, cacheScope: "private" });
    expect(names(before)).toHaveLength(29);
    expect(names(before).slice(0, 3)).toEqual(["dynosai_project", "dynosai_work", "dynosai_resume"]);
    const listen = modernRequest(stack.token, "subscriptions/listen", { notifications: { toolsListChanged: true } }, { id: "L" });
    const reader = new EventReader(await fetch(stack.mcpUrl, listen));
    expect(await reader.next()).toMatchObject({ method: "notifications/subscriptions/acknowledged" });
    expect(structured(await call("dynosai_start"))).toMatchObject({ accepted: true });
    expect(await reader.next()).toMatchObject({ method: "notifications/tools/list_changed" });
    await reader.cancel();
    expect(names(await post("tools/list"))).toHaveLength(13);
    const client = await connectV1(stack.mcpUrl, stack.token);
    expect((await client.listTools()).tools.map((tool) => tool.name)).toEqual(names(await post("tools/list")));
    await client.close();
    // Its own dispatcher still knows them.
    expect(structured(await call("dynosai_schedule"))).toEqual({ accepted: true, tool: "dynosai_schedule" });
  });
});
