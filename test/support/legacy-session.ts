/** A client of the handshake era by hand: every header and message is the test's own. */
import { EventReader } from "./event-reader.ts";
import { messagesOf } from "./sse-messages.ts";

type Json = Record<string, unknown>;
/** Answers a server request: a result, `{ error }`, or undefined for no answer at all. */
export type Answering = (request: { id: string; method: string; params?: Json }) => Json | undefined | Promise<Json | undefined>;

export interface Exchange {
  /** Notifications and server requests before the answer. */
  before: Json[];
  answer: Json | undefined;
  contentType: string | null;
}

export class LegacySession {
  readonly url: string;
  readonly token: string;
  readonly version: string;
  readonly id: string;
  readonly initialized: Json;
  #nextId = 1;

  private constructor(url: string, token: string, opened: { version: string; id: string; initialized: Json }) {
    this.url = url;
    this.token = token;
    this.version = opened.version;
    this.id = opened.id;
    this.initialized = opened.initialized;
  }

  static async open(url: string, token: string, capabilities: object = {}, version = "2025-11-25"): Promise<LegacySession> {
    const params = { protocolVersion: version, capabilities, clientInfo: { name: "by-hand", version: "1" } };
    const response = await fetch(url, {
      method: "POST",
      headers: headersOf(token),
      body: JSON.stringify({ jsonrpc: "2.0", id: 0, method: "initialize", params }),
    });
    const id = response.headers.get("mcp-session-id");
    const body = (await response.json()) as { result?: Json };
    if (id === null || body.result === undefined) throw new Error(`no session: ${response.status} ${JSON.stringify(body)}`);
    return new LegacySession(url, token, { version: String(body.result["protocolVersion"]), id, initialized: body.result });
  }

  /** Sends one message, or a batch, in the session. */
  post(message: unknown, init: { signal?: AbortSignal; headers?: Record<string, string> } = {}): Promise<Response> {
    return fetch(this.url, {
      method: "POST",
      headers: { ...headersOf(this.token), "mcp-session-id": this.id, "mcp-protocol-version": this.version, ...init.headers },
      body: JSON.stringify(message),
      ...(init.signal === undefined ? {} : { signal: init.signal }),
    });
  }

  /** A request with its stream read to the end; server requests on it are answered by POST. */
  async request(method: string, params: Json = {}, answering?: Answering, id: unknown = this.#nextId++): Promise<Exchange> {
    const response = await this.post({ jsonrpc: "2.0", id, method, params });
    const exchange: Exchange = { before: [], answer: undefined, contentType: response.headers.get("content-type") };
    for await (const { message } of messagesOf(response)) {
      if (!("method" in message)) {
        exchange.answer = message;
        continue;
      }
      exchange.before.push(message);
      if ("id" in message) await this.#answer(message as { id: string; method: string }, answering);
    }
    return exchange;
  }

  /** The text of a tool's result, as JSON. */
  async callTool(name: string, args: Json = {}, answering?: Answering): Promise<{ value: unknown } & Exchange> {
    const exchange = await this.request("tools/call", { name, arguments: args }, answering);
    return { value: toolValue(exchange.answer), ...exchange };
  }

  /** The session's own stream, open. */
  async stream(): Promise<EventReader> {
    const headers = { ...headersOf(this.token), "mcp-session-id": this.id, "mcp-protocol-version": this.version };
    const response = await fetch(this.url, { headers });
    if (response.status !== 200) throw new Error(`no stream: ${response.status}`);
    return new EventReader(response);
  }

  async end(): Promise<number> {
    const headers = { ...headersOf(this.token), "mcp-session-id": this.id };
    return (await fetch(this.url, { method: "DELETE", headers })).status;
  }

  async #answer(request: { id: string; method: string; params?: Json }, answering: Answering | undefined): Promise<void> {
    const answer = await answering?.(request);
    if (answer === undefined) return;
    const outcome = "error" in answer ? answer : { result: answer };
    const { status } = await this.post({ jsonrpc: "2.0", id: request.id, ...outcome });
    if (status !== 202) throw new Error(`an answer was not taken: ${status}`);
  }
}

/** The text content of a tool's answer, read as JSON where it is JSON. */
export function toolValue(answer: Json | undefined): unknown {
  const result = answer?.["result"] as { content?: { text?: string }[] } | undefined;
  const text = result?.content?.[0]?.text;
  try {
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    return text;
  }
}

function headersOf(token: string): Record<string, string> {
  return {
    authorization: `Bearer ${token}`,
    accept: "application/json, text/event-stream",
    "content-type": "application/json",
  };
}
