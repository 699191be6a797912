/** An event feed as an upstream: one resource that holds its last messages, with updates to whoever subscribed. */
import { setTimeout as sleep } from "node:timers/promises";
import { FEED } from "../../limits.ts";
import type { UpstreamState } from "../../tunnel/frames.ts";
import { Backoff } from "../backoff.ts";
import type { FeedConfig } from "../types.ts";
import { MODERN_REVISION } from "../upstreams/revisions.ts";
import type { CallSink, Upstream, UpstreamCall, UpstreamListener, UpstreamLists, UpstreamOutcome } from "../upstreams/upstream.ts";
import { FeedLog } from "./feed-log.ts";
import { followFeed } from "./feed-source.ts";

const METHOD_NOT_FOUND = -32601;
const INVALID_PARAMS = -32602;
const encoder = new TextEncoder();

export class FeedUpstream implements Upstream {
  readonly alias: string;
  readonly #config: FeedConfig;
  readonly #listener: UpstreamListener;
  readonly #lists: UpstreamLists;
  readonly #log = new FeedLog();
  readonly #stopping = new AbortController();
  #following: Promise<void> = Promise.resolve();
  #state: UpstreamState["state"] = "starting";
  #problem: string | null = null;
  #isConnected = false;
  #lastAt: number | null = null;
  /** Grants that want to hear of updates. */
  readonly #wanting = new Set<string>();
  #hasSkipped = false;
  /** Set while a notice is due: messages until then share it. */
  #notice: NodeJS.Timeout | null = null;

  constructor(config: FeedConfig, listener: UpstreamListener) {
    this.alias = config.alias;
    this.#config = config;
    this.#listener = listener;
    this.#lists = listsOf(config);
  }

  start(): void {
    this.#following = this.#follow();
    this.#listener.lists([]);
  }

  /** There before the feed is: what was told so far can always be read. */
  lists(): UpstreamLists {
    return this.#lists;
  }

  state(): UpstreamState {
    return {
      alias: this.alias.slice(0, 256),
      state: this.#state,
      era: "modern",
      lastRoundTripMs: null,
      lastRoundTripAt: this.#lastAt,
      problem: this.#problem,
    };
  }

  async run(call: UpstreamCall, sink: CallSink): Promise<UpstreamOutcome> {
    if (call.method === "resources/list") return result({ resources: [resourceOf(this.#config)] });
    if (call.method === "resources/templates/list") return result({ resourceTemplates: [] });
    if (call.method !== "resources/read") return refused(METHOD_NOT_FOUND, "Method not found");
    if (call.target !== this.#config.uri) return refused(INVALID_PARAMS, "Resource not found");
    sink.begun();
    const text = this.#log.text({ feed: this.alias, connected: this.#isConnected });
    return await Promise.resolve(result({ contents: [{ uri: this.#config.uri, mimeType: "application/json", text }] }));
  }

  /** The connection's own pings say whether it is there. */
  async probe(): Promise<void> {
    await Promise.resolve();
  }

  async subscribe(uri: string, grant: string): Promise<UpstreamOutcome> {
    if (uri !== this.#config.uri) return refused(INVALID_PARAMS, "Resource not found");
    this.#wanting.add(grant);
    return await Promise.resolve(result({}));
  }

  async unsubscribe(_uri: string, grant: string): Promise<UpstreamOutcome> {
    if (grant === "") this.#wanting.clear();
    else this.#wanting.delete(grant);
    return await Promise.resolve(result({}));
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    if (this.#notice) clearTimeout(this.#notice);
    await this.#following;
    this.#setState("stopped", null);
  }

  /** Follows the feed, and again when it breaks, until it is stopped. */
  async #follow(): Promise<void> {
    const { signal } = this.#stopping;
    const backoff = new Backoff();
    const sink = { opened: () => this.#opened(), message: (data: Buffer) => this.#message(data) };
    while (!signal.aborted) {
      const since = Date.now();
      const why = await followFeed(this.#config, sink, signal);
      if (signal.aborted) return;
      backoff.lasted(Date.now() - since);
      const wasConnected = this.#isConnected;
      this.#isConnected = false;
      this.#setState("crashed", `The feed is not connected: ${why}.`);
      if (wasConnected) this.#tell();
      await pause(backoff.next(), signal);
    }
  }

  #opened(): void {
    this.#isConnected = true;
    this.#lastAt = Date.now();
    this.#setState("ready", null);
    this.#tell();
  }

  #message(data: Buffer): void {
    this.#lastAt = Date.now();
    if (this.#log.add(data, this.#lastAt)) {
      this.#tell();
      return;
    }
    if (this.#hasSkipped) return;
    this.#hasSkipped = true;
    this.#listener.warning(
      `${this.alias}: a message that is no JSON, or larger than ${FEED.messageBytes} bytes, is left out; so are others like it`,
    );
  }

  #tell(): void {
    if (this.#wanting.size === 0 || this.#notice) return;
    this.#notice = setTimeout(() => {
      this.#notice = null;
      if (this.#wanting.size > 0) this.#listener.resourceUpdated(this.#config.uri);
    }, FEED.noticeMs);
  }

  #setState(state: UpstreamState["state"], problem: string | null): void {
    if (this.#state === state && this.#problem === problem) return;
    this.#state = state;
    this.#problem = problem;
    this.#listener.state();
  }
}

function listsOf(config: FeedConfig): UpstreamLists {
  return {
    discover: {
      capabilities: { resources: { subscribe: true } },
      serverInfo: { name: "longline-feed", version: "1" },
      supportedVersions: [MODERN_REVISION],
    },
    tools: [],
    prompts: [],
    resourceTemplates: [],
    resources: [JSON.stringify(resourceOf(config))],
  };
}

function resourceOf({ alias, uri, title, description }: FeedConfig): Record<string, unknown> {
  return {
    uri,
    name: alias,
    ...(title === undefined ? {} : { title }),
    description: description ?? `The last ${FEED.messages} messages of an event feed on the device.`,
    mimeType: "application/json",
  };
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await sleep(ms, undefined, { signal });
  } catch {
    // Stopped: the loop sees it.
  }
}

function result(value: Record<string, unknown>): UpstreamOutcome {
  return { kind: "result", protocol: MODERN_REVISION, bytes: encoder.encode(JSON.stringify({ resultType: "complete", ...value })) };
}

function refused(code: number, message: string): UpstreamOutcome {
  return { kind: "error", protocol: MODERN_REVISION, code, message, data: undefined };
}
