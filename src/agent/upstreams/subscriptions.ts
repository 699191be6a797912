/**
 * Resource subscriptions and notices of changed lists of one upstream, on its first instance: `listen` on a modern
 * one, `resources/subscribe` on a legacy one. The relay counts who wants a resource; here it is wanted or not, so that
 * a request which is repeated after a lost link changes nothing.
 */
import type { McpSubscription } from "@modelcontextprotocol/client";
import { UPSTREAM } from "../../limits.ts";
import { concerns } from "../../policy/resource-match.ts";
import { Backoff } from "../backoff.ts";
import { failure } from "../failure.ts";
import type { Instance } from "./instance.ts";
import type { RawOutcome } from "./lane.ts";

const DONE: RawOutcome = { kind: "result", bytes: new TextEncoder().encode("{}") };

export class Subscriptions {
  readonly #wanted = new Set<string>();
  readonly #warn: (message: string) => void;
  #instance: Instance | null = null;
  #resources: McpSubscription | null = null;
  readonly #listening = new Backoff();
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
    if (this.#wanted.size === 0) return;
    if (instance.facts.era === "modern") void this.#queue(async () => await this.#listenToResources(instance));
    else for (const uri of this.#wanted) void instance.internal("resources/subscribe", `{"uri":${JSON.stringify(uri)}}`, UPSTREAM.startMs);
  }

  detach(): void {
    this.#instance = null;
    this.#resources = null;
  }

  /** Whether an update concerns something that is wanted. */
  isWanted(uri: string): boolean {
    if (this.#wanted.has(uri)) return true;
    return [...this.#wanted].some((wanted) => concerns(wanted, uri));
  }

  /** Wants a resource. One that the upstream itself refuses is not wanted; while it is down, it is asked when it is back. */
  async add(uri: string): Promise<RawOutcome> {
    if (this.#wanted.has(uri)) return DONE;
    this.#wanted.add(uri);
    const outcome = await this.#change("resources/subscribe", uri);
    if (outcome.kind === "error") this.#wanted.delete(uri);
    return outcome;
  }

  async remove(uri: string): Promise<RawOutcome> {
    return this.#wanted.delete(uri) ? await this.#change("resources/unsubscribe", uri) : DONE;
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

  /** Opens a stream for the present set before the older one is closed; one that the upstream ends is opened again. */
  async #listenToResources(instance: Instance): Promise<RawOutcome> {
    const before = this.#resources;
    try {
      const uris = [...this.#wanted];
      const stream =
        uris.length === 0 ? null : await instance.connection.client.listen({ resourceSubscriptions: uris }, { timeout: UPSTREAM.startMs });
      this.#resources = stream;
      await before?.close();
      if (stream) void this.#watch(instance, stream, Date.now());
      return DONE;
    } catch {
      return { kind: "failed", failure: failure("upstream_failed", "unknown", "The tool server did not take the subscription.") };
    }
  }

  async #watch(instance: Instance, stream: McpSubscription, since: number): Promise<void> {
    if ((await stream.closed) === "local" || this.#resources !== stream) return;
    this.#resources = null;
    while (this.#instance === instance && !instance.isClosed && this.#resources === null && this.#wanted.size > 0) {
      this.#listening.lasted(Date.now() - since);
      await pause(this.#listening.next());
      if (this.#resources === null) await this.#queue(async () => await this.#listenToResources(instance));
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
      await pause(backoff.next());
    }
  }
}

async function pause(ms: number): Promise<void> {
  await new Promise((resolve) => {
    setTimeout(resolve, ms).unref();
  });
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
