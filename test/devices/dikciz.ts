/**
 * The reference phone: an Android launcher that serves MCP of both eras on its loopback, strictly. Built from its
 * table by hand, as no SDK refuses what it refuses.
 */
import type { ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { startEvents, type DikcizEvents } from "./dikciz-events.ts";
import { DikcizRpc, type RpcAnswer } from "./dikciz-rpc.ts";
import { DikcizSessions } from "./dikciz-sessions.ts";
import { DikcizTools } from "./dikciz-tools.ts";
import { listenHttp, one, reply, type HttpDevice, type Seen } from "./http-device.ts";
import type { Json } from "./json.ts";

const MAX_HEADER_BYTES = 8_192;
const MAX_BODY_BYTES = 8 * 1024 * 1024;
/** A pool of four, of which the accept loop takes one. */
const WORKERS = 3;
const ORIGIN = /^https?:\/\/(?:127\.0\.0\.1|localhost)(?::\d+)?$/;

export interface DikcizOptions {
  /** Asked for on every request; none leaves the phone open. */
  password?: string;
  /** ms that checking it takes: bcrypt at cost 12 on a phone. */
  authMs?: number;
  /** The phone's clock in ms. */
  now?: () => number;
}

export class Dikciz {
  readonly sessions: DikcizSessions;
  readonly tools: DikcizTools;
  /** The most requests that were worked on at one time. */
  mostAtOnce = 0;
  readonly #options: DikcizOptions;
  readonly #rpc: DikcizRpc;
  readonly #waiting: (() => void)[] = [];
  #busy = 0;
  #http: HttpDevice | null = null;
  #events: DikcizEvents | null = null;

  private constructor(options: DikcizOptions) {
    this.#options = options;
    const now = options.now ?? Date.now;
    this.sessions = new DikcizSessions(now);
    this.tools = new DikcizTools(now);
    this.#rpc = new DikcizRpc(this.sessions, this.tools);
  }

  static async start(options: DikcizOptions = {}): Promise<Dikciz> {
    const phone = new Dikciz(options);
    phone.#http = await listenHttp(async (request, response) => await phone.#turn(request, response));
    phone.#events = await startEvents(phone.tools, async (header) => await phone.#isAllowed(header === undefined ? [] : [header]));
    return phone;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#http?.port ?? 0}/mcp`;
  }

  get seen(): Seen[] {
    return this.#http?.seen ?? [];
  }

  get events(): DikcizEvents {
    if (this.#events === null) throw new Error("the phone is not started");
    return this.#events;
  }

  async stop(): Promise<void> {
    await Promise.all([this.#http?.stop(), this.#events?.stop()]);
  }

  /** Three requests are worked on; the rest queue, answer included. */
  async #turn(request: Seen, response: ServerResponse): Promise<void> {
    if (this.#busy >= WORKERS) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#busy += 1;
    this.mostAtOnce = Math.max(this.mostAtOnce, this.#busy);
    try {
      await this.#answer(request, response);
    } finally {
      this.#busy -= 1;
      this.#waiting.shift()?.();
    }
  }

  async #answer(request: Seen, response: ServerResponse): Promise<void> {
    const refusal = readRefusal(request) ?? (await this.#authRefusal(request)) ?? routeRefusal(request);
    if (refusal) return refuse(response, ...refusal);
    if (request.method === "DELETE") return this.#delete(request, response);
    const left = new AbortController();
    response.once("close", () => left.abort());
    let isStream = false;
    const stream = (message?: Json): void => {
      if (!isStream) response.writeHead(200, { ...COMMON, "content-type": "text/event-stream", "x-accel-buffering": "no" });
      isStream = true;
      response.write(message === undefined ? ": keep-alive\n\n" : `data: ${JSON.stringify(message)}\n\n`);
    };
    const answer = await this.#rpc.answer(request, { stream, left: left.signal });
    if (!isStream) return respond(response, answer);
    stream(answer.body);
    response.end();
  }

  async #authRefusal(request: Seen): Promise<Refusal | undefined> {
    const origin = one(request, "origin");
    if (origin !== undefined && !ORIGIN.test(origin)) return [403, "origin is not allowed"];
    if (await this.#isAllowed(request.headers.get("authorization") ?? [])) return undefined;
    return [401, "a valid remote bearer credential is required", { "www-authenticate": 'Bearer realm="Dikciz"' }];
  }

  /** The password is checked anew for every request, slowly. */
  async #isAllowed(headers: readonly string[]): Promise<boolean> {
    const { password, authMs = 20 } = this.#options;
    if (password === undefined) return true;
    const given = headers.length === 1 ? /^bearer ([A-Za-z0-9\-._~+/=]{12,72})$/i.exec(headers[0] ?? "")?.[1] : undefined;
    if (given === undefined) return false;
    await sleep(authMs);
    return given === password;
  }

  #delete(request: Seen, response: ServerResponse): void {
    const id = one(request, "mcp-session-id");
    if (id === undefined) refuse(response, 400, "MCP-Session-Id is required");
    else if (this.sessions.close(id)) reply(response, 204, undefined, COMMON);
    else refuse(response, 404, "MCP session was not found");
  }
}

type Refusal = [status: number, message: string, headers?: Record<string, string>];

const COMMON = { connection: "close", "cache-control": "no-store" };

/** What is wrong with the request as such. Only a body with Content-Length is seen at all. */
function readRefusal(request: Seen): Refusal | undefined {
  if (request.httpVersion !== "1.1") return [400, "HTTP/1.1 is required"];
  if (request.headerBytes > MAX_HEADER_BYTES) return [400, "headers are too large"];
  for (const [name, values] of request.headers) if (values.length > 1 && name !== "authorization") return [400, `duplicate ${name}`];
  if (Buffer.byteLength(request.body) > MAX_BODY_BYTES) return [413, "request body is too large"];
  return undefined;
}

function routeRefusal(request: Seen): Refusal | undefined {
  if (request.path !== "/mcp") return [404, "not found"];
  if (request.method === "DELETE") return undefined;
  if (request.method !== "POST") return [405, "method not allowed", { allow: "POST, DELETE" }];
  if (!/^application\/json\b/.test(one(request, "content-type") ?? "")) return [415, "application/json is required"];
  const accept = one(request, "accept") ?? "";
  if (!accept.includes("application/json") || !accept.includes("text/event-stream")) return [406, "both types must be accepted"];
  if (request.json === undefined || !request.headers.has("content-length")) return [400, "request body must be a JSON object"];
  return undefined;
}

/** Every refusal of the HTTP layer has the same body. */
function refuse(response: ServerResponse, status: number, message: string, headers: Record<string, string> = {}): void {
  reply(response, status, { jsonrpc: "2.0", id: null, error: { code: -32600, message } }, { ...COMMON, ...headers });
}

function respond(response: ServerResponse, { status, body, headers }: RpcAnswer): void {
  reply(response, status, body, { ...COMMON, ...headers });
}
