/**
 * The tap transport: one stdio MCP server, seen twice. The SDK client speaks through `transport`; calls go past it,
 * by ids of our own, as bytes. Server requests never reach the SDK: who they belong to is decided by the instance.
 */
import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/client";
import { UPSTREAM } from "../../limits.ts";
import { failure } from "../failure.ts";
import type { StdioConfig } from "../types.ts";
import { Child } from "./child.ts";
import { parseValue } from "../../tunnel/json-scan.ts";
import { SILENT, type Lane, type LaneListener, type RawCall, type RawListener, type RawRequest } from "./lane.ts";
import { LineFramer, type Oversize } from "./line-framer.ts";
import { cancelledId, progressToken, readMessages, type UpstreamMessage } from "./message.ts";
import { oneLine } from "./params.ts";
import { startProblem } from "./process-group.ts";
import { Waiters } from "./waiters.ts";
import type { Watchdog } from "./watchdog.ts";

/** What the SDK client sees. It has `stderr` and `pid`, by which the SDK takes it for stdio and probes in place. */
class TapPort implements Transport {
  onclose?: (() => void) | undefined;
  onerror?: ((error: Error) => void) | undefined;
  onmessage?: Transport["onmessage"];
  readonly stderr = null;
  readonly #lane: StdioLane;

  constructor(lane: StdioLane) {
    this.#lane = lane;
  }

  get pid(): number | null {
    return this.#lane.pid;
  }

  async start(): Promise<void> {
    this.#lane.start();
  }

  async send(message: JSONRPCMessage): Promise<void> {
    if (!this.#lane.write(JSON.stringify(message))) throw new Error("the tool server does not take input");
  }

  async close(): Promise<void> {
    await this.#lane.close();
  }
}

export class StdioLane implements Lane {
  readonly transport: TapPort;
  readonly hasOwnStreams = false;
  listener: LaneListener = SILENT;
  readonly #config: StdioConfig;
  readonly #watchdog: Watchdog;
  readonly #waiters = new Waiters();
  readonly #framer: LineFramer;
  #child: Child | null = null;
  /** Why it ended, once it has. */
  #problem: string | null = null;

  constructor(config: StdioConfig, watchdog: Watchdog) {
    this.#config = config;
    this.#watchdog = watchdog;
    this.transport = new TapPort(this);
    this.#framer = new LineFramer(
      UPSTREAM.maxMessageBytes,
      (line) => this.#line(line),
      (line) => this.#oversize(line),
    );
  }

  get pid(): number | null {
    return this.#child?.pid ?? null;
  }

  /** Why the child ended; null while it runs. */
  get problem(): string | null {
    return this.#problem;
  }

  /** The end of the child's stderr, fit to be shown; "" for nothing. */
  get lastWords(): string {
    return this.#child?.lastWords ?? "";
  }

  start(): void {
    if (this.#child) return;
    try {
      this.#child = new Child(this.#config, this.#watchdog, {
        stdout: (chunk) => this.#framer.push(chunk),
        exit: (problem) => this.#ended(problem),
      });
    } catch (error) {
      this.#ended(startProblem(this.#config.command, error));
    }
  }

  /** One line to the child; false when it cannot be taken. */
  write(line: string): boolean {
    return this.#problem === null && (this.#child?.write(`${line}\n`) ?? false);
  }

  request(request: RawRequest, listener: RawListener): RawCall {
    const { id, settled } = this.#waiters.add(listener);
    const body = `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"method":${JSON.stringify(request.method)},"params":${request.params(id)}}`;
    if (!this.write(body)) {
      const text = this.#problem ?? "The tool server does not read its input.";
      this.#waiters.settle(id, { kind: "failed", failure: failure("upstream_failed", "not_started", text) });
    }
    return { id, settled, cancel: (reason) => this.#cancel(id, reason) };
  }

  respond(id: string, kind: "result" | "error", body: string): void {
    this.write(`{"jsonrpc":"2.0","id":${id},"${kind}":${oneLine(body)}}`);
  }

  async close(): Promise<void> {
    if (this.#child) await this.#child.stop();
    else this.#ended("The tool server was stopped.");
  }

  #cancel(id: string, reason: string): void {
    if (!this.#waiters.cancel(id)) return;
    this.write(JSON.stringify({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: id, reason } }));
  }

  #ended(problem: string): void {
    if (this.#problem !== null) return;
    this.#framer.end();
    this.#problem = problem;
    const reason = failure("upstream_failed", "unknown", problem);
    this.#waiters.failAll(reason);
    this.transport.onclose?.();
    this.listener.closed(reason);
  }

  #line(line: Buffer): void {
    try {
      const messages = readMessages(line);
      if (!messages) {
        this.listener.odd("ignored a line on the tool server's output that is not JSON-RPC");
        return;
      }
      for (const { bytes, message } of messages) this.#message(bytes, message);
    } catch {
      this.listener.odd("a message of the tool server could not be handled");
    }
  }

  #message(bytes: Uint8Array, message: UpstreamMessage): void {
    if (message.kind === "request") {
      this.listener.request(message.message);
      return;
    }
    if (message.kind === "notification") {
      this.#notification(bytes, message);
      return;
    }
    // A late answer to a cancelled call ends here: nobody waits for it.
    if (this.#waiters.isOurs(message.id)) this.#waiters.settle(message.id, message.outcome);
    else this.#toSdk(bytes);
  }

  #notification(bytes: Uint8Array, { message }: Extract<UpstreamMessage, { kind: "notification" }>): void {
    if (message.method === "notifications/progress") {
      // A token that is none of ours belongs to a call that is over.
      this.#waiters.listener(progressToken(message.params))?.notification(message);
      return;
    }
    if (message.method === "notifications/cancelled") {
      const id = cancelledId(message.params);
      if (id !== undefined) this.listener.withdrawn(id);
    }
    this.listener.notification(message);
    if (message.method !== "notifications/message") this.#toSdk(bytes);
  }

  #toSdk(bytes: Uint8Array): void {
    this.transport.onmessage?.(parseValue(bytes) as JSONRPCMessage);
  }

  #oversize(line: Oversize): void {
    const id = this.#waiters.findIn(line.head.toString("latin1"), line.tail.toString("latin1"));
    const cap = UPSTREAM.maxMessageBytes;
    const reason = failure("too_large", "unknown", `The tool server sent ${line.size} bytes in one message; the most is ${cap}.`, {
      size: line.size,
      cap,
    });
    if (id === undefined || !this.#waiters.settle(id, { kind: "failed", failure: reason })) {
      this.listener.odd(`ignored a message of ${line.size} bytes that belongs to no call`);
    }
  }
}
