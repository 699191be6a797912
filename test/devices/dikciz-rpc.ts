/** The phone's three protocol modes: stateless, negotiated sessions, and sessions at the stateless version (its own old clients). */
import { toolResult, type DikcizTools } from "./dikciz-tools.ts";
import type { DikcizSessions, PhoneSession } from "./dikciz-sessions.ts";
import { one, type Seen } from "./http-device.ts";
import { decodeName, isObject, META, MODERN, objectAt, type Json } from "./json.ts";

const LEGACY = ["2025-11-25", "2025-06-18", "2025-03-26"];
const NAMED = new Map([
  ["tools/call", "name"],
  ["resources/read", "uri"],
]);
const CACHE = { ttlMs: 0, cacheScope: "private" };
const INFO = { name: "dikciz", version: "1.0.0" };
const INSTRUCTIONS = "Read control status first.";
const PAGE = "dikciz://page/Küche";

export interface RpcAnswer {
  status: number;
  body?: Json;
  headers?: Record<string, string>;
}

/** What a request may do besides being answered. */
export interface Wire {
  /** Sends a message of the event stream, or a comment, opening it. */
  stream(message?: Json): void;
  /** Aborted when the caller's connection is gone. */
  left: AbortSignal;
}

export class DikcizRpc {
  readonly #sessions: DikcizSessions;
  readonly #tools: DikcizTools;
  /** Calls of sessions, to be cancelled by notification. */
  readonly #running = new Map<string, AbortController>();

  constructor(sessions: DikcizSessions, tools: DikcizTools) {
    this.#sessions = sessions;
    this.#tools = tools;
  }

  async answer(request: Seen, wire: Wire): Promise<RpcAnswer> {
    const message = request.json ?? {};
    const sessionId = one(request, "mcp-session-id");
    if (message["method"] === "initialize") return this.#initialize(message, sessionId);
    if (sessionId !== undefined) return await this.#inSession(request, message, sessionId, wire);
    const refusal = modernRefusal(request, message);
    if (refusal) return refusal;
    if (message["id"] === undefined) return { status: 202 };
    return await this.#method(message, { wire, signal: wire.left, isModern: true });
  }

  #initialize(message: Json, sessionId: string | undefined): RpcAnswer {
    const params = objectAt(message, "params");
    const { name, version } = objectAt(params, "clientInfo");
    if (sessionId !== undefined) return refused(400, "initialize has no session");
    if (typeof name !== "string" || typeof version !== "string" || !isObject(params["capabilities"])) return refused(400, "initialize");
    const offered = String(params["protocolVersion"]);
    // An unknown offer is negotiated, never refused; old clients of its own shake hands at the stateless version.
    const agreed = [MODERN, ...LEGACY].includes(offered) ? offered : "2025-11-25";
    const session = this.#sessions.open(agreed);
    if (!session) return refused(429, "too many active MCP sessions");
    const capabilities = { tools: { listChanged: false }, resources: {} };
    return result(
      message,
      { protocolVersion: agreed, capabilities, serverInfo: INFO, instructions: INSTRUCTIONS },
      { "mcp-session-id": session.id },
    );
  }

  async #inSession(request: Seen, message: Json, sessionId: string, wire: Wire): Promise<RpcAnswer> {
    const session = this.#sessions.use(sessionId);
    if (!session) return refused(404, "MCP session was not found");
    if (one(request, "mcp-protocol-version") !== session.version) return refused(400, "MCP-Protocol-Version does not match the session");
    const isCustom = session.version === MODERN;
    if (isCustom && message["id"] !== undefined && !isObject(objectAt(objectAt(message, "params"), "_meta")[META.clientCapabilities])) {
      return refused(400, "request metadata is required");
    }
    if (message["method"] === "notifications/initialized") {
      if (message["id"] !== undefined) return refused(400, "a notification has no id");
      session.isReady = true;
      return { status: 202 };
    }
    if (message["method"] === "notifications/cancelled") {
      this.#running.get(callKey(session, objectAt(message, "params")["requestId"]))?.abort();
      return { status: 202 };
    }
    if (message["id"] === undefined) return { status: 202 };
    if (message["method"] === "ping") return result(message, {});
    if (!session.isReady) return refused(400, "the session is not initialized");
    return await this.#owned(session, message, wire, isCustom);
  }

  /** A call of a session ends by its notification or with the session; a connection that drops ends nothing (2025-11-25). */
  async #owned(session: PhoneSession, message: Json, wire: Wire, isModern: boolean): Promise<RpcAnswer> {
    const key = callKey(session, message["id"]);
    const cancel = new AbortController();
    const end = (): void => cancel.abort();
    this.#running.set(key, cancel);
    session.streams.add(end);
    try {
      return await this.#method(message, { wire, signal: cancel.signal, isModern });
    } finally {
      session.streams.delete(end);
      this.#running.delete(key);
    }
  }

  async #method(message: Json, on: { wire: Wire; signal: AbortSignal; isModern: boolean }): Promise<RpcAnswer> {
    const params = objectAt(message, "params");
    const cacheable = (value: Json): RpcAnswer => result(message, on.isModern ? { resultType: "complete", ...CACHE, ...value } : value);
    switch (message["method"]) {
      case "server/discover":
        if (!on.isModern) return unknown(message);
        return cacheable({
          supportedVersions: [MODERN, ...LEGACY],
          capabilities: { tools: {}, resources: {} },
          instructions: INSTRUCTIONS,
          _meta: { [META.serverInfo]: INFO },
        });
      case "tools/list":
        return cacheable({ tools: this.#tools.list() });
      case "resources/list":
        return cacheable({ resources: [{ uri: PAGE, name: "kitchen page", mimeType: "application/json" }] });
      case "resources/read":
        if (params["uri"] !== PAGE) return error(message, 400, -32602, "resource was not found");
        return cacheable({ contents: [{ uri: PAGE, mimeType: "application/json", text: '{"title":"Küche"}' }] });
      case "tools/call":
        return await this.#call(message, on);
      default:
        return unknown(message);
    }
  }

  async #call(message: Json, { wire, signal, isModern }: { wire: Wire; signal: AbortSignal; isModern: boolean }): Promise<RpcAnswer> {
    const params = objectAt(message, "params");
    const name = String(params["name"]).replace(/^dikciz_/, "");
    if (!this.#tools.has(name) || name === params["name"]) return error(message, 400, -32602, "tool was not found");
    const progressToken = objectAt(params, "_meta")["progressToken"];
    if (name === "shell") wire.stream();
    let progress = 0;
    const line = (text: string): void => {
      progress += 1;
      if (progressToken !== undefined) {
        wire.stream({ jsonrpc: "2.0", method: "notifications/progress", params: { progressToken, progress, message: text } });
      }
    };
    const outcome = await this.#tools.run(name, objectAt(params, "arguments"), { line, signal });
    return result(message, { ...(isModern ? { resultType: "complete" } : {}), ...toolResult(outcome) });
  }
}

/** The checks of a stateless request, in the order of its table. */
function modernRefusal(request: Seen, message: Json): RpcAnswer | undefined {
  const params = objectAt(message, "params");
  const meta = objectAt(params, "_meta");
  const header = one(request, "mcp-protocol-version");
  const mismatch = (what: string): RpcAnswer => error(message, 400, -32020, `${what} does not match the body`);
  if (header === undefined) return mismatch("MCP-Protocol-Version");
  if (header !== MODERN) {
    return error(message, 400, -32022, "Unsupported protocol version", { requested: header, supported: [MODERN] });
  }
  if (one(request, "mcp-method") !== message["method"]) return mismatch("Mcp-Method");
  const member = NAMED.get(String(message["method"]));
  if (member !== undefined && decodeName(one(request, "mcp-name") ?? "") !== params[member]) return mismatch("Mcp-Name");
  if (message["id"] === undefined) return undefined;
  if (!isObject(meta[META.clientCapabilities]) || meta[META.protocolVersion] === undefined) {
    return error(message, 400, -32602, "request metadata is required");
  }
  return meta[META.protocolVersion] === header ? undefined : mismatch("protocolVersion");
}

function callKey(session: PhoneSession, id: unknown): string {
  return `${session.id} ${JSON.stringify(id)}`;
}

function result(message: Json, value: Json, headers: Record<string, string> = {}): RpcAnswer {
  return { status: 200, body: { jsonrpc: "2.0", id: message["id"], result: value }, headers };
}

function error(message: Json, status: number, code: number, text: string, data?: Json): RpcAnswer {
  const body = { jsonrpc: "2.0", id: message["id"], error: { code, message: text, ...(data === undefined ? {} : { data }) } };
  return { status, body };
}

/** 404 in every mode: its document says so for the stateless one, and is silent on the others. */
function unknown(message: Json): RpcAnswer {
  return error(message, 404, -32601, "Method not found");
}

/** A refusal before the message counts as a request. */
function refused(status: number, message: string): RpcAnswer {
  return { status, body: { jsonrpc: "2.0", id: null, error: { code: -32600, message } } };
}
