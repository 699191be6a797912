/** The reference phone behind the relay: each row of its table that a relay can keep or break. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Dikciz } from "../devices/dikciz.ts";
import { one, type Seen } from "../devices/http-device.ts";
import { META, MODERN, objectAt, type Json } from "../devices/json.ts";
import { connectV1, connectV2, modernRequest, readMessages } from "../support/clients.ts";
import { LegacySession } from "../support/legacy-session.ts";
import { answerOf, postTool } from "../support/modern-call.ts";
import { eventually, temporaryDir } from "../support/processes.ts";
import { longline, startAgent } from "../support/relay-process.ts";
import { messagesOf } from "../support/sse-messages.ts";
import { startStack, type Stack } from "../support/stack.ts";

const PASSWORD = "phone-owner-secret-01";
/** What a request of the stateless revision says of itself. */
const METADATA = { [META.protocolVersion]: MODERN, [META.clientCapabilities]: {} };
const PAGE = "dikciz://page/Küche";

let phone: Dikciz;
let stack: Stack;
/** The phone's clock runs ahead by this. */
let aheadMs = 0;

beforeAll(async () => {
  phone = await Dikciz.start({ password: PASSWORD, now: () => Date.now() + aheadMs });
  const directory = await temporaryDir();
  const headers = join(directory.path, "headers");
  await writeFile(headers, `Authorization: Bearer ${PASSWORD}\n`, { mode: 0o600 });
  stack = await startStack({
    agent: ["--upstream", phone.url, "--upstream-headers", headers],
    alsoStop: [phone, { stop: () => directory.remove() }],
  });
});
afterAll(() => stack?.stop());

const post = async (method: string, params: Json = {}, options: Parameters<typeof modernRequest>[3] = {}): Promise<Json> =>
  (await readMessages(await fetch(stack.mcpUrl, modernRequest(stack.token, method, params, options)))).at(-1) ?? {};
const call = async (name: string, args: Json = {}, options: Parameters<typeof postTool>[3] = {}): Promise<Json> =>
  await answerOf(await postTool(stack, name, args, options));
const runs = (tool: string): number => phone.tools.runs.get(tool) ?? 0;
const lastOf = (method: string): Seen => {
  const found = phone.seen.findLast(({ json }) => json?.["method"] === method);
  if (found === undefined) throw new Error(`the phone saw no ${method}`);
  return found;
};

describe("a request at the phone", () => {
  test("is rebuilt: exact path, one loopback Host, no Origin, both types, a length, nothing of the caller's but the call", async () => {
    const origin = new URL(stack.mcpUrl).origin;
    const answer = await call(
      "dikciz_tap",
      { semanticId: "launcher:controls" },
      { accept: "application/json", headers: { origin, cookie: "a=b", "x-forwarded-for": "203.0.113.1" } },
    );
    expect(answer).toMatchObject({ result: { isError: false, structuredContent: { ok: true, semanticId: "launcher:controls" } } });
    const seen = lastOf("tools/call");
    expect(seen.path).toBe("/mcp");
    expect(Object.fromEntries(seen.headers)).toEqual({
      host: [new URL(phone.url).host],
      connection: ["keep-alive"],
      authorization: [`Bearer ${PASSWORD}`],
      "content-type": ["application/json"],
      accept: ["application/json, text/event-stream"],
      "content-length": [String(Buffer.byteLength(seen.body))],
      "mcp-protocol-version": ["2026-07-28"],
      "mcp-method": ["tools/call"],
      "mcp-name": ["dikciz_tap"],
    });
    expect(seen.body).not.toContain(stack.token);
    expect(objectAt(objectAt(seen.json, "params"), "_meta")).toMatchObject(METADATA);
  });

  test("of the agent's own, discovery and lists, has no Origin, fits the phone's 8 KiB of headers, and nothing was refused", () => {
    for (const seen of phone.seen) {
      expect(seen.headers.has("origin")).toBe(false);
      expect(seen.headers.get("host")).toEqual([new URL(phone.url).host]);
      expect(seen.headerBytes).toBeLessThan(1_000);
      expect(seen.method).not.toBe("GET");
    }
  });

  test.each(["modern", "legacy"])("names what is not ASCII in Base64, for a %s caller", async (era) => {
    const answer =
      era === "modern"
        ? await post("resources/read", { uri: PAGE }, { name: "=?base64?ZGlrY2l6Oi8vcGFnZS9Lw7xjaGU=?=" })
        : (await (await LegacySession.open(stack.mcpUrl, stack.token)).request("resources/read", { uri: PAGE })).answer;
    expect(answer).toMatchObject({ result: { contents: [{ uri: PAGE, text: '{"title":"Küche"}' }] } });
    const seen = lastOf("resources/read");
    expect(seen.json).toMatchObject({ params: { uri: PAGE } });
    expect(one(seen, "mcp-name")).toBe(era === "modern" ? "=?base64?ZGlrY2l6Oi8vcGFnZS9Lw7xjaGU=?=" : undefined);
  });

  test("may be large, and is whole", async () => {
    const text = "ü".repeat(500_000);
    expect(await call("dikciz_set_text", { text })).toMatchObject({ result: { structuredContent: { ok: true, text } } });
  });

  test("is not made for a caller with a wrong token, whose guesses cost the phone nothing", async () => {
    const before = phone.seen.length;
    const guess = async (): Promise<number> => {
      const request = modernRequest(PASSWORD, "tools/call", { name: "dikciz_tap", arguments: {} });
      return (await fetch(stack.mcpUrl, request)).status;
    };
    expect(await Promise.all(Array.from({ length: 10 }, guess))).toEqual(Array.from({ length: 10 }, () => 401));
    expect(phone.seen).toHaveLength(before);
  });

  test("goes to its one path only, whatever path the caller tries", async () => {
    const before = phone.seen.length;
    for (const path of ["/v1/automation", "/../v1/automation", "?x=1/v1/automation"]) {
      const response = await fetch(`${stack.mcpUrl}${path}`, { headers: { authorization: `Bearer ${stack.token}` } });
      expect([404, 405]).toContain(response.status);
    }
    expect(phone.seen).toHaveLength(before);
  });
});

describe("what the phone says", () => {
  test("discovery: its identity and instructions, kept by nobody for others", async () => {
    const { result } = (await post("server/discover")) as { result: Json };
    expect(result).toMatchObject({
      instructions: "Read control status first.",
      cacheScope: "private",
      capabilities: { tools: {}, resources: {} },
      _meta: { "io.modelcontextprotocol/serverInfo": { name: "dikciz", version: "1.0.0" } },
    });
    expect(result["ttlMs"]).toBeLessThanOrEqual(60_000);
  });

  test("forty tools in its order, each as it wrote it, private and for now", async () => {
    const { result } = (await post("tools/list")) as { result: Json };
    expect(result).toMatchObject({ resultType: "complete", ttlMs: 0, cacheScope: "private" });
    expect(result["tools"]).toEqual(phone.tools.list());
    expect(phone.tools.list()).toHaveLength(40);
  });

  test("an image beside structured content, untouched", async () => {
    expect(((await call("dikciz_screenshot")) as { result: Json }).result).toEqual({
      resultType: "complete",
      isError: false,
      content: [
        { type: "image", mimeType: "image/png", data: expect.stringMatching(/^iVBORw0KGgo/) },
        { type: "text", text: "tool completed" },
      ],
      structuredContent: { width: 1080, height: 2400, selectedPageId: "1H1V" },
    });
  });

  test.each(["modern", "legacy"])("a failure with its code and permissionRequest, untouched, to a %s caller", async (era) => {
    const answer =
      era === "modern"
        ? await call("dikciz_accessibility_action", { action: "back" })
        : (await (await LegacySession.open(stack.mcpUrl, stack.token)).callTool("dikciz_accessibility_action", { action: "back" })).answer;
    expect((answer as { result: Json }).result).toMatchObject({
      isError: true,
      content: [{ type: "text", text: "Accessibility access is not enabled" }],
      structuredContent: {
        code: "accessibility_not_enabled",
        message: "Accessibility access is not enabled",
        permissionRequest: {
          requirement: "accessibility",
          kind: "systemSettings",
          state: "needsSetup",
          openTool: "dikciz_open_automation_setup",
        },
      },
    });
  });

  test("what its schema promises and its validator refuses, as its own failure", async () => {
    expect(await call("dikciz_shell", { command: "lines 1" })).toMatchObject({
      result: { isError: true, structuredContent: { code: "validation_failed" } },
    });
  });

  test("an unknown tool, with its code; a method it lacks, as a 404 that ends nothing", async () => {
    expect(await call("dikciz_nothing")).toMatchObject({ error: { code: -32602 } });
    const request = modernRequest(stack.token, "prompts/get", { name: "none" });
    const response = await fetch(stack.mcpUrl, request);
    expect(await response.json()).toMatchObject({ error: { code: expect.any(Number) } });
    expect(await call("dikciz_tap")).toMatchObject({ result: { isError: false } });
  });
});

describe("an operation", () => {
  test("is polled as often as the caller likes; each look reaches the phone, and only the phone says how it ended", async () => {
    const queued = (await call("dikciz_automation_trigger", { event: "e" })) as { result: { structuredContent: Json } };
    const { operationId } = queued.result.structuredContent;
    expect(queued.result.structuredContent).toEqual({ queued: true, operationId, status: "pending" });
    const before = runs("automation_status");
    const states: unknown[] = [];
    for (let look = 0; look < 3; look += 1) {
      const { result } = (await call("dikciz_automation_status", { operationId })) as { result: { structuredContent: Json } };
      states.push(result.structuredContent["status"]);
    }
    expect(states).toEqual(["pending", "pending", "failed"]);
    expect(runs("automation_status")).toBe(before + 3);
  });

  test("that polls too fast meets the phone's own limit, as its own failure", async () => {
    const codes: unknown[] = [];
    for (let look = 0; look < 33; look += 1) {
      const { result } = (await call("dikciz_accessibility_snapshot")) as { result: { structuredContent: Json } };
      codes.push(result.structuredContent["code"]);
    }
    expect(codes.filter((code) => code !== undefined)).toEqual(["accessibility_snapshot_limit"]);
    aheadMs += 5_000;
    expect(await call("dikciz_accessibility_snapshot")).toMatchObject({ result: { isError: false } });
  });

  test("at the same time as others waits its turn at the phone, which works on three", async () => {
    const before = runs("tap");
    const answers = await Promise.all(Array.from({ length: 8 }, (_, at) => call("dikciz_tap", { semanticId: `t${at}` })));
    expect(answers.map((answer) => objectAt(objectAt(answer, "result"), "structuredContent")["semanticId"])).toEqual(
      Array.from({ length: 8 }, (_, at) => `t${at}`),
    );
    expect(runs("tap")).toBe(before + 8);
    expect(phone.mostAtOnce).toBeLessThanOrEqual(3);
  });
});

describe("the shell", () => {
  test("streams its lines as they come, and ends with the result", async () => {
    const response = await postTool(stack, "dikciz_shell", { command: "lines 3", root: false }, { meta: { progressToken: "t1" } });
    expect(response.headers.get("content-type")).toBe("text/event-stream");
    expect(response.headers.get("x-accel-buffering")).toBe("no");
    const messages = await readMessages(response);
    expect(messages.slice(0, -1).map((message) => message["params"])).toEqual(
      [1, 2, 3].map((progress) => ({ progressToken: "t1", progress, message: `line ${progress}\n` })),
    );
    expect(messages.at(-1)).toMatchObject({ result: { structuredContent: { exitCode: 0, output: "line 1\nline 2\nline 3\n" } } });
  });

  test("without a progress token is one JSON answer", async () => {
    const response = await postTool(stack, "dikciz_shell", { command: "lines 2", root: false });
    expect(response.headers.get("content-type")).toBe("application/json");
    expect(await response.json()).toMatchObject({ result: { structuredContent: { output: "line 1\nline 2\n" } } });
  });

  test("stops when its modern caller leaves", async () => {
    const leave = new AbortController();
    const response = await postTool(
      stack,
      "dikciz_shell",
      { command: "hold", root: false },
      { meta: { progressToken: 1 }, signal: leave.signal },
    );
    for await (const { message } of messagesOf(response)) {
      expect(message).toMatchObject({ method: "notifications/progress", params: { message: "line 1\n" } });
      break;
    }
    leave.abort();
    await eventually("the shell to be cancelled", () => {
      // What is written next shows that nobody reads.
      phone.tools.say();
      return phone.tools.shells.at(-1)?.state === "cancelled";
    });
  });

  test("goes on when its legacy caller's connection drops, and stops when that caller cancels", async () => {
    const session = await LegacySession.open(stack.mcpUrl, stack.token);
    const leave = new AbortController();
    const params = { name: "dikciz_shell", arguments: { command: "hold", root: false }, _meta: { progressToken: "p" } };
    const response = await session.post({ jsonrpc: "2.0", id: 77, method: "tools/call", params }, { signal: leave.signal });
    for await (const { message } of messagesOf(response)) {
      expect(message).toMatchObject({ params: { progressToken: "p", message: "line 1\n" } });
      break;
    }
    leave.abort();
    expect(await session.callTool("dikciz_tap")).toMatchObject({ answer: { result: { isError: false } } });
    expect(phone.tools.shells.at(-1)?.state).toBe("running");
    await session.post({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 77 } });
    await eventually("the shell to be cancelled", () => phone.tools.shells.at(-1)?.state === "cancelled");
  });
});

describe("the phone's sessions", () => {
  test("are one for all legacy callers, also for one that opens a session per command and ends none; a DELETE does not end it", async () => {
    const sessions: LegacySession[] = [];
    for (let command = 0; command < 12; command += 1) {
      const session = await LegacySession.open(stack.mcpUrl, stack.token);
      expect(await session.callTool("dikciz_tap")).toMatchObject({ answer: { result: { isError: false } } });
      sessions.push(session);
    }
    expect(phone.sessions.count).toBe(1);
    expect(await sessions.at(-1)?.end()).toBe(204);
    expect(phone.sessions.count).toBe(1);
    expect(await sessions.at(-2)?.callTool("dikciz_tap")).toMatchObject({ answer: { result: { isError: false } } });
  });

  test("are opened anew after ten idle minutes, and the call runs once", async () => {
    const session = await LegacySession.open(stack.mcpUrl, stack.token);
    await session.callTool("dikciz_tap");
    aheadMs += 10 * 60_000;
    const before = runs("launch_app");
    expect(await session.callTool("dikciz_launch_app")).toMatchObject({ answer: { result: { isError: false } } });
    expect(runs("launch_app")).toBe(before + 1);
    expect(phone.sessions.count).toBe(1);
  });

  test("are opened anew after the phone's process was restarted", async () => {
    const client = await connectV1(stack.mcpUrl, stack.token);
    await client.callTool({ name: "dikciz_tap", arguments: {} });
    phone.sessions.forget();
    expect(await client.callTool({ name: "dikciz_tap", arguments: {} })).toMatchObject({ isError: false });
    await client.close();
  });
});

test("a method that the phone lacks ends neither the call's session at the phone nor the caller's", async () => {
  const session = await LegacySession.open(stack.mcpUrl, stack.token);
  await session.callTool("dikciz_tap");
  const handshakes = (): number => phone.seen.filter(({ json }) => json?.["method"] === "initialize").length;
  const before = handshakes();
  for (const [method, params] of [
    ["prompts/get", { name: "none" }],
    ["resources/templates/list", {}],
  ] as const) {
    expect((await session.request(method, params)).answer).toMatchObject({ error: { code: -32601 } });
  }
  expect(handshakes()).toBe(before);
});

describe("clients", () => {
  test.each(["2025-11-25", "2025-06-18", "2025-03-26"])("shake hands at %s", async (version) => {
    const session = await LegacySession.open(stack.mcpUrl, stack.token, {}, version);
    expect(session.version).toBe(version);
    expect((await session.request("ping")).answer).toMatchObject({ result: {} });
    const { answer } = await session.callTool("dikciz_tap");
    expect(answer).toMatchObject({ result: { isError: false } });
    expect(answer?.["result"]).not.toHaveProperty("resultType");
  });

  test("that offer an unknown version are given the newest handshake", async () => {
    expect((await LegacySession.open(stack.mcpUrl, stack.token, {}, "2024-11-05")).version).toBe("2025-11-25");
  });

  test("with modern _meta in a legacy session stay in that session", async () => {
    const session = await LegacySession.open(stack.mcpUrl, stack.token);
    expect((await session.request("tools/call", { name: "dikciz_tap", arguments: {}, _meta: METADATA })).answer).toMatchObject({
      result: { isError: false },
    });
  });

  test("of the phone's own, with a session at the stateless version, work where the switch says so", async () => {
    await longline(["device", "set", stack.device, "--switch", "initializedModern=on"], { env: stack.relay.env });
    const session = await LegacySession.open(stack.mcpUrl, stack.token, {}, "2026-07-28");
    expect(session.version).toBe("2026-07-28");
    const { answer } = await session.request("tools/call", { name: "dikciz_tap", arguments: {}, _meta: METADATA });
    expect(answer).toMatchObject({ result: { resultType: "complete", isError: false } });
  });

  test("of the new SDK ask for discovery and find everything", async () => {
    const client = await connectV2(stack.mcpUrl, stack.token, "auto");
    expect((await client.listTools()).tools).toHaveLength(40);
    expect(await client.callTool({ name: "dikciz_shell", arguments: { command: "lines 1", root: false } })).toMatchObject({
      isError: false,
    });
    await client.close();
  });
});

describe("when the phone has no room or no trust", () => {
  test("all eight of its sessions taken: legacy callers are served all the same", async () => {
    phone.sessions.forget();
    while (phone.sessions.open("2025-11-25") !== undefined);
    const session = await LegacySession.open(stack.mcpUrl, stack.token);
    const before = runs("tap");
    expect(await session.callTool("dikciz_tap")).toMatchObject({ answer: { result: { isError: false } } });
    expect(runs("tap")).toBe(before + 1);
    expect(phone.sessions.count).toBe(8);
  });

  test("a wrong password at the last hop is named to the caller, as no fault of its own token", async () => {
    const { deviceKey, mcpUrl } = await stack.relay.addDevice("locked");
    const { token } = await stack.relay.createToken("locked");
    const agent = await startAgent({ relay: stack.relay.url, deviceKey, args: ["--upstream", phone.url] });
    try {
      const response = await postTool({ mcpUrl, token }, "dikciz_tap");
      expect(response.status).toBe(200);
      expect(response.headers.get("www-authenticate")).toBeNull();
      expect(await response.json()).toMatchObject({
        error: { code: 1007, message: expect.stringContaining("401"), data: { reason: "upstream_failed", outcome: "not_started" } },
      });
    } finally {
      await agent.stop();
    }
  });
});
