/**
 * Resource subscriptions and notices of changed lists of one upstream. On its first instance for everybody: `listen` on
 * a modern one, `resources/subscribe` on a legacy one. On the instances beside it for the grant that has one, as a
 * change can be seen in that process alone. A grant wants a resource or does not, so that a request which is repeated
 * after a lost link changes nothing.
 */
import type { McpSubscription } from "@modelcontextprotocol/client";
import { UPSTREAM } from "../../limits.ts";
import { concerns } from "../../policy/resource-match.ts";
import { Backoff } from "../backoff.ts";
import { failure } from "../failure.ts";
import type { Instance } from "./instance.ts";
import type { RawOutcome } from "./lane.ts";

const DONE: RawOutcome = { kind: "result", bytes: new TextEncoder().encode("{}") };

/** A resource that some grants want. */
interface Wanted {
  grants: Set<string>;
  /** What the first instance said when it was asked. */
  asked: Promise<RawOutcome>;
}

export class Subscriptions {
  readonly #wanted = new Map<string, Wanted>();
  /** Instances beside the first one that can be subscribed to resources. */
  readonly #beside = new Set<Instance>();
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
    else for (const uri of this.#wanted.keys()) void ask(instance, "resources/subscribe", uri, UPSTREAM.startMs);
  }

  detach(): void {
    this.#instance = null;
    this.#resources = null;
  }

  /** A new instance beside the first: it is asked for what its grant wants, so that its first call already tells. */
  async join(instance: Instance): Promise<void> {
    for (const other of this.#beside) if (other.isClosed) this.#beside.delete(other);
    if (!canSubscribe(instance)) return;
    this.#beside.add(instance);
    const uris = this.wantedBy(instance.owner);
    await Promise.all(uris.map(async (uri) => await ask(instance, "resources/subscribe", uri, UPSTREAM.probeMs)));
  }

  /** What a grant wants; without one, what anybody wants. */
  wantedBy(grant: string | undefined): string[] {
    const all = [...this.#wanted.entries()];
    return all.filter(([, { grants }]) => grant === undefined || grants.has(grant)).map(([uri]) => uri);
  }

  /** Whether an update concerns something that the grant wants; without one, that anybody wants. */
  isWanted(uri: string, grant: string | undefined): boolean {
    return this.wantedBy(grant).some((wanted) => concerns(wanted, uri));
  }

  /** A grant wants a resource. One that the upstream itself refuses is not wanted; while it is down, it is asked when it is back. */
  async add(uri: string, grant: string): Promise<RawOutcome> {
    const known = this.#wanted.get(uri);
    if (known?.grants.has(grant) === true) return DONE;
    const entry = known ?? { grants: new Set(), asked: this.#change("resources/subscribe", uri) };
    entry.grants.add(grant);
    this.#wanted.set(uri, entry);
    const outcome = await entry.asked;
    if (outcome.kind !== "error") await this.#changeBeside("resources/subscribe", uri, grant);
    else if (this.#wanted.get(uri) === entry) this.#wanted.delete(uri);
    return outcome;
  }

  /** A grant no longer wants a resource; without one, nobody does. */
  async remove(uri: string, grant: string): Promise<RawOutcome> {
    const entry = this.#wanted.get(uri);
    if (!entry) return DONE;
    const leaving = grant === "" ? [...entry.grants] : [grant].filter((one) => entry.grants.has(one));
    for (const one of leaving) entry.grants.delete(one);
    const isOver = entry.grants.size === 0;
    if (isOver) this.#wanted.delete(uri);
    await Promise.all(leaving.map(async (one) => await this.#changeBeside("resources/unsubscribe", uri, one)));
    return isOver ? await this.#change("resources/unsubscribe", uri) : DONE;
  }

  /** Asks the instances that a grant's calls run on; what they say changes nothing, for the first one took it. */
  async #changeBeside(method: string, uri: string, grant: string): Promise<void> {
    const isOver = !this.#wanted.has(uri);
    const concerned = [...this.#beside].filter(({ isClosed, owner }) => {
      // One that many share is left alone while anybody else wants the resource.
      return !isClosed && (owner === grant || (owner === undefined && (isOver || method === "resources/subscribe")));
    });
    await Promise.all(concerned.map(async (instance) => await ask(instance, method, uri, UPSTREAM.probeMs)));
  }

  async #change(method: string, uri: string): Promise<RawOutcome> {
    const instance = this.#instance;
    if (!instance) return { kind: "failed", failure: failure("upstream_failed", "not_started", "The tool server is not running.") };
    if (instance.facts.era === "legacy") return await ask(instance, method, uri, UPSTREAM.startMs);
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
      const uris = [...this.#wanted.keys()];
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

async function ask(instance: Instance, method: string, uri: string, timeoutMs: number): Promise<RawOutcome> {
  return await instance.internal(method, `{"uri":${JSON.stringify(uri)}}`, timeoutMs);
}

function canSubscribe({ facts }: Instance): boolean {
  const { resources } = facts.capabilities;
  return typeof resources === "object" && resources !== null && "subscribe" in resources && resources.subscribe === true;
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
