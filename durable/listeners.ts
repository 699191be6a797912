/**
 * Listeners for change notices (design section 5, "Asleep when idle"): who they are is in their sockets and in SQLite,
 * so that the object can sleep between two notices. Each gets what it asked for, as far as the device can tell it and
 * the grant covers it at that moment.
 */
import { visibleCapabilities } from "../src/policy/decide.ts";
import { isUsable, type Rights } from "../src/policy/grant.ts";
import { coversResource } from "../src/policy/other-names.ts";
import { concerns } from "../src/policy/resource-match.ts";
import { LISTEN_CLOSE, LIST_KINDS, type ListKind, type ListVersions } from "../src/tunnel/notices.ts";
import type { Desk } from "./desk.ts";
import { closeListeners, type Listener, type ListenerAttachment, listeners, tellListener } from "./listener-sockets.ts";
import { listenerOwner, sessionOwner } from "./subscriptions.ts";
import { EVERYBODY, type ResourceWant } from "./upstream-resources.ts";

const NONE: ListVersions = { tools: 0, prompts: 0, resources: 0 };

/** What a device can tell of itself to a grant. */
export interface Offer {
  lists: ListKind[];
  resources: boolean;
}

/** The notices that a grant can get, by the capabilities of the device. */
export function offerOf(rights: Rights, capabilities: Record<string, unknown>): Offer {
  const visible = visibleCapabilities(rights, capabilities);
  const has = (kind: ListKind, member: string): boolean => {
    const capability = visible[kind];
    return typeof capability === "object" && capability !== null && (capability as Record<string, unknown>)[member] === true;
  };
  return { lists: LIST_KINDS.filter((kind) => has(kind, "listChanged")), resources: has("resources", "subscribe") };
}

/** Whose rows in the table of subscriptions a listener's are. */
export function ownerOf(facts: Pick<ListenerAttachment, "id" | "session">): string {
  return facts.session === undefined ? listenerOwner(facts.id) : sessionOwner(facts.session);
}

export class Listeners {
  readonly #desk: Desk;

  constructor(desk: Desk) {
    this.#desk = desk;
  }

  /** How often each list was told to have changed. */
  versions(): ListVersions {
    return this.#desk.meta.get("listVersions") ?? NONE;
  }

  /** Tells everybody who listens to a list that it changed. */
  listChanged(what: ListKind): void {
    const before = this.versions();
    const version = before[what] + 1;
    this.#desk.meta.set("listVersions", { ...before, [what]: version });
    for (const listener of this.#open()) {
      const rights = this.#rights(listener);
      if (rights === null || !listener.facts.lists.includes(what)) continue;
      if (visibleCapabilities(rights, { [what]: {} })[what] !== undefined) tellListener(listener, { type: "list", what, version });
    }
  }

  /**
   * Tells everybody who subscribed to a resource, or to what it is a part of, that it changed. With a grant only that
   * grant's: it changed in an instance of the upstream that nobody else has.
   */
  resourceUpdated(uri: string, grant?: string): void {
    let isWanted = false;
    for (const listener of this.#open()) {
      if (grant !== undefined && listener.facts.grant !== grant) continue;
      if (!this.#desk.subscriptions.of(ownerOf(listener.facts)).some((subscribed) => concerns(subscribed, uri))) continue;
      isWanted = true;
      const rights = this.#rights(listener);
      if (rights !== null && coversResource(rights, this.#desk.catalogue.prefixes, uri)) tellListener(listener, { type: "resource", uri });
    }
    // The end of a subscription can be lost with a link: the agent is told again, so that it does not wake this object.
    const isSubscribed = isWanted || this.#wanted().some((want) => want.uri === uri && (grant === undefined || want.grant === grant));
    if (!isSubscribed) this.#desk.upstreamResources.end({ grant: grant ?? EVERYBODY, uri });
  }

  /** Whether a session's own stream is open. */
  hasSession(id: string): boolean {
    return listeners(this.#desk.ctx, { session: id }).length > 0;
  }

  /** Sessions whose stream is open. */
  sessions(): string[] {
    return listeners(this.#desk.ctx).flatMap(({ facts }) => facts.session ?? []);
  }

  /** Ends the listeners of a grant that is over. */
  endGrant(grant: string): void {
    this.#end(listeners(this.#desk.ctx, { grant }), LISTEN_CLOSE.grantOver, "the grant is over");
  }

  /** Ends the stream of a session that is over. */
  endSession(id: string): void {
    this.#desk.subscriptions.drop(sessionOwner(id));
    this.#end(listeners(this.#desk.ctx, { session: id }), LISTEN_CLOSE.sessionOver, "the session is over");
  }

  /** Listeners whose sockets are open. */
  get count(): number {
    return listeners(this.#desk.ctx).length;
  }

  /** The relay stops: each tells its client and then closes its socket, so that `count` says when all have. */
  tellEnd(): void {
    for (const listener of this.#open()) tellListener(listener, { type: "end" });
  }

  /** Ends every listener of a device that is removed. */
  endAll(): void {
    closeListeners(listeners(this.#desk.ctx), LISTEN_CLOSE.removed, "the device is removed");
  }

  /** A listener's socket is gone: what only it wanted is dropped. */
  gone(facts: ListenerAttachment | null): void {
    if (facts?.session !== undefined) this.#desk.sessions.release(facts.session, this.#desk.now());
    this.keep();
  }

  /** Drops the subscriptions of listeners and sessions that are over, and keeps the agent's in step. */
  keep(): void {
    const all = listeners(this.#desk.ctx);
    this.#desk.subscriptions.sweep(new Set(all.map(({ facts }) => ownerOf(facts))));
    this.#desk.upstreamResources.keep(this.#wanted(all));
  }

  #end(ending: readonly Listener[], code: number, reason: string): void {
    closeListeners(ending, code, reason);
    this.keep();
  }

  #open(): Listener[] {
    return listeners(this.#desk.ctx).filter(({ facts }) => facts.isOpen);
  }

  /** What a listener's grant covers now; null when it is over. */
  #rights({ facts }: Listener): Rights | null {
    const grant = this.#desk.grants.get(facts.grant);
    return grant !== undefined && isUsable(grant, this.#desk.now()) ? grant.rights : null;
  }

  /** The resources that somebody who can be told of them subscribed to, by grant; some more than once. */
  #wanted(all: readonly Listener[] = listeners(this.#desk.ctx)): ResourceWant[] {
    const wanted: ResourceWant[] = [];
    for (const listener of all) {
      const rights = this.#rights(listener);
      if (rights === null) continue;
      for (const uri of this.#desk.subscriptions.of(ownerOf(listener.facts)))
        if (coversResource(rights, this.#desk.catalogue.prefixes, uri)) wanted.push({ grant: listener.facts.grant, uri });
    }
    return wanted;
  }
}
