/**
 * A Streamable HTTP upstream, seen twice: the SDK client speaks through `transport`, calls are POSTs of our own with
 * the negotiated version and session. A server request on a call's own stream belongs to that call for certain.
 */
import { StreamableHTTPClientTransport, type JSONRPCMessage, type MessageExtraInfo, type Transport } from "@modelcontextprotocol/client";
import { failure } from "../failure.ts";
import type { HttpConfig } from "../types.ts";
import { ExchangeError, openExchange } from "./http-exchange.ts";
import { HttpCall, SESSION_EXPIRED } from "./http-call.ts";
import { headerValue } from "./http-headers.ts";
import { SILENT, type Lane, type LaneListener, type RawCall, type RawListener, type RawRequest } from "./lane.ts";
import { readMessages } from "./message.ts";
import { oneLine } from "./params.ts";
import { Waiters } from "./waiters.ts";

/** The SDK's transport with a tap: server requests and notifications of its streams are seen by the lane first. */
class HttpPort implements Transport {
  readonly hasPerRequestStream = true;
  onclose?: (() => void) | undefined;
  onerror?: ((error: Error) => void) | undefined;
  onmessage?: Transport["onmessage"];
  readonly #inner: StreamableHTTPClientTransport;
  readonly #lane: HttpLane;

  constructor(inner: StreamableHTTPClientTransport, lane: HttpLane) {
    this.#inner = inner;
    this.#lane = lane;
  }

  get sessionId(): string | undefined {
    return this.#inner.sessionId;
  }

  setProtocolVersion(version: string): void {
    this.#inner.setProtocolVersion(version);
  }

  async start(): Promise<void> {
    // The SDK's transports have these three properties and no other way to listen.
    // oxlint-disable unicorn/prefer-add-event-listener -- not an EventTarget
    this.#inner.onclose = () => this.onclose?.();
    this.#inner.onerror = (error) => this.onerror?.(error);
    this.#inner.onmessage = (message: JSONRPCMessage, extra?: MessageExtraInfo) => {
      if (!this.#lane.tap(message)) this.onmessage?.(message, extra);
    };
    // oxlint-enable unicorn/prefer-add-event-listener
    await this.#inner.start();
  }

  async send(message: JSONRPCMessage, options?: Parameters<Transport["send"]>[1]): Promise<void> {
    const inner: Transport = this.#inner;
    await inner.send(message, options);
  }

  async close(): Promise<void> {
    await this.#inner.close();
  }

  /** Tells a legacy upstream that its session is over. */
  async endSession(): Promise<void> {
    await this.#inner.terminateSession();
  }
}

export class HttpLane implements Lane {
  readonly transport: HttpPort;
  readonly hasOwnStreams = true;
  listener: LaneListener = SILENT;
  readonly #config: HttpConfig;
  readonly #waiters = new Waiters();
  readonly #closing = new AbortController();
  #isModern = false;
  #protocol: string | undefined;

  constructor(config: HttpConfig) {
    this.#config = config;
    const inner = new StreamableHTTPClientTransport(config.url, { requestInit: { headers: { ...config.headers } } });
    this.transport = new HttpPort(inner, this);
  }

  /** Tells what the connection speaks; raw requests follow it. */
  negotiated(era: "modern" | "legacy", protocol: string): void {
    this.#isModern = era === "modern";
    this.#protocol = protocol;
  }

  request(request: RawRequest, listener: RawListener): RawCall {
    const { id, settled } = this.#waiters.add(listener);
    const body = `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"method":${JSON.stringify(request.method)},"params":${request.params(id)}}`;
    const abort = new AbortController();
    const call = new HttpCall({
      id,
      url: this.#config.url,
      headers: { ...this.#headers(), ...(this.#isModern ? { "mcp-method": headerValue(request.method) } : {}), ...request.headers },
      body,
      mayResume: !this.#isModern,
      signal: AbortSignal.any([abort.signal, this.#closing.signal]),
      listener,
    });
    void call.run().then((outcome) => {
      this.#waiters.settle(id, outcome);
      // After the call has its outcome: what follows closes this connection.
      if (outcome.kind === "failed" && outcome.failure.data?.["why"] === SESSION_EXPIRED) this.listener.closed(outcome.failure);
    });
    return {
      id,
      settled,
      cancel: (reason) => {
        if (!this.#waiters.cancel(id)) return;
        // A modern upstream takes the closed stream for the cancel; a legacy one has to be told.
        if (!this.#isModern)
          this.#post(JSON.stringify({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: id, reason } }));
        abort.abort();
      },
    };
  }

  respond(id: string, kind: "result" | "error", body: string): void {
    this.#post(`{"jsonrpc":"2.0","id":${id},"${kind}":${oneLine(body)}}`);
  }

  /** Looks at a message of the SDK's own streams; true when it is not for the SDK. */
  tap(message: JSONRPCMessage): boolean {
    if (!("method" in message)) return false;
    const bytes = new TextEncoder().encode(JSON.stringify(message));
    const read = readMessages(bytes)?.[0]?.message;
    if (!read || read.kind === "response") return false;
    if (read.kind === "request") {
      this.listener.request(read.message);
      return true;
    }
    this.listener.notification(read.message);
    return read.message.method === "notifications/message" || read.message.method === "notifications/progress";
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#waiters.failAll(failure("upstream_failed", "unknown", "The connection to the tool server was closed."));
    if (!this.#isModern && this.transport.sessionId !== undefined) {
      try {
        await this.transport.endSession();
      } catch {
        // The session ends by itself at the upstream.
      }
    }
    await this.transport.close();
  }

  #headers(): Record<string, string> {
    const { sessionId } = this.transport;
    const protocolVersion = this.#protocol;
    return {
      ...this.#config.headers,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      ...(protocolVersion === undefined ? {} : { "mcp-protocol-version": protocolVersion }),
      ...(sessionId === undefined ? {} : { "mcp-session-id": sessionId }),
    };
  }

  /** A notification or an answer: nobody waits for the reply. */
  #post(body: string): void {
    openExchange({ url: this.#config.url, method: "POST", headers: this.#headers(), body }, this.#closing.signal).then(
      (response) => response.resume(),
      (error: unknown) => this.listener.odd(`a message could not be sent (${error instanceof ExchangeError ? error.code : "failed"})`),
    );
  }
}
