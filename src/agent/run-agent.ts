/** Puts the agent together: upstreams, catalogue, calls and tunnel. The entry point of `longline agent`. */
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { AGENT, LISTEN, TEXT, TOOLS, TUNNEL, UPSTREAM } from "../limits.ts";
import { lockProcess, type ProcessLock } from "./process-lock.ts";
import type { Payload } from "../tunnel/codec.ts";
import { CATALOGUE_STREAM, PROTOCOL_VERSION, type Hello, type RelayFrame, type Welcome } from "../tunnel/frames.ts";
import { CatalogueSender } from "./catalogue-sender.ts";
import { catalogueText, type CatalogueText } from "./catalogue.ts";
import { DialogAsker } from "./ask/dialog-asker.ts";
import { cleanText } from "./clean-text.ts";
import { Dispatcher } from "./dispatcher.ts";
import { declaredTool } from "./declared/declared-tool.ts";
import { FeedUpstream } from "./feeds/feed-upstream.ts";
import { Guard } from "./guard.ts";
import { openInstallation } from "./installation.ts";
import { Journal } from "./journal.ts";
import type { Link } from "./link.ts";
import { DEFAULT_POLICY, type LocalPolicy } from "./local-policy.ts";
import { withoutOwnKey } from "./own-key.ts";
import { RecentEvents } from "./recent-events.ts";
import { redactReport, secretsOf } from "./redact-report.ts";
import { thisHost } from "./tools/find-program.ts";
import { TunnelClient } from "./tunnel-client.ts";
import type { AgentEvent, AgentHandle, AgentOptions, AgentReport, AgentStatus, BuiltinConfig, UpstreamConfig } from "./types.ts";
import { BuiltinUpstream } from "./upstreams/builtin.ts";
import { McpUpstream } from "./upstreams/mcp-upstream.ts";
import { Router } from "./upstreams/router.ts";
import type { ListKind, Upstream, UpstreamListener, UpstreamLists } from "./upstreams/upstream.ts";
import { Watchdog } from "./upstreams/watchdog.ts";

/** Characters of a resource's address that a frame takes. */
const MAX_URI = 8192;

/** One agent per state directory: two would share a journal, and each would answer for calls of the other. */
function lockState(stateDir: string): ProcessLock {
  return lockProcess(
    join(stateDir, "lock"),
    ({ pid }) =>
      `Another agent (process ${pid}) runs with the state directory ${stateDir}. Stop it, or give this one its own with --state.`,
  );
}

/** Starts an agent. Rejects when the state directory cannot be used, or another agent uses it; everything later shows in `state` and `done`. */
export async function runAgent(options: AgentOptions): Promise<AgentHandle> {
  const agent = new Agent(options);
  agent.start();
  return await Promise.resolve(agent);
}

class Agent implements AgentHandle {
  readonly done: AgentHandle["done"];
  readonly #options: AgentOptions;
  readonly #version: string;
  readonly #installation: string;
  readonly #lock: ProcessLock;
  readonly #instance = `p_${randomBytes(16).toString("base64url")}`;
  readonly #watchdog = new Watchdog();
  readonly #journal: Journal;
  readonly #router: Router;
  readonly #dispatcher: Dispatcher;
  readonly #guard: Guard;
  readonly #recent = new RecentEvents();
  readonly #tunnel: TunnelClient;
  readonly #sender = new CatalogueSender();
  readonly #sweeper: ReturnType<typeof setInterval>;
  /** What is offered at present. */
  #configs: readonly UpstreamConfig[];
  #catalogue: CatalogueText | null = null;
  /** Digest named in the last `hello`. */
  #told: string | null = null;
  #link: Link | null = null;
  /** Resources that were updated while no link was there, each once for everybody and once for each grant. */
  readonly #missed = new Map<string, { uri: string; grant: string | undefined }>();
  #hasLists: () => void = () => undefined;
  #ending: Promise<void> | null = null;

  constructor(options: AgentOptions) {
    this.#options = options;
    this.#configs = options.upstreams;
    this.#version = options.version ?? "0";
    this.#installation = openInstallation(options.stateDir);
    this.#lock = lockState(options.stateDir);
    this.#journal = new Journal(options.stateDir);
    this.#router = new Router(options.upstreams, {
      make: (config, listener) => this.#upstream(config, listener),
      serverInfo: { name: "longline-agent", version: this.#version },
      onState: (alias) => this.#upstreamState(alias),
      onLists: (changed) => this.#lists(changed),
      onResource: (uri, grant) => this.#resourceUpdated(uri, grant),
      warn: (message) => this.#tell({ type: "warning", message }),
    });
    this.#dispatcher = new Dispatcher({
      journal: this.#journal,
      maxConcurrentCalls: this.#limits.maxConcurrentCalls,
      log: (event) => this.#tell(event),
      admit: async (frame, params, signal) => await this.#guard.gate.admit(frame, params, signal),
      run: withoutOwnKey(
        options.deviceKey,
        async (call, sink, signal, ref) => await this.#router.run(call, sink, signal, ref),
        (message) => this.#tell({ type: "warning", message: cleanText(message, TEXT.message) }),
      ),
    });
    this.#guard = new Guard({
      stateDir: options.stateDir,
      policy: options.policy ?? DEFAULT_POLICY,
      asker: options.asker ?? new DialogAsker(thisHost(), this.#watchdog),
      tools: () => this.#router.lists()?.tools,
      prefixes: () => this.#router.lists()?.discover.prefixes,
      report: (event) => this.#tell(event),
      interrupt: (rule, message) => this.#dispatcher.interrupt(rule, message),
    });
    this.#tunnel = new TunnelClient({
      relay: options.relay,
      deviceKey: options.deviceKey,
      maxFrameBytes: this.#limits.maxFrameBytes,
      log: (event) => this.#tell(event),
      listener: {
        hello: () => this.#hello(),
        online: (link, welcome) => this.#online(link, welcome),
        offline: () => this.#offline(),
        frame: (frame, payload) => this.#frame(frame, payload),
        drained: () => this.#drained(),
      },
    });
    this.#sweeper = setInterval(() => this.#dispatcher.sweep(), AGENT.sweepMs);
    this.done = this.#tunnel.done.then(async (done) => {
      await this.#close();
      return done;
    });
  }

  start(): void {
    const { signal } = this.#options;
    if (signal?.aborted === true) void this.stop("aborted");
    signal?.addEventListener("abort", () => void this.stop("aborted"), { once: true });
    const listed = new Promise<void>((resolve) => {
      this.#hasLists = resolve;
    });
    this.#router.start();
    // Dialling waits a moment for the lists, so that a device that is new does not show up empty.
    const timer = setTimeout(() => this.#hasLists(), UPSTREAM.probeMs);
    void listed.then(() => {
      clearTimeout(timer);
      this.#tunnel.start();
    });
  }

  state(): AgentStatus {
    return { ...this.#tunnel.status, upstreams: this.#router.states(), inFlight: this.#dispatcher.running };
  }

  setPolicy(policy: LocalPolicy): void {
    this.#guard.gate.policy = policy;
  }

  reconfigure(upstreams: readonly UpstreamConfig[]): void {
    this.#configs = upstreams;
    this.#router.reconfigure(upstreams);
  }

  async stop(reason: string): Promise<void> {
    // Callers hear what became of their calls before the link ends.
    await this.#dispatcher.leave(AGENT.stopMs);
    await this.#tunnel.stop(reason);
    await this.#close();
  }

  get #limits(): { maxFrameBytes: number; maxConcurrentCalls: number } {
    const { maxFrameBytes, maxConcurrentCalls } = this.#options;
    return {
      maxFrameBytes: Math.max(TUNNEL.minFrameBytes, Math.min(TUNNEL.maxFrameBytes, maxFrameBytes ?? TUNNEL.maxFrameBytes)),
      maxConcurrentCalls: maxConcurrentCalls ?? TUNNEL.maxConcurrentCalls,
    };
  }

  async #close(): Promise<void> {
    this.#ending ??= this.#closeAll();
    await this.#ending;
  }

  async #closeAll(): Promise<void> {
    this.#hasLists();
    clearInterval(this.#sweeper);
    this.#dispatcher.stop();
    await this.#router.stop();
    this.#guard.close();
    this.#watchdog.close();
    this.#journal.close();
    this.#lock.release();
  }

  #tell(event: AgentEvent): void {
    this.#recent.add(event);
    if (event.type === "call_end") this.#guard.log.ended(event.callId, event.outcome);
    this.#options.log(event);
  }

  #report(): AgentReport {
    const report: AgentReport = {
      version: this.#version,
      status: this.state(),
      events: this.#recent.list(),
      callLog: this.#guard.log.tail(TOOLS.bundleLogBytes),
    };
    return redactReport(report, secretsOf({ deviceKey: this.#options.deviceKey, upstreams: this.#configs }));
  }

  #upstream(config: UpstreamConfig, listener: UpstreamListener): Upstream {
    if (config.kind === "feed") return new FeedUpstream(config, listener);
    if (config.kind === "stdio" || config.kind === "http")
      return new McpUpstream({ config, version: this.#version, watchdog: this.#watchdog, listener });
    const builtin: BuiltinConfig =
      config.kind === "builtin" ? config : { kind: "builtin", alias: config.alias, tools: [declaredTool(config.tool)] };
    return new BuiltinUpstream(builtin, this.#version, listener, { watch: this.#watchdog, report: () => this.#report() });
  }

  #upstreamState(alias: string): void {
    const state = this.#router.states().find((upstream) => upstream.alias === alias);
    if (state) this.#tell({ type: "upstream", alias, state: state.state, problem: state.problem });
  }

  #lists(changed: readonly ListKind[]): void {
    const lists = this.#router.lists();
    if (lists) this.#catalogueOf(lists, changed);
    // What cannot start has no lists to wait for.
    if (this.#router.isSettled) this.#hasLists();
  }

  #catalogueOf(lists: UpstreamLists, changed: readonly ListKind[]): void {
    this.#guard.listed();
    const next = catalogueText(lists);
    const isNew = next.digest !== this.#catalogue?.digest;
    this.#catalogue = next;
    for (const what of changed) this.#link?.send({ type: "changed", what });
    if (isNew) {
      this.#tell({ type: "catalogue", digest: next.digest, tools: next.tools });
      if (next.left > 0) this.#tell({ type: "warning", message: `${next.left} items do not fit into the catalogue and are left out` });
      this.#sender.send(next);
    }
  }

  /** Without a link it is told on the next one; changed lists show in the catalogue there. */
  #resourceUpdated(uri: string, grant?: string): void {
    if (uri.length > MAX_URI) return; // No frame and no subscription can name it.
    if (this.#link?.send({ type: "changed", what: "resource", uri, ...(grant === undefined ? {} : { grant }) }) === true) return;
    if (this.#missed.size < LISTEN.missed) this.#missed.set(`${grant ?? ""} ${uri}`, { uri, grant });
  }

  #hello(): Hello {
    this.#told = this.#catalogue?.digest ?? null;
    return {
      type: "hello",
      protocol: { min: PROTOCOL_VERSION, max: PROTOCOL_VERSION },
      agent: { name: "longline-agent", version: this.#version.slice(0, 256) },
      installation: this.#installation,
      instance: this.#instance,
      limits: this.#limits,
      catalogue: this.#told,
      held: this.#dispatcher.held(),
      asks: this.#dispatcher.asks(),
      upstreams: this.#router.states().slice(0, 100),
      ...(this.#options.takeover === true ? { takeover: true } : {}),
    };
  }

  #online(link: Link, welcome: Welcome): void {
    this.#link = link;
    this.#sender.online(link);
    this.#dispatcher.online(link);
    const missed = [...this.#missed.values()];
    this.#missed.clear();
    for (const { uri, grant } of missed) this.#resourceUpdated(uri, grant);
    const isNews = this.#catalogue !== null && this.#catalogue.digest !== this.#told;
    if (this.#catalogue && (welcome.catalogue === "send" || isNews)) this.#sender.send(this.#catalogue);
  }

  #offline(): void {
    this.#link = null;
    this.#sender.offline();
    this.#dispatcher.offline();
  }

  #frame(frame: Exclude<RelayFrame, { type: "welcome" | "drain" }>, payload: Payload | undefined): void {
    if (frame.type === "probe") void this.#probe(frame.probeId);
    else if (frame.type === "credit" && frame.stream === CATALOGUE_STREAM) this.#sender.addCredit(frame.bytes);
    else this.#dispatcher.frame(frame, payload);
  }

  async #probe(probeId: string): Promise<void> {
    const link = this.#link;
    await this.#router.probe();
    link?.send({ type: "pong", probeId, upstreams: this.#router.states().slice(0, 100) });
  }

  #drained(): void {
    this.#sender.pump();
    this.#dispatcher.pump();
  }
}
