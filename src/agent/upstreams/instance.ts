/**
 * One connection of an upstream with the calls on it: envelopes by era, progress and logs to the right call, input
 * requests to the one call that may be asked, and the rounds of a modern upstream for a caller that cannot do them.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { UPSTREAM } from "../../limits.ts";
import { failure, type AgentFailure } from "../failure.ts";
import type { Connection, Facts } from "./connect.ts";
import { nameHeader } from "./http-headers.ts";
import { InFlight, isCandidate, Turns, type Running, type Sharing } from "./in-flight.ts";
import { answerRound, asksForInput } from "./input-rounds.ts";
import { parseValue } from "../../tunnel/json-scan.ts";
import { lackingFailure } from "./lacking.ts";
import type { LaneListener, Notification, RawOutcome, ServerRequest } from "./lane.ts";
import { LogLevel } from "./log-level.ts";
import { buildParams } from "./params.ts";
import { withoutMembers } from "./result.ts";
import { isLogWanted, META } from "./revisions.ts";
import { ServerRequests } from "./server-requests.ts";
import type { CallSink, UpstreamCall, UpstreamOutcome } from "./upstream.ts";

/** What an instance tells its upstream. */
export interface InstanceListener {
  notification(instance: Instance, message: Notification): void;
  closed(instance: Instance, reason: AgentFailure): void;
  odd(message: string): void;
}

export interface InstanceOptions {
  connection: Connection;
  /** The grant whose own it is; absent when many share it. */
  owner: string | undefined;
  /** Input capabilities were declared: on one channel only one call at a time may be asked. */
  declaresInput: boolean;
  listener: InstanceListener;
}

const TOKEN = new Set(["progressToken"]);

export class Instance {
  readonly facts: Facts;
  readonly connection: Connection;
  /** Epoch ms of the start and of the last call's end. */
  readonly startedAt = Date.now();
  usedAt = Date.now();
  /** The grant whose own it is. */
  readonly owner: string | undefined;
  readonly #options: InstanceOptions;
  readonly #inFlight = new InFlight();
  readonly #turns = new Turns();
  readonly #requests: ServerRequests;
  readonly #level: LogLevel;
  #isClosed = false;
  #isClosing = false;
  #isRetired = false;

  constructor(options: InstanceOptions) {
    this.#options = options;
    this.connection = options.connection;
    this.facts = options.connection.facts;
    this.owner = options.owner;
    this.#requests = new ServerRequests(options.connection.lane);
    this.#level = new LogLevel(async (level) => {
      await this.internal("logging/setLevel", `{"level":${JSON.stringify(level)}}`, UPSTREAM.probeMs);
    });
    options.connection.lane.listener = this.#laneListener();
  }

  get #sharing(): Sharing {
    return this.owner === undefined ? "many_grants" : "one_grant";
  }

  get inFlight(): number {
    return this.#inFlight.size;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Runs a call. Never rejects. */
  async run(call: UpstreamCall, sink: CallSink, signal: AbortSignal): Promise<UpstreamOutcome> {
    const needsTurn =
      this.facts.era === "legacy" && this.#options.declaresInput && !this.connection.lane.hasOwnStreams && isCandidate(call);
    if (!needsTurn) return await this.#rounds(call, sink, signal);
    const release = await this.#turns.take(signal);
    if (!release) return cancelled("not_started");
    try {
      return await this.#rounds(call, sink, signal);
    } finally {
      release();
    }
  }

  /** A request of the agent's own, with a time limit. Never rejects. `params` is JSON text of an object. */
  async internal(method: string, params: string, timeoutMs: number): Promise<RawOutcome> {
    const meta = this.facts.era === "modern" ? `"_meta":${JSON.stringify(this.#envelope({}))}` : "";
    const inner = params.slice(1, -1).trim();
    const text = `{${[inner, meta].filter((part) => part !== "").join(",")}}`;
    const silent = { notification: () => undefined, request: (request: ServerRequest) => this.#requests.refuse(request) };
    const raw = this.connection.lane.request({ method, params: () => text }, silent);
    const timer = setTimeout(() => raw.cancel("no answer in time"), timeoutMs);
    const outcome = await raw.settled;
    clearTimeout(timer);
    return outcome;
  }

  /** Takes no more calls; closes when those in flight are over. */
  retire(): void {
    this.#isClosed = true;
    this.#isRetired = true;
    if (this.inFlight === 0) void this.close();
  }

  async close(): Promise<void> {
    if (this.#isClosing) return;
    this.#isClosing = true;
    this.#isClosed = true;
    await this.connection.lane.close();
    await this.connection.client.close();
  }

  /** Sends the call, and for a legacy caller again with the answers, until the upstream is content. */
  async #rounds(call: UpstreamCall, sink: CallSink, signal: AbortSignal): Promise<UpstreamOutcome> {
    const { protocol, era } = this.facts;
    let extra: readonly string[] = [];
    for (let round = 0; round < UPSTREAM.inputRounds; round += 1) {
      const outcome = await this.#send(call, sink, signal, extra);
      if (outcome.kind === "failed") return outcome;
      if (outcome.kind === "error") return { ...outcome, protocol };
      if (era === "legacy" || call.client.era === "modern" || !asksForInput(outcome.bytes)) return { ...outcome, protocol };
      const next = await answerRound(call, sink, outcome.bytes);
      if (signal.aborted) return cancelled("unknown");
      if (next.kind === "failed") return next;
      if (!next.hasQuestions) await pause(signal);
      extra = next.members;
    }
    const text = `The tool asked for input more than ${UPSTREAM.inputRounds} times.`;
    return { kind: "failed", failure: failure("upstream_failed", "unknown", text) };
  }

  async #send(call: UpstreamCall, sink: CallSink, signal: AbortSignal, extra: readonly string[]): Promise<RawOutcome> {
    if (this.facts.era === "legacy" && this.#hasCapability("logging")) await this.#level.want(call.logLevel);
    if (signal.aborted) return cancelled("not_started");
    const entry: Running = { call, sink };
    this.#inFlight.add(entry);
    sink.begun();
    const raw = this.connection.lane.request(
      { method: call.method, params: (id) => buildParams(call.params, this.#meta(call, id), extra), headers: this.#headers(call) },
      {
        notification: (message) => this.#ownNotification(entry, message),
        request: (request) => this.#requests.take(request, entry),
        over: () => this.#inFlight.remove(entry),
      },
    );
    const stop = () => raw.cancel(String(signal.reason));
    signal.addEventListener("abort", stop, { once: true });
    try {
      const outcome = await raw.settled;
      const lacking = this.facts.era === "legacy" ? lackingFailure(entry, outcome) : null;
      return lacking === null ? outcome : { kind: "failed", failure: lacking };
    } finally {
      signal.removeEventListener("abort", stop);
      this.#inFlight.remove(entry);
      this.usedAt = Date.now();
      if (this.#isRetired && this.inFlight === 0) void this.close();
    }
  }

  #headers(call: UpstreamCall): Record<string, string> {
    if (this.facts.era === "legacy" || !this.connection.lane.hasOwnStreams) return {};
    const mirrored = Object.entries(call.paramHeaders ?? {}).map(([name, value]) => [`mcp-param-${name}`, value] as const);
    return { ...Object.fromEntries(mirrored), ...nameHeader(call.method, call.target) };
  }

  #meta(call: UpstreamCall, id: string): Record<string, unknown> {
    const token = call.progress ? { progressToken: id } : {};
    if (this.facts.era === "legacy") return { ...call.meta, ...token };
    return {
      ...call.meta,
      ...this.#envelope(call.client.capabilities),
      ...(call.client.info === undefined ? {} : { [META.clientInfo]: call.client.info }),
      ...(call.logLevel === undefined ? {} : { [META.logLevel]: call.logLevel }),
      ...token,
    };
  }

  #envelope(capabilities: Readonly<Record<string, unknown>>): Record<string, unknown> {
    return { [META.protocolVersion]: this.facts.protocol, [META.clientCapabilities]: capabilities };
  }

  /** A notification that belongs to the call for certain. */
  #ownNotification(entry: Running, message: Notification): void {
    if (message.method === "notifications/progress") {
      if (entry.call.progress) entry.sink.event("notifications/progress", withoutMembers(message.params, TOKEN));
      return;
    }
    if (message.method !== "notifications/message") {
      this.#options.listener.notification(this, message);
      return;
    }
    if (isLogWanted(levelOf(message), entry.call.logLevel)) entry.sink.event("notifications/message", message.params);
  }

  #laneListener(): LaneListener {
    return {
      notification: (message) => {
        if (message.method !== "notifications/message") {
          this.#options.listener.notification(this, message);
          return;
        }
        const owner = this.#inFlight.ownerOfLog(levelOf(message), this.facts.era, this.#sharing);
        owner?.sink.event("notifications/message", message.params);
      },
      // A server that many share was told of no input and has nobody to ask, however many calls are in flight.
      request: (request) =>
        this.#options.declaresInput || this.owner !== undefined
          ? this.#requests.takeFrom(request, this.#inFlight)
          : this.#requests.refuse(request),
      withdrawn: (id) => this.#requests.withdraw(id),
      closed: (reason) => {
        const isOwn = this.#isClosing;
        this.#isClosed = true;
        if (!isOwn) this.#options.listener.closed(this, reason);
      },
      odd: (message) => this.#options.listener.odd(message),
    };
  }

  #hasCapability(name: string): boolean {
    return this.facts.capabilities[name] !== undefined;
  }
}

function levelOf(message: Notification): unknown {
  const params = parseValue(message.params);
  return typeof params === "object" && params !== null && "level" in params ? params.level : undefined;
}

function cancelled(outcome: "not_started" | "unknown"): { kind: "failed"; failure: AgentFailure } {
  return { kind: "failed", failure: failure("cancelled", outcome, "The call was cancelled.") };
}

async function pause(signal: AbortSignal): Promise<void> {
  try {
    await sleep(UPSTREAM.retryMs, undefined, { signal });
  } catch {
    // Aborted: the next send says so.
  }
}
