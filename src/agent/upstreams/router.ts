/**
 * All upstreams of a device as one: lists joined, and calls sent to the upstream that owns the name, by a table built
 * when lists were read. A single upstream without a prefix gets everything as it is.
 */
import { NAMES } from "../../limits.ts";
import type { UpstreamState } from "../../tunnel/frames.ts";
import { failure } from "../failure.ts";
import type { UpstreamConfig } from "../types.ts";
import { configKey, configText, namingOf } from "./config-identity.ts";
import { differences } from "./list-keeper.ts";
import { Member } from "./member.ts";
import { withPublicUris } from "./public-uris.ts";
import { MODERN_REVISION } from "./revisions.ts";
import { findRoute, isPlain, NOT_LISTED_YET, type Route } from "./routes.ts";
import { buildTable, prefixOf, type ListName, type RoutingTable } from "./routing-table.ts";
import { retarget } from "./params.ts";
import type { CallSink, ListKind, Upstream, UpstreamCall, UpstreamListener, UpstreamLists, UpstreamOutcome } from "./upstream.ts";

const LISTS: ReadonlyMap<string, ListName> = new Map([
  ["tools/list", "tools"],
  ["resources/list", "resources"],
  ["resources/templates/list", "resourceTemplates"],
  ["prompts/list", "prompts"],
]);
const encoder = new TextEncoder();

export interface RouterOptions {
  /** Makes an upstream; it is not started yet. */
  make(config: UpstreamConfig, listener: UpstreamListener): Upstream;
  /** Name and version of the device's server where several upstreams speak for it. */
  serverInfo: Record<string, unknown>;
  /** State or era of an upstream changed. */
  onState(alias: string): void;
  /** Lists were read; `changed` names those that are told to clients. */
  onLists(changed: readonly ListKind[]): void;
  /** A resource that was subscribed to was updated, by its public address; with a grant it concerns nobody else. */
  onResource(uri: string, grant?: string): void;
  warn(message: string): void;
}

export class Router {
  readonly #options: RouterOptions;
  /** Those that take calls, in the order of the configuration: of two with one name the first has it. */
  #members: readonly Member[] = [];
  readonly #leaving = new Set<Promise<void>>();
  #table: RoutingTable;
  /** Public addresses that are subscribed to, with whom and for which grants. */
  readonly #subscribed = new Map<string, { member: Member; grants: Set<string> }>();
  readonly #warned = new Set<string>();
  #isStopped = false;

  constructor(configs: readonly UpstreamConfig[], options: RouterOptions) {
    this.#options = options;
    this.#members = configs.map((config) => new Member(config, this.#make(config)));
    this.#table = this.#build();
  }

  start(): void {
    for (const member of this.#members) this.#start(member);
  }

  /** Takes another configuration: what is the same runs on, the rest ends in order and what is new starts. */
  reconfigure(configs: readonly UpstreamConfig[]): void {
    if (this.#isStopped) return;
    const before = new Map(this.#members.map((member) => [member.key, member]));
    const started: Member[] = [];
    const members = configs.map((config) => {
      const old = before.get(configKey(config));
      if (old && old.text === configText(config)) {
        old.naming = namingOf(config);
        before.delete(old.key);
        return old;
      }
      if (old) before.delete(old.key);
      const member = new Member(config, this.#make(config), old && { gone: this.#leave(old), lists: old.lists });
      started.push(member);
      return member;
    });
    this.#members = members;
    for (const old of before.values()) void this.#leave(old);
    for (const member of started) this.#start(member);
    this.#refresh([]);
  }

  /** One state for each alias: of declared tools, which share one, the first that has a problem. */
  states(): UpstreamState[] {
    const states = new Map<string, UpstreamState>();
    for (const { state } of this.#members) {
      const known = states.get(state.alias);
      if (!known || (known.problem === null && state.problem !== null)) states.set(state.alias, state);
    }
    return [...states.values()];
  }

  /** What all upstreams offer; null until the first one has said. */
  lists(): UpstreamLists | null {
    return isPlain(this.#members) ? (this.#members[0]?.lists ?? null) : this.#table.lists;
  }

  /** Whether every upstream has said what it offers, or cannot. */
  get isSettled(): boolean {
    return this.#members.every((member) => member.isSettled);
  }

  async run(call: UpstreamCall, sink: CallSink, signal: AbortSignal, ref?: Record<string, unknown>): Promise<UpstreamOutcome> {
    // These belong to a connection, and no caller has one of its own here.
    if (call.method === "ping" || call.method === "logging/setLevel") return json("{}");
    const list = LISTS.get(call.method);
    if (list !== undefined && !isPlain(this.#members)) return this.#joined(list);
    const route = findRoute(this.#members, this.#table, { method: call.method, target: call.target, ref });
    if (!("member" in route)) return route;
    if (call.method === "resources/subscribe") return await this.#subscribe(call.target ?? "", call.grant, route);
    if (call.method === "resources/unsubscribe") return await this.#unsubscribe(call.target ?? "", call.grant, route);
    if (route.own !== undefined && call.names?.includes(route.own) !== true) return unchecked();
    return await this.#forward(call, sink, signal, route);
  }

  /** A real round trip to each; each bounds its own. */
  async probe(): Promise<void> {
    await Promise.all(this.#members.map(async (member) => await member.probe()));
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await Promise.all([...this.#members.map(async (member) => await member.stop()), ...this.#leaving]);
  }

  async #forward(call: UpstreamCall, sink: CallSink, signal: AbortSignal, { member, own, target, ref }: Route): Promise<UpstreamOutcome> {
    const inner = own === undefined ? call : { ...call, target, params: retarget(call.params, { method: call.method, target, ref }) };
    const outcome = await member.run(inner, sink, signal);
    const prefix = member.naming.resourcePrefix ?? "";
    if (outcome.kind !== "result" || prefix === "") return outcome;
    return { ...outcome, bytes: withPublicUris(call.method, outcome.bytes, prefix) };
  }

  async #subscribe(uri: string, grant: string, { member, own }: Route): Promise<UpstreamOutcome> {
    const known = this.#subscribed.get(uri);
    const entry = known?.member === member ? known : { member, grants: new Set<string>() };
    this.#subscribed.set(uri, entry);
    entry.grants.add(grant);
    const outcome = await member.subscribe(own ?? uri, grant);
    if (outcome.kind === "error") this.#forgetSubscription(uri, grant);
    return outcome;
  }

  async #unsubscribe(uri: string, grant: string, route: Route): Promise<UpstreamOutcome> {
    const member = this.#subscribed.get(uri)?.member ?? route.member;
    this.#forgetSubscription(uri, grant);
    const own = member === route.member ? (route.own ?? uri) : uri.slice(prefixOf(member.naming, "resources").length);
    return await member.unsubscribe(own, grant);
  }

  /** Without a grant nobody wants it any more. */
  #forgetSubscription(uri: string, grant: string): void {
    const entry = this.#subscribed.get(uri);
    entry?.grants.delete(grant);
    if (grant === "" || entry?.grants.size === 0) this.#subscribed.delete(uri);
  }

  /** Subscriptions at an upstream that was replaced go on at its successor. */
  #renewSubscriptions(): void {
    for (const [uri, { member, grants }] of this.#subscribed) {
      if (this.#members.includes(member)) continue;
      const route = findRoute(this.#members, this.#table, { method: "resources/subscribe", target: uri, ref: undefined });
      if ("member" in route) for (const grant of grants) void this.#subscribe(uri, grant, route);
    }
  }

  #joined(list: ListName): UpstreamOutcome {
    const items = this.#table.lists?.[list];
    return items ? json(`{"${list}":[${items.join(",")}]}`) : { kind: "failed", failure: NOT_LISTED_YET };
  }

  #make(config: UpstreamConfig): Upstream {
    const key = configKey(config);
    const upstream = this.#options.make(config, {
      state: () => {
        if (isMine()) this.#options.onState(upstream.alias);
        // What cannot start is not waited for, and has no lists of a predecessor any more.
        if (isMine() && upstream.state().state === "crashed") this.#refresh([]);
      },
      lists: (changed) => {
        if (isMine()) this.#refresh(changed);
      },
      resourceUpdated: (uri, grant) => {
        const member = this.#members.find((candidate) => candidate.is(upstream));
        if (member) this.#options.onResource(prefixOf(member.naming, "resources") + uri, grant);
      },
      warning: (message) => this.#options.warn(message),
    });
    const isMine = () => this.#members.some((member) => member.key === key && member.is(upstream));
    return upstream;
  }

  #start(member: Member): void {
    member.start(() => !this.#isStopped && this.#members.includes(member));
  }

  #leave(member: Member): Promise<void> {
    const gone = member.leave().finally(() => this.#leaving.delete(gone));
    this.#leaving.add(gone);
    return gone;
  }

  #build(): RoutingTable {
    const parts = this.#members.map(({ alias, naming, lists }) => ({ alias, naming, lists }));
    return buildTable(parts, this.#options.serverInfo);
  }

  /** Lists were read, or the configuration changed: told is what differs, and what a single upstream says itself. */
  #refresh(changed: readonly ListKind[]): void {
    const before = this.#table;
    this.#table = this.#build();
    this.#tellCollisions();
    const differing = before.lists && this.#table.lists ? differences(before.lists, this.#table.lists) : [];
    const told = isPlain(this.#members) ? [...new Set([...changed, ...differing])] : differing;
    this.#renewSubscriptions();
    this.#options.onLists(told);
  }

  #tellCollisions(): void {
    const { collisions } = this.#table;
    for (const [part, member] of this.#members.entries()) {
      const mine = collisions.filter((collision) => collision.part === part);
      const [one] = mine;
      const more = mine.length > 1 ? `, and ${mine.length - 1} more` : "";
      member.conflict = one
        ? `The ${one.what} ${JSON.stringify(one.name.slice(0, NAMES.shown))} of ${one.second} is not offered: ${one.first} has one of that name${more}. Give one of them a prefix.`
        : null;
      if (member.conflict === null || this.#warned.has(member.conflict)) continue;
      this.#warned.add(member.conflict);
      this.#options.warn(member.conflict);
      this.#options.onState(member.alias);
    }
  }
}

function json(text: string): UpstreamOutcome {
  return { kind: "result", protocol: MODERN_REVISION, bytes: encoder.encode(text) };
}

/** The relay decided before it knew of this name, as in the moment when a prefix is new. */
function unchecked(): UpstreamOutcome {
  const text = "The device's names changed while the call was on its way. Read its lists and call again.";
  return { kind: "failed", failure: failure("refused_by_device", "not_started", text) };
}
