/** The reference devices' fakes hold the line where their tables draw it: what these refuse, a relay has to get right. */
import { request as httpRequest } from "node:http";
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import { Board } from "../devices/board.ts";
import { Dikciz } from "../devices/dikciz.ts";
import { META, MODERN, type Json } from "../devices/json.ts";
import { within } from "../support/deadline.ts";

const SOON_MS = 5_000;
const PASSWORD = "phone-owner-secret-01";
const BOTH = "application/json, text/event-stream";
const METADATA = { [META.protocolVersion]: MODERN, [META.clientCapabilities]: {} };
const AUTH = { authorization: `Bearer ${PASSWORD}` };

interface Answer {
  status: number;
  headers: Record<string, unknown>;
  json: Json | undefined;
}

/** One request with exactly these headers. */
function ask(url: string, method: string, headers: Record<string, string | string[]>, body = ""): Promise<Answer> {
  const length = headers["transfer-encoding"] === undefined && body !== "" ? { "content-length": String(Buffer.byteLength(body)) } : {};
  const answer = new Promise<Answer>((resolve, reject) => {
    const sent = httpRequest(url, { method, headers: { ...length, ...headers }, agent: false }, (response) => {
      const parts: Buffer[] = [];
      response.on("data", (part: Buffer) => parts.push(part));
      response.on("end", () => {
        const text = Buffer.concat(parts).toString();
        const isJson = response.headers["content-type"] === "application/json";
        resolve({ status: response.statusCode ?? 0, headers: response.headers, json: isJson ? (JSON.parse(text) as Json) : undefined });
      });
    });
    sent.on("error", reject);
    sent.end(body);
  });
  return within(SOON_MS, "an answer", answer);
}

const rpc = (method: string, params: Json = {}, id: unknown = 1): string => JSON.stringify({ jsonrpc: "2.0", id, method, params });

describe("the phone", () => {
  let phone: Dikciz;
  let now = 0;
  beforeAll(async () => {
    phone = await Dikciz.start({ password: PASSWORD, authMs: 1, now: () => now });
  });
  afterAll(() => phone?.stop());

  const usual = { ...AUTH, "content-type": "application/json", accept: BOTH };
  const modern = { ...usual, "mcp-protocol-version": MODERN, "mcp-method": "tools/list" };
  const list = rpc("tools/list", { _meta: METADATA });

  test("serves a request that is as it should be, and closes the connection", async () => {
    const { status, headers, json } = await ask(phone.url, "POST", modern, list);
    expect(status).toBe(200);
    expect(headers).toMatchObject({ connection: "close", "cache-control": "no-store" });
    expect(json).toMatchObject({ result: { resultType: "complete", ttlMs: 0, cacheScope: "private" } });
  });

  test.each<[string, number, string, string, Record<string, string | string[]>, string]>([
    ["a foreign Origin, before the password", 403, "/mcp", "POST", { origin: "https://a.example" }, list],
    ["no password", 401, "/mcp", "POST", { "content-type": "application/json", accept: BOTH }, list],
    ["two passwords", 401, "/mcp", "POST", { ...usual, authorization: [AUTH.authorization, AUTH.authorization] }, list],
    ["a query", 404, "/mcp?x=1", "POST", modern, list],
    ["a slash at the end", 404, "/mcp/", "POST", modern, list],
    ["GET", 405, "/mcp", "GET", usual, ""],
    ["another content type", 415, "/mcp", "POST", { ...modern, "content-type": "text/plain" }, list],
    ["one accepted type only", 406, "/mcp", "POST", { ...modern, accept: "application/json" }, list],
    ["a chunked body, which it sees as empty", 400, "/mcp", "POST", { ...modern, "transfer-encoding": "chunked" }, list],
    ["a batch", 400, "/mcp", "POST", modern, `[${list}]`],
    ["a repeated header", 400, "/mcp", "POST", { ...modern, "x-a": ["1", "2"] }, list],
    ["more than 8 KiB of headers", 400, "/mcp", "POST", { ...modern, "x-a": "a".repeat(8_192) }, list],
    ["DELETE without a session", 400, "/mcp", "DELETE", usual, ""],
    ["DELETE of an unknown session", 404, "/mcp", "DELETE", { ...usual, "mcp-session-id": "none" }, ""],
  ])("refuses %s with %i and a body without an id", async (_what, status, path, method, headers, body) => {
    const answer = await ask(new URL(path, phone.url).href, method, headers, body);
    expect(answer).toMatchObject({ status, json: { id: null, error: { code: -32600 } } });
    if (status === 401) expect(answer.headers["www-authenticate"]).toBe('Bearer realm="Dikciz"');
  });

  test.each<[string, number, number, Record<string, string>, string]>([
    ["another Mcp-Method", 400, -32020, { "mcp-method": "ping" }, list],
    ["another version in the body", 400, -32020, {}, rpc("tools/list", { _meta: { ...METADATA, [META.protocolVersion]: "2025-11-25" } })],
    ["an unknown version", 400, -32022, { "mcp-protocol-version": "2027-01-01" }, list],
    ["an unknown method", 404, -32601, { "mcp-method": "nothing" }, rpc("nothing", { _meta: METADATA })],
    ["no metadata", 400, -32602, {}, rpc("tools/list")],
    [
      "no Mcp-Name",
      400,
      -32020,
      { "mcp-method": "resources/read" },
      rpc("resources/read", { uri: "dikciz://page/Küche", _meta: METADATA }),
    ],
  ])("answers %s with %i and %i", async (_what, status, code, headers, body) => {
    expect(await ask(phone.url, "POST", { ...modern, ...headers }, body)).toMatchObject({ status, json: { id: 1, error: { code } } });
  });

  test("takes HTTP/1.1 only", async () => {
    const socket = connect(Number(new URL(phone.url).port), "127.0.0.1");
    const first = new Promise<string>((resolve) => {
      socket.once("data", (data: Buffer) => resolve(data.toString()));
    });
    socket.write(`POST /mcp HTTP/1.0\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\n\r\n{}`);
    expect(await within(SOON_MS, "an answer", first)).toMatch(/^HTTP\/1\.1 400 /);
    socket.destroy();
  });

  test("holds eight sessions for ten idle minutes each", async () => {
    const initialize = rpc("initialize", { protocolVersion: "2024-11-05", capabilities: {}, clientInfo: { name: "a", version: "1" } });
    const opened: Answer[] = [];
    for (let n = 0; n < 9; n += 1) opened.push(await ask(phone.url, "POST", usual, initialize));
    expect(opened.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 200, 200, 200, 429]);
    expect(opened[0]?.json).toMatchObject({ result: { protocolVersion: "2025-11-25" } });
    const session = { ...usual, "mcp-session-id": String(opened[0]?.headers["mcp-session-id"]), "mcp-protocol-version": "2025-11-25" };
    expect(await ask(phone.url, "POST", session, rpc("tools/list"))).toMatchObject({ status: 400 });
    const initialized = JSON.stringify({ jsonrpc: "2.0", method: "notifications/initialized" });
    expect(await ask(phone.url, "POST", session, initialized)).toMatchObject({ status: 202 });
    expect(await ask(phone.url, "POST", session, rpc("ping"))).toMatchObject({ status: 200, json: { result: {} } });
    const other = { ...session, "mcp-protocol-version": "2025-06-18" };
    expect(await ask(phone.url, "POST", other, rpc("ping"))).toMatchObject({ status: 400 });
    now += 599_999;
    expect(await ask(phone.url, "POST", session, rpc("ping"))).toMatchObject({ status: 200 });
    now += 600_000;
    expect(await ask(phone.url, "POST", session, rpc("ping"))).toMatchObject({ status: 404 });
    expect(phone.sessions.count).toBe(0);
  });

  test("tells launcher events, counted, on its WebSocket after a hello; a fifth client is closed without a word", async () => {
    const clients = await Promise.all(Array.from({ length: 4 }, () => LauncherClient.open(phone.events.url)));
    await expect(LauncherClient.open(phone.events.url)).rejects.toThrow("socket hang up");
    const [first] = clients;
    expect(await first?.ask({ type: "tap" })).toMatchObject({ type: "error", code: "hello_required" });
    expect(await first?.ask({ type: "hello", protocolVersion: 2 })).toMatchObject({ type: "error", code: "protocol_mismatch" });
    expect(await first?.ask({ type: "hello", protocolVersion: 1 })).toMatchObject({ type: "result", revision: 0 });
    phone.events.emit("automation_ui_rendered", { screen: "home" });
    expect(await first?.next()).toEqual({ type: "event", event: "automation_ui_rendered", revision: 1, fields: { screen: "home" } });
    expect(await first?.ask({ type: "accessibilityAction", action: "back" })).toMatchObject({
      type: "error",
      code: "accessibility_not_enabled",
    });
    expect(await first?.ask({ type: "tap", other: 1 })).toMatchObject({ type: "error", code: "validation_failed" });
    for (const client of clients) client.close();
  });
});

describe("the board", () => {
  let board: Board;
  let at: string;
  beforeAll(async () => {
    board = await Board.start({ hidMs: 1 });
    at = `http://127.0.0.1:${board.port}`;
  });
  afterAll(() => board?.stop());

  const json = { "content-type": "application/json" };
  const version = { ...json, "mcp-protocol-version": MODERN };

  test("takes header-only requests, and is strict once there is metadata or Mcp-Method", async () => {
    expect(await ask(`${at}/mcp`, "POST", version, rpc("tools/list"))).toMatchObject({
      status: 200,
      json: { result: { resultType: "complete" } },
    });
    expect(await ask(`${at}/mcp`, "POST", version, rpc("ping"))).toMatchObject({
      status: 200,
      json: { result: { resultType: "complete" } },
    });
    for (const [headers, body] of [
      [{ ...version, "mcp-method": "ping" }, rpc("tools/list")],
      [version, rpc("tools/list", { _meta: METADATA })],
      [{ ...json, "mcp-method": "tools/list" }, rpc("tools/list")],
      [{ ...version, "mcp-method": "tools/call", "mcp-name": "shell" }, rpc("tools/call", { name: "screenshot" })],
    ] as const) {
      expect(await ask(`${at}/mcp`, "POST", headers, body)).toMatchObject({ status: 400, json: { error: { code: -32020 } } });
    }
  });

  test.each<[string, number, Record<string, string>, string, object]>([
    ["a batch", 400, json, `[${rpc("ping")}]`, { error: { code: -32600 } }],
    ["an unknown method", 404, json, rpc("subscriptions/listen"), { error: { code: -32601 } }],
    [
      "an old handshake",
      200,
      json,
      rpc("initialize", { protocolVersion: "2025-03-26" }),
      { result: { protocolVersion: "2025-11-25", resultType: "complete" } },
    ],
  ])("answers %s with %i", async (_what, status, headers, body, expected) => {
    expect(await ask(`${at}/mcp`, "POST", headers, body)).toMatchObject({ status, json: expected });
  });

  test("takes no Origin but its own address", async () => {
    const status = async (origin: string): Promise<number> => (await ask(`${at}/mcp`, "POST", { ...json, origin }, rpc("ping"))).status;
    expect(await status(at)).toBe(200);
    expect(await status("http://127.0.0.1:1")).toBe(403);
    expect(await status(`http://board.test:${board.port}`)).toBe(403);
  });

  test("runs its tools over plain HTTP too, a failure being 200 with is_error and the shell without its gate", async () => {
    expect(await ask(`${at}/api/tools`, "GET", {})).toMatchObject({ status: 200, json: { tools: expect.arrayContaining(["shell"]) } });
    const run = async (name: string, body: unknown): Promise<Answer> =>
      await ask(`${at}/api/tools/${name}`, "POST", json, JSON.stringify(body));
    const shot = await run("screenshot", { input: {} });
    expect(shot).toMatchObject({
      status: 200,
      json: { tool: "screenshot", raw_input: "{}", is_error: false, duration_ms: expect.any(Number) },
    });
    expect(JSON.parse(String(shot.json?.["output"]))).toMatchObject({ format: "jpeg", data: expect.stringMatching(/^\/9j\//) });
    expect(await run("open_app", { raw_input: "{}" })).toMatchObject({
      status: 200,
      json: { is_error: true, error: { code: "bridge_not_connected" } },
    });
    expect(await run("shell", { input: { command: "id" } })).toMatchObject({ status: 200, json: { is_error: false } });
    expect(await run("nothing", { input: {} })).toMatchObject({ status: 404 });
    expect(await run("screenshot", {})).toMatchObject({ status: 400 });
    expect(await ask(`${at}/api/tools/screenshot`, "GET", {})).toMatchObject({ status: 405 });
  });

  test("switched off, has no endpoint and no JSON for it; everything else is as it was", async () => {
    board.isEnabled = false;
    expect(await ask(`${at}/mcp`, "POST", version, rpc("tools/list"))).toMatchObject({ status: 404, json: undefined });
    expect(await ask(`${at}/health`, "GET", {})).toMatchObject({ status: 200 });
    board.isEnabled = true;
  });
});

/** A client of the phone's WebSocket: questions by id, events in order. */
class LauncherClient {
  readonly #socket: WebSocket;
  readonly #arrived: Json[] = [];
  #wake: () => void = () => undefined;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on("message", (data: Buffer) => {
      this.#arrived.push(JSON.parse(data.toString("utf8")) as Json);
      this.#wake();
    });
  }

  static open(url: string): Promise<LauncherClient> {
    const socket = new WebSocket(url, { headers: AUTH });
    const opened = new Promise<LauncherClient>((resolve, reject) => {
      socket.once("open", () => resolve(new LauncherClient(socket)));
      socket.once("error", reject);
    });
    return within(SOON_MS, "the handshake", opened);
  }

  async ask(message: Json): Promise<Json> {
    const requestId = crypto.randomUUID();
    this.#socket.send(JSON.stringify({ requestId, ...message }));
    const answer = await this.next();
    expect(answer["requestId"]).toBe(requestId);
    return answer;
  }

  async next(): Promise<Json> {
    if (this.#arrived.length === 0) await within(SOON_MS, "a message", new Promise<void>((resolve) => (this.#wake = resolve)));
    return this.#arrived.shift() ?? {};
  }

  close(): void {
    this.#socket.close();
  }
}
