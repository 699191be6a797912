/** The reference board behind the relay: each row of its table that a relay can keep or break. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Board } from "../devices/board.ts";
import { one } from "../devices/http-device.ts";
import { META, MODERN, objectAt, type Json } from "../devices/json.ts";
import { connectV1, connectV2, modernRequest, readMessages } from "../support/clients.ts";
import { LegacySession } from "../support/legacy-session.ts";
import { answerOf, postTool } from "../support/modern-call.ts";
import { eventually, temporaryDir } from "../support/processes.ts";
import { longline, startAgent } from "../support/relay-process.ts";
import { startStack, type Stack } from "../support/stack.ts";

const RESOLVER = join(import.meta.dirname, "../devices/resolver.cjs");
const HID_MS = 400;

let board: Board;
let stack: Stack;
let hosts: string;
let agentEnv: Record<string, string>;

beforeAll(async () => {
  const directory = await temporaryDir();
  hosts = join(directory.path, "hosts");
  await writeFile(hosts, "127.0.0.1 board.test\n");
  board = await Board.start({ hidMs: HID_MS, bundleBytes: 2_000_000, bundleMs: 300 });
  const proxy = "http://127.0.0.1:9";
  agentEnv = {
    NODE_OPTIONS: `--require ${RESOLVER}`,
    DEVICE_HOSTS: hosts,
    // A proxy that answers nobody: the board has to be reached without it.
    HTTP_PROXY: proxy,
    http_proxy: proxy,
    ALL_PROXY: proxy,
    all_proxy: proxy,
    NO_PROXY: "127.0.0.1",
    no_proxy: "127.0.0.1",
  };
  stack = await startStack({
    agent: ["--upstream", `http://board.test:${board.port}/mcp`],
    agentEnv,
    alsoStop: [board, { stop: () => directory.remove() }],
  });
});
afterAll(() => stack?.stop());

const post = async (method: string, params: Json = {}, options: Parameters<typeof modernRequest>[3] = {}): Promise<Json> =>
  (await readMessages(await fetch(stack.mcpUrl, modernRequest(stack.token, method, params, options)))).at(-1) ?? {};
const call = async (name: string, args: Json = {}, options: Parameters<typeof postTool>[3] = {}): Promise<Json> =>
  await answerOf(await postTool(stack, name, args, options));
const names = (answer: Json): unknown[] => (objectAt(answer, "result")["tools"] as Json[]).map((tool) => tool["name"]);
const output = (answer: Json): Json => {
  const [first] = objectAt(answer, "result")["content"] as { text: string }[];
  return JSON.parse(first?.text ?? "") as Json;
};
const inputs = (tool: string, text: string): Board["tools"]["inputs"] =>
  board.tools.inputs.filter((input) => input.tool === tool && input.args["text"] === text);
/** A raw request with these headers and nothing else. */
const raw = async (body: unknown, headers: Record<string, string>): Promise<[number, Json]> => {
  const response = await fetch(stack.mcpUrl, {
    method: "POST",
    headers: { authorization: `Bearer ${stack.token}`, "content-type": "application/json", accept: "application/json", ...headers },
    body: JSON.stringify(body),
  });
  return [response.status, (await response.json()) as Json];
};

describe("its screen", () => {
  test("comes as an image, byte for byte, also after every action", async () => {
    const shot = await call("screenshot");
    expect(objectAt(shot, "result")).toEqual({
      resultType: "complete",
      isError: false,
      content: [
        { type: "text", text: expect.stringContaining('"format":"jpeg"') },
        { type: "image", mimeType: "image/jpeg", data: (await board.tools.run("screenshot", {})).image },
      ],
    });
    const actions = [{ action: "touch_down", point: { x: 500, y: 700 } }, { action: "wait", ms: 80 }, { action: "touch_up" }];
    const touched = await call("touch_gesture", { actions });
    expect(output(touched)).toMatchObject({ action_output: "ok", screen_stable: true });
    expect(objectAt(touched, "result")["content"]).toMatchObject([{ type: "text" }, { type: "image", mimeType: "image/jpeg" }]);
    expect(board.tools.inputs.at(-1)?.args).toEqual({ actions });
  });

  test("reaches official clients of both generations", async () => {
    const [v1, v2] = [await connectV1(stack.mcpUrl, stack.token), await connectV2(stack.mcpUrl, stack.token, "auto")];
    for (const client of [v1, v2]) {
      expect((await client.callTool({ name: "wait_for_stable_screen", arguments: {} })).content).toMatchObject([
        { type: "text" },
        { type: "image" },
      ]);
      await client.close();
    }
  });
});

describe("an input to the phone", () => {
  test("runs on after its caller left, and is never sent again", async () => {
    const leave = new AbortController();
    const gone = postTool(stack, "enter_text", { text: "left" }, { signal: leave.signal }).catch(() => undefined);
    await eventually("the input to begin", () => inputs("enter_text", "left").length === 1);
    leave.abort();
    await gone;
    await eventually("the input to end", () => inputs("enter_text", "left")[0]?.isDone === true);
    expect(objectAt(await call("screenshot"), "result")["isError"]).toBe(false);
    expect(inputs("enter_text", "left")).toHaveLength(1);
  });

  test("that a legacy caller cancels runs on at the board, and is never sent again", async () => {
    const session = await LegacySession.open(stack.mcpUrl, stack.token);
    const waiting = session.request("tools/call", { name: "keyboard_tap", arguments: { text: "cancelled" } }, undefined, "tap");
    await eventually("the input to begin", () => inputs("keyboard_tap", "cancelled").length === 1);
    await session.post({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: "tap" } });
    expect((await waiting).answer).toBeUndefined();
    await eventually("the input to end", () => inputs("keyboard_tap", "cancelled")[0]?.isDone === true);
    expect(inputs("keyboard_tap", "cancelled")).toHaveLength(1);
  });

  test("during which the board's connection breaks has an unknown outcome, and is never sent again", async () => {
    const waiting = call("keyboard_tap", { text: "cut" });
    await eventually("the input to begin", () => inputs("keyboard_tap", "cut").length === 1);
    board.cut();
    expect(await waiting).toMatchObject({ error: { code: 1007, data: { reason: "upstream_failed", outcome: "unknown" } } });
    await eventually("the input to end", () => inputs("keyboard_tap", "cut")[0]?.isDone === true);
    expect(objectAt(await call("screenshot"), "result")["isError"]).toBe(false);
    expect(inputs("keyboard_tap", "cut")).toHaveLength(1);
  });

  test("that happened although its screenshot failed says so", async () => {
    expect(await call("enter_text", { text: "frozen" })).toMatchObject({
      result: { isError: true, structuredContent: { code: "subtool_failed", details: { action_completed: true } } },
    });
    expect(inputs("enter_text", "frozen")).toHaveLength(1);
  });
});

describe("its failures", () => {
  test.each(["modern", "legacy"])("keep category, code, message and details, for a %s caller", async (era) => {
    const session = era === "legacy" ? await LegacySession.open(stack.mcpUrl, stack.token) : undefined;
    const answer = async (tool: string): Promise<Json> =>
      session === undefined ? await call(tool) : ((await session.callTool(tool)).answer ?? {});
    const message = "phone bridge app is background and no supported return entry is available";
    expect(objectAt(await answer("open_app"), "result")).toMatchObject({
      isError: true,
      content: [{ type: "text", text: message }],
      structuredContent: {
        category: "precondition_failed",
        code: "bridge_not_connected",
        message,
        details: { fallback: "Take a screenshot, then use visible search." },
      },
    });
    expect(await answer("bridge_clipboard")).toMatchObject({
      result: { isError: true, structuredContent: { category: "user_action_required", code: "permission_denied" } },
    });
  });

  test("a second support bundle is refused while the first is made, which comes whole", async () => {
    const answers = await Promise.all([call("support_bundle"), call("support_bundle")]);
    const made = answers.filter((answer) => objectAt(answer, "result")["isError"] === false);
    expect(made).toHaveLength(1);
    expect(objectAt(made[0], "result")["content"]).toEqual([
      {
        type: "resource",
        resource: {
          uri: "aico://support/2026-11-30.tar.gz",
          mimeType: "application/gzip",
          blob: Buffer.alloc(2_000_000, "board").toString("base64"),
        },
      },
    ]);
    const refused = answers.find((answer) => !made.includes(answer));
    expect(refused).toMatchObject({ result: { isError: true, content: [{ text: "support bundle already in progress" }] } });
  });
});

describe("its shell", () => {
  test("appears in the list once the board's file says so, and is gone again", async () => {
    expect(names(await post("tools/list"))).not.toContain("shell");
    board.tools.isShellEnabled = true;
    expect(names(await post("tools/list"))).toEqual(board.tools.listed());
    expect(board.tools.listed()).toHaveLength(13);
  });

  test("in the background is polled as often as the caller likes, each look reaching the board", async () => {
    const started = output(await call("shell", { command: "tail -f /var/log/agent.log", background: true }));
    expect(started).toMatchObject({ status: "running" });
    const before = board.calls.length;
    const poll = { action: "poll", session_id: started["session_id"] };
    const looks: Json[] = [];
    for (let look = 0; look < 3; look += 1) looks.push(output(await call("shell", poll)));
    expect(looks.map(({ status, output: text }) => [status, text])).toEqual([
      ["running", "line 1\n"],
      ["running", "line 2\n"],
      ["exited", "line 3\n"],
    ]);
    expect(board.calls).toHaveLength(before + 3);
  });

  test("that is switched off is the board's own failure at the next call", async () => {
    board.tools.isShellEnabled = false;
    expect(await call("shell", { command: "id" })).toMatchObject({
      result: { isError: true, structuredContent: { code: "tool_not_found" } },
    });
    expect(names(await post("tools/list"))).not.toContain("shell");
  });
});

describe("the protocol", () => {
  test("discovery and lists get the cache members the board leaves out, and its identity", async () => {
    const discovered = objectAt(await post("server/discover"), "result");
    expect(discovered).toMatchObject({
      resultType: "complete",
      cacheScope: "private",
      _meta: { [META.serverInfo]: { name: "aico-agent", version: "1.4.0" } },
    });
    expect(discovered["ttlMs"]).toEqual(expect.any(Number));
    expect(objectAt(await post("tools/list"), "result")).toMatchObject({ ttlMs: 0, cacheScope: "private" });
  });

  test("header-only requests are refused by the relay, unless the device's switch says so; the board gets the full form in any case", async () => {
    const headerOnly = { "mcp-protocol-version": MODERN };
    const list = { jsonrpc: "2.0", id: 1, method: "tools/list" };
    expect(await raw(list, headerOnly)).toMatchObject([400, { error: { code: -32602 } }]);
    await longline(["device", "set", stack.device, "--switch", "headerOnlyModern=on"], { env: stack.relay.env });
    expect(await raw(list, headerOnly)).toMatchObject([200, { result: { tools: expect.any(Array) } }]);
    expect(await raw({ jsonrpc: "2.0", id: 2, method: "ping" }, headerOnly)).toMatchObject([200, { result: {} }]);
    const tap = { jsonrpc: "2.0", id: 3, method: "tools/call", params: { name: "open_url", arguments: { url: "https://example.com" } } };
    expect(await raw(tap, headerOnly)).toMatchObject([200, { result: { isError: false } }]);
    const seen = board.seen.at(-1);
    expect(seen && one(seen, "mcp-name")).toBe("open_url");
    expect(objectAt(objectAt(seen?.json, "params"), "_meta")).toMatchObject({
      [META.protocolVersion]: MODERN,
      [META.clientCapabilities]: {},
    });
    // Mcp-Method makes the rules strict, as at the board.
    expect(await raw(tap, { ...headerOnly, "mcp-method": "tools/call" })).toMatchObject([400, { error: { code: -32602 } }]);
  });

  test("a batch of an old client is taken apart; the board, which refuses batches, never sees one", async () => {
    const session = await LegacySession.open(stack.mcpUrl, stack.token, {}, "2025-03-26");
    const item = (id: number): Json => ({ jsonrpc: "2.0", id, method: "tools/call", params: { name: "device_status", arguments: {} } });
    const answers = await readMessages(await session.post([item(1), item(2)]));
    expect(answers.map(({ id, result }) => [id, objectAt({ result }, "result")["isError"]])).toEqual([
      [1, false],
      [2, false],
    ]);
  });

  test("with a progress token is one JSON answer, as the board streams nothing", async () => {
    const response = await postTool(stack, "phone_bridge_status", {}, { meta: { progressToken: 1 } });
    expect(response.headers.get("content-type")).toBe("application/json");
    expect(await response.json()).toMatchObject({ result: { isError: false } });
  });

  test("reaches its MCP endpoint only, without Origin, and never sends an array", async () => {
    for (const path of ["/api/tools/shell", "/../api/tools/shell", "/health"]) {
      const response = await fetch(`${stack.mcpUrl}${path}`, {
        method: "POST",
        headers: { authorization: `Bearer ${stack.token}`, "content-type": "application/json" },
        body: '{"input":{"command":"id"}}',
      });
      expect(response.status).toBe(404);
    }
    for (const seen of board.seen) {
      expect(seen.path).toBe("/mcp");
      expect(seen.headers.has("origin")).toBe(false);
      if (seen.method === "POST") expect(seen.json).toBeDefined();
    }
  });
});

describe("an endpoint that is switched off", () => {
  test("is said to be so, without a doubt that anything began, and works again once it is on", async () => {
    board.isEnabled = false;
    expect(await call("device_status")).toMatchObject({
      error: { code: 1007, message: expect.stringContaining("HTTP 404"), data: { reason: "upstream_failed", outcome: "not_started" } },
    });
    board.isEnabled = true;
    expect(await call("device_status")).toMatchObject({ result: { isError: false } });
  });

  test("when the agent starts is found once it is on", async () => {
    board.isEnabled = false;
    const { deviceKey, mcpUrl } = await stack.relay.addDevice("late");
    const { token } = await stack.relay.createToken("late");
    const agent = await startAgent({
      relay: stack.relay.url,
      deviceKey,
      args: ["--upstream", `http://board.test:${board.port}/mcp`],
      env: agentEnv,
    });
    try {
      const attempt = async (): Promise<Json> => await answerOf(await postTool({ mcpUrl, token }, "device_status"));
      expect(await attempt()).toMatchObject({ error: { message: expect.stringContaining("HTTP 404"), data: { outcome: "not_started" } } });
      board.isEnabled = true;
      await eventually("the board to be found", async () => objectAt(await attempt(), "result")["isError"] === false);
    } finally {
      board.isEnabled = true;
      await agent.stop();
    }
  });
});

test("its name is looked up anew: a board with a new address is found, also when the old one just went silent", async () => {
  await call("device_status");
  const moved = await Board.start({ port: board.port, host: "127.0.0.2" });
  try {
    await writeFile(hosts, "127.0.0.2 board.test\n");
    // Nothing closes a connection to an address that is gone, so the agent must not keep an idle one.
    await eventually("idle connections to be given up", async () => (await board.connections()) === 0);
    expect(await call("device_status")).toMatchObject({ result: { isError: false } });
    expect(moved.calls).toEqual(["device_status"]);
  } finally {
    await writeFile(hosts, "127.0.0.1 board.test\n");
    await moved.stop();
  }
});

test("a board that is unplugged is a failure of the transport, told apart from a tool's", async () => {
  await board.stop();
  expect(await call("device_status")).toMatchObject({
    error: { code: 1007, message: expect.stringContaining("ECONNREFUSED"), data: { reason: "upstream_failed", outcome: "not_started" } },
  });
});
