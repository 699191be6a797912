/**
 * All upstreams of a device as one: lists joined, calls to the upstream that owns the name. With one upstream, which
 * is the usual case, everything goes to it as it is.
 */
import type { UpstreamState } from "../../tunnel/frames.ts";
import { itemKey, joinLists } from "../catalogue.ts";
import { failure } from "../failure.ts";
import { MODERN_REVISION } from "./revisions.ts";
import type { CallSink, Upstream, UpstreamCall, UpstreamLists, UpstreamOutcome } from "./upstream.ts";

const LISTS: ReadonlyMap<string, Exclude<keyof UpstreamLists, "discover">> = new Map([
  ["tools/list", "tools"],
  ["resources/list", "resources"],
  ["resources/templates/list", "resourceTemplates"],
  ["prompts/list", "prompts"],
]);

export class Router {
  readonly #upstreams: readonly Upstream[];

  constructor(upstreams: readonly Upstream[]) {
    this.#upstreams = upstreams;
  }

  start(): void {
    for (const upstream of this.#upstreams) upstream.start();
  }

  states(): UpstreamState[] {
    return this.#upstreams.map((upstream) => upstream.state());
  }

  /** What all upstreams offer; null until the first one has said. */
  lists(): UpstreamLists | null {
    return joinLists(this.#upstreams.flatMap((upstream) => upstream.lists() ?? []));
  }

  async run(call: UpstreamCall, sink: CallSink, signal: AbortSignal, ref?: Record<string, unknown>): Promise<UpstreamOutcome> {
    // These belong to a connection, and no caller has one of its own here.
    if (call.method === "ping" || call.method === "logging/setLevel") return empty();
    const list = LISTS.get(call.method);
    if (list !== undefined && this.#upstreams.length > 1) return this.#joined(list);
    const upstream = this.#owner(call, ref);
    if (!upstream) return { kind: "failed", failure: failure("upstream_failed", "not_started", "No tool server is configured.") };
    if (call.method === "resources/subscribe") return await upstream.subscribe(call.target ?? "");
    if (call.method === "resources/unsubscribe") return await upstream.unsubscribe(call.target ?? "");
    return await upstream.run(call, sink, signal);
  }

  /** A real round trip to each; each bounds its own. */
  async probe(): Promise<void> {
    await Promise.all(this.#upstreams.map(async (upstream) => await upstream.probe()));
  }

  async stop(): Promise<void> {
    await Promise.all(this.#upstreams.map(async (upstream) => await upstream.stop()));
  }

  #owner(call: UpstreamCall, ref: Record<string, unknown> | undefined): Upstream | undefined {
    const first = this.#upstreams[0];
    if (this.#upstreams.length <= 1) return first;
    const owns = (list: Exclude<keyof UpstreamLists, "discover">, member: string, key: unknown) =>
      this.#upstreams.find((upstream) => upstream.lists()?.[list].some((item) => itemKey(item, member) === key) ?? false);
    if (call.method === "tools/call") return owns("tools", "name", call.target) ?? first;
    if (call.method === "prompts/get") return owns("prompts", "name", call.target) ?? first;
    if (call.method.startsWith("resources/")) return owns("resources", "uri", call.target) ?? this.#withTemplate(call.target) ?? first;
    if (call.method !== "completion/complete") return first;
    return owns("prompts", "name", ref?.["name"] ?? null) ?? owns("resourceTemplates", "uriTemplate", ref?.["uri"] ?? null) ?? first;
  }

  /** The upstream whose template begins like the address; the longest beginning wins. */
  #withTemplate(uri: string | undefined): Upstream | undefined {
    let best: { upstream: Upstream; length: number } | undefined;
    for (const upstream of this.#upstreams) {
      for (const item of upstream.lists()?.resourceTemplates ?? []) {
        const head = itemKey(item, "uriTemplate")?.split("{")[0] ?? "";
        if (uri?.startsWith(head) === true && head.length > (best?.length ?? 0)) best = { upstream, length: head.length };
      }
    }
    return best?.upstream;
  }

  #joined(list: Exclude<keyof UpstreamLists, "discover">): UpstreamOutcome {
    const items = this.lists()?.[list];
    if (!items) return { kind: "failed", failure: failure("upstream_failed", "not_started", "The tool servers are starting.") };
    return { kind: "result", protocol: MODERN_REVISION, bytes: new TextEncoder().encode(`{"${list}":[${items.join(",")}]}`) };
  }
}

function empty(): UpstreamOutcome {
  return { kind: "result", protocol: MODERN_REVISION, bytes: new TextEncoder().encode("{}") };
}
