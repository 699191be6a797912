/**
 * One stdio client at one MCP URL. Messages cross as the client and the relay wrote them; what HTTP needs beside them
 * (session, headers, cancellation) is made here for either era, and a session that is gone is opened again.
 */
import type { IncomingMessage } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { nameHeader } from "../../agent/upstreams/http-headers.ts";
import { META } from "../../agent/upstreams/revisions.ts";
import { RPC } from "../../errors.ts";
import { CONNECT } from "../../limits.ts";
import { isEventStream, readLine, readStream } from "./answers.ts";
import { errorOf, Flight, refusalOf } from "./flight.ts";
import { cancelledIdText, isRecord, readClientMessage, type ClientMessage } from "./message.ts";
import { ParamRules } from "./param-rules.ts";
import type { RelayHttp } from "./relay-http.ts";
import { Session } from "./session.ts";
import { SessionStream } from "./session-stream.ts";

export interface BridgeOptions {
  http: RelayHttp;
  /** Writes one line to the client; resolves when it is taken. */
  write: (line: string) => Promise<void>;
  /** Tells the person, beside the protocol. */
  warn: (text: string) => void;
}

const POST_HEADERS = { accept: "application/json, text/event-stream", "content-type": "application/json" };
const LISTEN_METHOD = "subscriptions/listen";

export class Bridge {
  readonly #options: BridgeOptions;
  readonly #flights = new Set<Flight>();
  readonly #session = new Session();
  readonly #rules = new ParamRules();
  readonly #stream: SessionStream;
  /** The last message that later ones must not overtake. */
  #gate: Promise<unknown> = Promise.resolve();
  /** The stateless version that the client speaks, once it did. */
  #modern: string | undefined;
  readonly #over = new AbortController();

  constructor(options: BridgeOptions) {
    this.#options = options;
    this.#stream = new SessionStream({
      open: async (signal) => await this.#openStream(signal),
      write: options.write,
      lost: async () => await this.#reopen(this.#session.id),
      signal: this.#over.signal,
    });
  }

  /** One line of the client. Never throws; what cannot be answered is told to the person. */
  take(line: Uint8Array): void {
    const message = readClientMessage(line);
    if (message === null) {
      this.#options.warn("ignored a line that is no JSON-RPC message");
      void this.#write(
        JSON.stringify({ jsonrpc: "2.0", id: null, error: { code: RPC.parseError, message: "This is no JSON-RPC message." } }),
      );
      return;
    }
    if (message.modern !== undefined) this.#modern = message.modern;
    const cancelled = cancelledIdText(message);
    if (cancelled !== undefined && !this.#mayTellRelay(cancelled)) return;
    if (message.ids.length > 0) void this.#request(message);
    else this.#tell(message);
  }

  /** The client left: what is in flight may end for a moment, then the session is closed. */
  async end(): Promise<void> {
    const late = new AbortController();
    const pending = [...this.#flights].filter((flight) => flight.message.method !== LISTEN_METHOD).map(async (flight) => await flight.done);
    const limit = sleep(CONNECT.endMs, undefined, { signal: late.signal }).catch(() => undefined);
    await Promise.race([Promise.all([this.#gate, ...pending]), limit]);
    late.abort();
    this.#over.abort();
    for (const flight of this.#flights) flight.cancel();
    if (this.#session.id === undefined) return;
    const request = { method: "DELETE" as const, headers: this.#session.headers(), mayRepeat: false };
    await this.#options.http.open(request, AbortSignal.timeout(CONNECT.goodbyeMs)).then(
      (response) => response.resume(),
      () => undefined, // The relay ends an idle session by itself.
    );
  }

  /** False when nothing is left to tell: a stateless call is cancelled by closing it, and one that never left needs no word. */
  #mayTellRelay(id: string): boolean {
    const flight = [...this.#flights].find(({ unanswered }) => unanswered.includes(id));
    if (flight === undefined) return this.#session.id !== undefined;
    if (flight.isSent && flight.message.modern === undefined) {
      flight.isCancelled = true;
      return true;
    }
    flight.cancel();
    return false;
  }

  /** Notifications and responses: sent one after the other, and before what the client writes next. */
  #tell(message: ClientMessage): void {
    this.#gate = this.#gate.then(async () => {
      this.#session.note(message);
      const response = await this.#post(message, this.#over.signal, true).catch(() => undefined);
      response?.resume();
      const status = response?.statusCode ?? 0;
      if (status === 404 && this.#session.id !== undefined) await this.#reopen(this.#session.id);
      else if (status < 200 || status > 299)
        this.#options.warn(`the relay did not take ${message.method ?? "a response"} (HTTP ${status})`);
      else if (message.method === "notifications/initialized" && this.#session.id !== undefined) this.#stream.start();
    });
  }

  async #request(message: ClientMessage): Promise<void> {
    const flight = new Flight(message);
    this.#flights.add(flight);
    const gate = this.#gate;
    // Nothing of a session may overtake its handshake.
    if (message.method === "initialize") this.#gate = flight.done;
    try {
      await gate;
      await this.#fly(flight);
      await this.#fail(flight, errorOf(new Error("the stream ended"), true));
    } catch (error) {
      await this.#fail(flight, errorOf(error, flight.isSent)).catch(() => undefined);
    } finally {
      this.#flights.delete(flight);
      flight.finish();
    }
  }

  async #fly(flight: Flight): Promise<void> {
    const { message, signal } = flight;
    if (message.method === "initialize") this.#session.begin(message, undefined, undefined);
    for (let tries = 0; ; tries += 1) {
      const session = message.modern === undefined ? this.#session.id : undefined;
      signal.throwIfAborted();
      const onSent = (): void => void (flight.isSent = true);
      const response = await this.#post(message, signal, message.method !== "tools/call", onSent);
      if (response.statusCode === 404 && session !== undefined && tries === 0 && (await this.#reopen(session))) response.resume();
      else if (response.statusCode === 400 && message.modern !== undefined && tries === 0) {
        const line = await readLine(response);
        if (message.method !== "tools/call" || !isHeaderMismatch(line) || !(await this.#learn(message, signal)))
          return await this.#deliver(flight, response, line);
      } else return await this.#answer(flight, response);
    }
  }

  async #answer(flight: Flight, response: IncomingMessage): Promise<void> {
    if (!isEventStream(response)) return await this.#deliver(flight, response, await readLine(response));
    await readStream(response, async (line) => await this.#deliver(flight, response, line));
  }

  async #deliver(flight: Flight, response: IncomingMessage, line: Buffer): Promise<void> {
    const status = response.statusCode ?? 0;
    // An empty 2xx is the answer to a call that the client itself cancelled.
    if (line.length === 0 && status < 300) return void (flight.isCancelled = true);
    const value = parsed(line);
    const isRpc = Array.isArray(value) || (isRecord(value) && value["jsonrpc"] === "2.0");
    if (!isRpc) return await this.#fail(flight, refusalOf(status, line.toString("utf8", 0, 2_000)));
    if (flight.message.method === "initialize" && isRecord(value) && isRecord(value["result"])) {
      const version = value["result"]["protocolVersion"];
      const id = response.headers["mcp-session-id"];
      this.#session.begin(flight.message, typeof id === "string" ? id : undefined, typeof version === "string" ? version : undefined);
    } else if (isRecord(value) && value["result"] !== undefined) this.#session.note(flight.message);
    for (const text of Array.isArray(value) ? value.map((one) => JSON.stringify(one)) : [line]) {
      const out = flight.answer(Buffer.from(text));
      await this.#write(out);
    }
  }

  /** Answers what is still unanswered with an error; a cancelled request gets none. */
  async #fail(flight: Flight, error: object): Promise<void> {
    if (flight.isCancelled) return;
    for (const id of flight.unanswered) {
      flight.settle(id);
      await this.#write(`{"jsonrpc":"2.0","id":${id},"error":${JSON.stringify(error)}}`);
    }
  }

  async #post(message: ClientMessage, signal: AbortSignal, mayRepeat: boolean, onSent?: () => void): Promise<IncomingMessage> {
    const request = { method: "POST" as const, headers: this.#headers(message), body: message.text, mayRepeat };
    return await this.#options.http.open(onSent === undefined ? request : { ...request, onSent }, signal);
  }

  #headers(message: ClientMessage): Record<string, string> {
    const { method, params } = message;
    const isModern = message.modern !== undefined || (message.kind === "notification" && this.#session.id === undefined);
    if (method === "initialize") return POST_HEADERS;
    if (!isModern || this.#modern === undefined) return { ...POST_HEADERS, ...this.#session.headers() };
    const target = params["name"] ?? params["uri"];
    return {
      ...POST_HEADERS,
      "mcp-protocol-version": message.modern ?? this.#modern,
      ...(method === undefined ? {} : { "mcp-method": method }),
      ...nameHeader(method ?? "", typeof target === "string" ? target : undefined),
      ...(method === "tools/call" ? this.#rules.headers(params) : {}),
    };
  }

  async #openStream(signal: AbortSignal): Promise<IncomingMessage> {
    const headers = { accept: "text/event-stream", ...this.#session.headers() };
    return await this.#options.http.open({ method: "GET", headers, mayRepeat: true }, signal);
  }

  async #reopen(lost: string | undefined): Promise<boolean> {
    if (lost === undefined) return false;
    return await this.#session.reopen(lost, async (body, headers) => {
      const request = { method: "POST" as const, headers: { ...POST_HEADERS, ...headers }, body, mayRepeat: true };
      const response = await this.#options.http.open(request, this.#over.signal);
      const value = await outcome(response);
      const id = response.headers["mcp-session-id"];
      const result = isRecord(value) ? value["result"] : undefined;
      if (body.includes(`"initialize"`) && !isRecord(result)) return null;
      const version = isRecord(result) ? result["protocolVersion"] : undefined;
      return { ...(typeof id === "string" ? { sessionId: id } : {}), ...(typeof version === "string" ? { version } : {}) };
    });
  }

  /** Learns which arguments are mirrored in headers. False when the call would be sent as it was. */
  async #learn(call: ClientMessage, signal: AbortSignal): Promise<boolean> {
    const before = JSON.stringify(this.#headers(call));
    await this.#rules.learn(async (cursor) => {
      const params = { ...(cursor === undefined ? {} : { cursor }), _meta: metaOf(call) };
      const text = JSON.stringify({ jsonrpc: "2.0", id: "connect-tools", method: "tools/list", params });
      const value = await outcome(await this.#post({ ...call, text, method: "tools/list", params }, signal, true));
      return isRecord(value) ? value["result"] : undefined;
    });
    return JSON.stringify(this.#headers(call)) !== before;
  }

  async #write(line: string): Promise<void> {
    await this.#options.write(line);
  }
}

/** The reserved members that every request of the stateless revision needs, without a call's own. */
function metaOf({ params }: ClientMessage): Record<string, unknown> {
  const meta = isRecord(params["_meta"]) ? params["_meta"] : {};
  return Object.fromEntries([META.protocolVersion, META.clientCapabilities, META.clientInfo].map((key) => [key, meta[key]]));
}

/** The last message of an answer. */
async function outcome(response: IncomingMessage): Promise<unknown> {
  if (!isEventStream(response)) return parsed(await readLine(response));
  let last: unknown;
  await readStream(response, async (line) => await Promise.resolve(void (last = parsed(line))));
  return last;
}

function isHeaderMismatch(line: Buffer): boolean {
  const value = parsed(line);
  return isRecord(value) && isRecord(value["error"]) && value["error"]["code"] === RPC.headerMismatch;
}

function parsed(line: Buffer): unknown {
  try {
    return JSON.parse(line.toString("utf8"));
  } catch {
    return undefined; // No JSON is no message.
  }
}
