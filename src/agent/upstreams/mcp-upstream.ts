/**
 * One configured MCP server: its first instance, which is kept alive and read for the catalogue, and the instances
 * beside it for legacy callers (design section 6, "Upstream instances").
 */
import { performance } from "node:perf_hooks";
import { UPSTREAM } from "../../limits.ts";
import type { UpstreamState } from "../../tunnel/frames.ts";
import { Backoff } from "../backoff.ts";
import { failure, failureOf, type AgentFailure, FailureError } from "../failure.ts";
import { orAborted } from "../or-aborted.ts";
import type { HttpConfig, StdioConfig } from "../types.ts";
import { connect } from "./connect.ts";
import { SESSION_EXPIRED } from "./http-call.ts";
import { paramHeaders, rulesByTool } from "./http-headers.ts";
import { HttpLane } from "./http-transport.ts";
import { inputCapabilities } from "./in-flight.ts";
import { Instance } from "./instance.ts";
import { parseValue, scanMembers, lastMember, valueOf } from "../../tunnel/json-scan.ts";
import type { Lane, Notification } from "./lane.ts";
import { ListKeeper } from "./list-keeper.ts";
import { instanceKey, Pool } from "./pool.ts";
import { StdioLane } from "./stdio-transport.ts";
import { Subscriptions } from "./subscriptions.ts";
import type { CallSink, Upstream, UpstreamCall, UpstreamListener, UpstreamLists, UpstreamOutcome } from "./upstream.ts";
import type { Watchdog } from "./watchdog.ts";

export interface McpUpstreamOptions {
  config: StdioConfig | HttpConfig;
  version: string;
  watchdog: Watchdog;
  listener: UpstreamListener;
}

const STARTING = failure("upstream_failed", "not_started", "The tool server is starting.");

export class McpUpstream implements Upstream {
  readonly alias: string;
  readonly #options: McpUpstreamOptions;
  readonly #isolation: "grant" | "shared";
  readonly #pool = new Pool((instance) => this.#subscriptions.wantedBy(instance.owner).length > 0);
  readonly #backoff = new Backoff();
  readonly #subscriptions: Subscriptions;
  readonly #lists: ListKeeper;
  readonly #stopping = new AbortController();
  #state: UpstreamState["state"] = "starting";
  /** Why it cannot be used, or what the last check found; null while all is well. */
  #problem: AgentFailure | null = null;
  #first: Instance | null = null;
  /** Settles when the present start has ended, either way. */
  #starting: Promise<void> = Promise.resolve();
  /** Epoch ms of the present start, and the connection it tries. */
  #startedAt = 0;
  #trying: Lane | null = null;
  #restart: NodeJS.Timeout | null = null;
  /** Whether a modern upstream shakes hands as well: unknown until the first legacy caller, and asked again after a while. */
  #legacy: { speaks: boolean; until: number } | null = null;
  #roundTrip: { ms: number; at: number } | null = null;

  constructor(options: McpUpstreamOptions) {
    this.#options = options;
    this.alias = options.config.alias;
    this.#isolation = options.config.isolation ?? (options.config.kind === "stdio" ? "grant" : "shared");
    this.#subscriptions = new Subscriptions((message) => options.listener.warning(`${this.alias}: ${message}`));
    this.#lists = new ListKeeper(options.listener, (message) => options.listener.warning(`${this.alias}: ${message}`));
  }

  start(): void {
    this.#starting = this.#startFirst();
  }

  lists(): UpstreamLists | null {
    return this.#lists.current;
  }

  state(): UpstreamState {
    const era = this.#first?.facts.era ?? null;
    return {
      alias: this.alias.slice(0, 256),
      state: this.#state,
      era: era === "modern" && this.#legacy?.speaks === true ? "dual" : era,
      lastRoundTripMs: this.#roundTrip?.ms ?? null,
      lastRoundTripAt: this.#roundTrip?.at ?? null,
      problem: this.#problem?.message.slice(0, 2000) ?? this.#delay(),
    };
  }

  /** What can be said of a start that goes on for long: a person may wait for a download, or for a mistake. */
  #delay(): string | null {
    const ms = Date.now() - this.#startedAt;
    if (this.#state !== "starting" || ms < UPSTREAM.startNoticeMs / 2) return null;
    const words = this.#trying instanceof StdioLane ? this.#trying.lastWords : "";
    return `It has been starting for ${Math.round(ms / 1000)} s${words === "" ? "." : ` and says: ${words}`}`;
  }

  async run(call: UpstreamCall, sink: CallSink, signal: AbortSignal): Promise<UpstreamOutcome> {
    try {
      const outcome = await this.#runOnce(call, sink, signal);
      const isExpired = outcome.kind === "failed" && outcome.failure.data?.["why"] === SESSION_EXPIRED;
      // The upstream did not know the session, so it did not begin: once more on a new one.
      return isExpired && !signal.aborted ? await this.#runOnce(call, sink, signal) : outcome;
    } catch (error) {
      return { kind: "failed", failure: failureOf(error, failure("upstream_failed", "unknown", "The call failed inside the agent.")) };
    }
  }

  async probe(): Promise<void> {
    const first = this.#first;
    if (!first) return;
    const began = performance.now();
    const method = first.facts.era === "modern" ? "server/discover" : "ping";
    const outcome = await first.internal(method, "{}", UPSTREAM.pingMs);
    if (this.#first !== first) return;
    if (outcome.kind === "failed") {
      this.#problem =
        outcome.failure.reason === "cancelled"
          ? failure("upstream_failed", "unknown", `The tool server did not answer within ${UPSTREAM.pingMs} ms.`)
          : outcome.failure;
      return;
    }
    // An error answer is a round trip as well.
    this.#roundTrip = { ms: Math.round((performance.now() - began) * 10) / 10, at: Date.now() };
    this.#problem = null;
  }

  async subscribe(uri: string, grant: string): Promise<UpstreamOutcome> {
    await this.#starting;
    return this.#withProtocol(await this.#subscriptions.add(uri, grant));
  }

  async unsubscribe(uri: string, grant: string): Promise<UpstreamOutcome> {
    await this.#starting;
    return this.#withProtocol(await this.#subscriptions.remove(uri, grant));
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    if (this.#restart) clearTimeout(this.#restart);
    this.#lists.stop();
    this.#subscriptions.detach();
    const first = this.#first;
    this.#first = null;
    this.#setState("stopped", failure("upstream_failed", "not_started", "The tool server was stopped."));
    await Promise.all([first?.close(), this.#pool.close(), this.#starting]);
  }

  #withProtocol(outcome: Awaited<ReturnType<Subscriptions["add"]>>): UpstreamOutcome {
    return outcome.kind === "failed" ? outcome : { ...outcome, protocol: this.#first?.facts.protocol ?? "" };
  }

  async #runOnce(call: UpstreamCall, sink: CallSink, signal: AbortSignal): Promise<UpstreamOutcome> {
    const first = await this.#ready(signal);
    const onFirst = async () => await first.run(this.#withParamHeaders(call), sink, signal);
    const onLegacy = async () => await this.#onLegacyInstance(call, async (instance) => await instance.run(call, sink, signal));
    if (first.facts.era === "legacy") return await (this.#isolation === "shared" ? onFirst() : onLegacy());
    if (call.client.era === "modern" || !(await this.#speaksLegacy(call))) return await onFirst();
    try {
      return await onLegacy();
    } catch (error) {
      // No instance could be opened, as when all of the device's sessions are taken: the stateless one serves the call as well.
      this.#noLegacy(error);
      return await onFirst();
    }
  }

  /** The first instance once it has started. Rejects at once while the upstream is down. */
  async #ready(signal: AbortSignal): Promise<Instance> {
    if (!this.#first && this.#state === "starting") await orAborted(this.#starting, signal);
    if (!this.#first) throw new FailureError({ ...(this.#problem ?? STARTING), outcome: "not_started" });
    return this.#first;
  }

  async #onLegacyInstance<T>(call: UpstreamCall, work: (instance: Instance) => Promise<T>): Promise<T> {
    const isShared = this.#isolation === "shared";
    const capabilities = isShared ? {} : inputCapabilities(call.client.capabilities);
    const key = isShared ? "" : instanceKey(call.grant, capabilities);
    const open = async () => {
      const instance = await this.#open("legacy", capabilities, isShared ? undefined : call.grant);
      await this.#subscriptions.join(instance);
      return instance;
    };
    return await this.#pool.use(key, open, work);
  }

  /** Finds out, at the first legacy caller, whether a modern upstream shakes hands too: a stdio child is pinned to one era. */
  async #speaksLegacy(call: UpstreamCall): Promise<boolean> {
    if (this.#legacy && Date.now() < this.#legacy.until) return this.#legacy.speaks;
    try {
      await this.#onLegacyInstance(call, async () => await Promise.resolve());
      this.#legacy = { speaks: true, until: Number.POSITIVE_INFINITY };
      this.#options.listener.state();
      return true;
    } catch (error) {
      this.#noLegacy(error);
      return false;
    }
  }

  /** Does without handshakes for a while. Throws the error on when it was a limit of our own, which says nothing about the era. */
  #noLegacy(error: unknown): void {
    if (error instanceof FailureError && error.failure.reason === "rate_limited") throw error;
    this.#legacy = { speaks: false, until: Date.now() + UPSTREAM.idleMs };
  }

  /** A modern HTTP upstream demands the headers that a legacy caller does not send. */
  #withParamHeaders(call: UpstreamCall): UpstreamCall {
    if (this.#options.config.kind !== "http" || call.method !== "tools/call" || call.target === undefined) return call;
    const rules = rulesByTool(this.#lists.current?.tools ?? []).get(call.target);
    if (!rules) return call;
    const args = lastMember(scanMembers(call.params.bytes), "arguments");
    const computed = paramHeaders(rules, args && parseValue(valueOf(call.params.bytes, args)));
    return { ...call, paramHeaders: { ...call.paramHeaders, ...computed } };
  }

  async #startFirst(): Promise<void> {
    this.#startedAt = Date.now();
    this.#setState("starting", null);
    const notice = setInterval(() => this.#options.listener.state(), UPSTREAM.startNoticeMs);
    try {
      const instance = await this.#open("auto", {}, undefined);
      if (this.#stopping.signal.aborted) {
        await instance.close();
        return;
      }
      this.#first = instance;
      this.#subscriptions.attach(instance);
      this.#setState("ready", null);
      void this.#lists.read(instance);
    } catch (error) {
      this.#crashed(failureOf(error, failure("upstream_failed", "not_started", "The tool server could not be started.")));
    } finally {
      clearInterval(notice);
      this.#trying = null;
    }
  }

  async #open(want: "auto" | "legacy", capabilities: Record<string, unknown>, owner: string | undefined): Promise<Instance> {
    const { config, watchdog, version } = this.#options;
    const makeLane = () => {
      const lane = config.kind === "stdio" ? new StdioLane(config, watchdog) : new HttpLane(config);
      if (want === "auto") this.#trying = lane;
      return lane;
    };
    const connection = await connect({ makeLane, want, capabilities, version, signal: this.#stopping.signal });
    return new Instance({
      connection,
      owner,
      declaresInput: Object.keys(capabilities).length > 0,
      listener: {
        notification: (instance, message) => this.#notification(instance, message),
        closed: (instance, reason) => this.#closed(instance, reason),
        odd: (message) => this.#options.listener.warning(`${this.alias}: ${message}`),
      },
    });
  }

  #closed(instance: Instance, reason: AgentFailure): void {
    this.#pool.remove(instance);
    if (this.#stopping.signal.aborted) return;
    instance.retire();
    if (instance !== this.#first) {
      this.#options.listener.warning(`${this.alias}: ${reason.message}`);
      return;
    }
    this.#first = null;
    this.#subscriptions.detach();
    this.#backoff.lasted(Date.now() - instance.startedAt);
    if (reason.data?.["why"] === SESSION_EXPIRED) this.start();
    else this.#crashed(reason);
  }

  #crashed(reason: AgentFailure): void {
    if (this.#stopping.signal.aborted) return;
    this.#setState("crashed", reason);
    this.#restart = setTimeout(() => this.start(), this.#backoff.next());
  }

  #setState(state: UpstreamState["state"], problem: AgentFailure | null): void {
    this.#state = state;
    this.#problem = problem;
    this.#options.listener.state();
  }

  #notification(instance: Instance, message: Notification): void {
    if (message.method === "notifications/resources/updated") {
      const params = parseValue(message.params);
      const uri = typeof params === "object" && params !== null && "uri" in params ? params.uri : undefined;
      const { owner } = instance;
      if (typeof uri === "string" && this.#subscriptions.isWanted(uri, owner)) this.#options.listener.resourceUpdated(uri, owner);
      return;
    }
    const first = this.#first;
    if (first) this.#lists.notice(message.method, first, instance);
  }
}
