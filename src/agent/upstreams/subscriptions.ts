/**
 * Resource subscriptions and notices of changed lists of one upstream, on its first instance: `listen` on a modern
 * one, `resources/subscribe` on a legacy one. Each resource is counted, so that one caller's end is not another's.
 */
import type { McpSubscription } from "@modelcontextprotocol/client";
import { UPSTREAM } from "../../limits.ts";
import { Backoff } from "../backoff.ts";
import { failure } from "../failure.ts";
import type { Instance } from "./instance.ts";
import type { RawOutcome } from "./lane.ts";

const DONE: RawOutcome = { kind: "result", bytes: new TextEncoder().encode("{}") };

export class Subscriptions {
  readonly #counts = new Map<string, number>();
  readonly #warn: (message: string) => void;
  #instance: Instance | null = null;
  #resources: McpSubscription | null = null;
  /** Changes follow each other, so that the last one wins. */
  #work: Promise<unknown> = Promise.resolve();

  constructor(warn: (message: string) => void) {
    this.#warn = warn;
  }

  /** A new first instance: everything that was wanted is asked for again. */
  attach(instance: Instance): void {
    this.#instance = instance;
    this.#resources = null;
    if (instance.facts.era === "modern") void this.#listenToLists(instance);
    if (this.#counts.size === 0) return;
    if (instance.facts.era === "modern") void this.#queue(async () => await this.#listenToResources(instance));
    else
      for (const uri of this.#counts.keys())
        void instance.internal("resources/subscribe", `{"uri":${JSON.stringify(uri)}}`, UPSTREAM.startMs);
  }

  detach(): void {
    this.#instance = null;
    this.#resources = null;
  }

  isWanted(uri: string): boolean {
    return this.#counts.has(uri);
  }

  async add(uri: string): Promise<RawOutcome> {
    const count = this.#counts.get(uri) ?? 0;
    this.#counts.set(uri, count + 1);
    if (count > 0) return DONE;
    const outcome = await this.#change("resources/subscribe", uri);
    if (outcome.kind !== "result") this.#counts.delete(uri);
    return outcome;
  }

  async remove(uri: string): Promise<RawOutcome> {
    const count = this.#counts.get(uri) ?? 0;
    if (count > 1) {
      this.#counts.set(uri, count - 1);
      return DONE;
    }
    if (!this.#counts.delete(uri)) return DONE;
    return await this.#change("resources/unsubscribe", uri);
  }

  async #change(method: string, uri: string): Promise<RawOutcome> {
    const instance = this.#instance;
    if (!instance) return { kind: "failed", failure: failure("upstream_failed", "not_started", "The tool server is not running.") };
    if (instance.facts.era === "legacy") return await instance.internal(method, `{"uri":${JSON.stringify(uri)}}`, UPSTREAM.startMs);
    return await this.#queue(async () => await this.#listenToResources(instance));
  }

  async #queue(work: () => Promise<RawOutcome>): Promise<RawOutcome> {
    const done = this.#work.then(work);
    this.#work = done;
    return await done;
  }

  /** Opens a stream for the present set before the older one is closed. */
  async #listenToResources(instance: Instance): Promise<RawOutcome> {
    const before = this.#resources;
    try {
      const uris = [...this.#counts.keys()];
      this.#resources =
        uris.length === 0 ? null : await instance.connection.client.listen({ resourceSubscriptions: uris }, { timeout: UPSTREAM.startMs });
      await before?.close();
      return DONE;
    } catch {
      return { kind: "failed", failure: failure("upstream_failed", "unknown", "The tool server did not take the subscription.") };
    }
  }

  /** Keeps a stream for changed lists open for as long as the instance lives. */
  async #listenToLists(instance: Instance): Promise<void> {
    const filter = listFilter(instance.facts.capabilities);
    if (Object.keys(filter).length === 0) return;
    const backoff = new Backoff();
    while (this.#instance === instance && !instance.isClosed) {
      const since = Date.now();
      try {
        const stream = await instance.connection.client.listen(filter, { timeout: UPSTREAM.startMs });
        if ((await stream.closed) === "local") return;
      } catch {
        if (instance.isClosed) return;
        this.#warn("the tool server did not take the subscription to its lists");
      }
      backoff.lasted(Date.now() - since);
      await new Promise((resolve) => {
        setTimeout(resolve, backoff.next()).unref();
      });
    }
  }
}

function listFilter(capabilities: Readonly<Record<string, unknown>>): Record<string, true> {
  const filter: Record<string, true> = {};
  for (const [kind, member] of [
    ["tools", "toolsListChanged"],
    ["prompts", "promptsListChanged"],
    ["resources", "resourcesListChanged"],
  ] as const) {
    const capability = capabilities[kind];
    if (typeof capability === "object" && capability !== null && "listChanged" in capability && capability.listChanged === true)
      filter[member] = true;
  }
  return filter;
}
