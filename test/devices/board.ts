/**
 * The reference board: an HTTP agent without authentication whose MCP endpoint is lenient where it sees no metadata
 * and strict where it does. Built from its table by hand, as no SDK is that lenient.
 */
import type { ServerResponse } from "node:http";
import { BoardTools, type BoardOutcome, type BoardToolsOptions } from "./board-tools.ts";
import { listenHttp, one, reply, type HttpDevice, type Seen } from "./http-device.ts";
import { decodeName, isObject, META, MODERN, objectAt, text, type Json } from "./json.ts";

const VERSIONS = [MODERN, "2025-11-25"];
const INFO = { name: "aico-agent", version: "1.4.0" };
const PLAIN = /^\/api\/tools\/([a-z_]+)$/;

export interface BoardOptions extends BoardToolsOptions {
  /** Where it listens; a free port of 127.0.0.1 by default. */
  port?: number;
  host?: string;
}

export class Board {
  readonly tools: BoardTools;
  /** `mcp_enabled`: off, the endpoint is 404 and everything else is as it was. */
  isEnabled = true;
  /** MCP calls of tools, in order. */
  readonly calls: string[] = [];
  #http: HttpDevice | null = null;

  private constructor(options: BoardOptions) {
    this.tools = new BoardTools(options);
  }

  static async start(options: BoardOptions = {}): Promise<Board> {
    const board = new Board(options);
    board.#http = await listenHttp(async (request, response) => await board.#answer(request, response), options);
    return board;
  }

  get port(): number {
    return this.#http?.port ?? 0;
  }

  get seen(): Seen[] {
    return this.#http?.seen ?? [];
  }

  /** Callers' connections that are open now. */
  async connections(): Promise<number> {
    return (await this.#http?.open()) ?? 0;
  }

  /** Every caller's connection breaks, as when the USB device enumerates anew. */
  cut(): void {
    this.#http?.cut();
  }

  async stop(): Promise<void> {
    await this.#http?.stop();
  }

  async #answer(request: Seen, response: ServerResponse): Promise<void> {
    if (request.path === "/mcp" && this.isEnabled) return await this.#mcp(request, response);
    if (request.path === "/health") return reply(response, 200, { status: "ok" });
    if (request.path === "/api/tools" && request.method === "GET") return reply(response, 200, { tools: this.tools.plain() });
    const name = PLAIN.exec(request.path)?.[1];
    if (name !== undefined) return await this.#plain(name, request, response);
    response.writeHead(404, { "content-type": "text/plain" }).end("404 page not found\n");
  }

  async #mcp(request: Seen, response: ServerResponse): Promise<void> {
    if (request.method !== "POST") return reply(response, 405, undefined, { allow: "POST" });
    if (!isOriginAllowed(one(request, "origin"), one(request, "host"))) return reply(response, 403);
    const message = request.json;
    if (message === undefined) return reply(response, 400, rpcError(null, -32600, "batch requests are not supported"));
    const mismatch = strictMismatch(request, message);
    if (mismatch !== undefined) return reply(response, 400, rpcError(message["id"], -32020, `${mismatch} does not match the body`));
    if (message["id"] === undefined) return reply(response, 202);
    const result = await this.#method(message);
    if (result === undefined)
      return reply(response, 404, rpcError(message["id"], -32601, `Method not found: ${String(message["method"])}`));
    // Every success is marked, in legacy answers too.
    return reply(response, 200, { jsonrpc: "2.0", id: message["id"], result: { resultType: "complete", ...result } });
  }

  async #method(message: Json): Promise<Json | undefined> {
    const params = objectAt(message, "params");
    switch (message["method"]) {
      case "ping":
        return {};
      case "server/discover":
        // Neither ttlMs nor cacheScope is among its members.
        return { supportedVersions: VERSIONS, capabilities: { tools: {} }, _meta: { [META.serverInfo]: INFO } };
      case "initialize": {
        const offered = String(params["protocolVersion"]);
        // Older versions imply batches, so they are negotiated away.
        return { protocolVersion: VERSIONS.includes(offered) ? offered : "2025-11-25", capabilities: { tools: {} }, serverInfo: INFO };
      }
      case "tools/list":
        return {
          tools: this.tools.listed().map((name) => ({ name, description: `The board's ${name}.`, inputSchema: { type: "object" } })),
        };
      case "tools/call": {
        const name = String(params["name"]);
        this.calls.push(name);
        if (!this.tools.listed().includes(name)) {
          return mcpResult({ output: "", error: { category: "invalid_input", code: "tool_not_found", message: `no tool ${name}` } });
        }
        return mcpResult(await this.tools.run(name, objectAt(params, "arguments")));
      }
      default:
        return undefined;
    }
  }

  /** The plain tool API: a tool's failure is HTTP 200 with `is_error`. */
  async #plain(tool: string, request: Seen, response: ServerResponse): Promise<void> {
    if (!this.tools.plain().includes(tool)) return reply(response, 404, { error: "unknown tool" });
    if (request.method !== "POST") return reply(response, 405, { error: "method not allowed" });
    const given = request.json;
    const raw = given?.["raw_input"] ?? JSON.stringify(given?.["input"]);
    if (given === undefined || typeof raw !== "string") return reply(response, 400, { error: "input or raw_input is required" });
    const began = Date.now();
    const { output, error, image } = await this.tools.run(tool, isObject(given["input"]) ? given["input"] : {});
    const withData = image === undefined ? output : JSON.stringify({ ...(JSON.parse(output) as Json), data: image });
    return reply(response, 200, {
      tool,
      raw_input: raw,
      output: withData,
      is_error: error !== undefined,
      ...(error === undefined ? {} : { error }),
      duration_ms: Date.now() - began,
      called_at: new Date(began).toISOString(),
    });
  }
}

/** An Origin must name an address or localhost, and be the Host that was asked. */
function isOriginAllowed(origin: string | undefined, host: string | undefined): boolean {
  if (origin === undefined) return true;
  const url = URL.canParse(origin) ? new URL(origin) : undefined;
  if (url === undefined) return false;
  return (url.hostname === "localhost" || /^[\d.]+$|^\[/.test(url.hostname)) && url.host === host;
}

/** What differs between headers and body, checked only when `_meta` names the stateless version or `Mcp-Method` was sent. */
function strictMismatch(request: Seen, message: Json): string | undefined {
  const params = objectAt(message, "params");
  const inBody = objectAt(params, "_meta")[META.protocolVersion];
  const method = one(request, "mcp-method");
  if (inBody !== MODERN && method === undefined) return undefined;
  const version = one(request, "mcp-protocol-version");
  if (version === undefined || (inBody !== undefined && inBody !== version)) return "MCP-Protocol-Version";
  if (method !== message["method"]) return "Mcp-Method";
  const isNamed = message["method"] === "tools/call";
  return isNamed && decodeName(one(request, "mcp-name") ?? "") !== params["name"] ? "Mcp-Name" : undefined;
}

function mcpResult({ output, error, image, bundle }: BoardOutcome): Json {
  if (error !== undefined) return { isError: true, content: [text(error.message)], structuredContent: error };
  if (bundle !== undefined) {
    const resource = { uri: "aico://support/2026-11-30.tar.gz", mimeType: "application/gzip", blob: bundle };
    return { isError: false, content: [{ type: "resource", resource }] };
  }
  const picture = image === undefined ? [] : [{ type: "image", mimeType: "image/jpeg", data: image }];
  return { isError: false, content: [text(output), ...picture] };
}

function rpcError(id: unknown, code: number, message: string): Json {
  return { jsonrpc: "2.0", id, error: { code, message } };
}
