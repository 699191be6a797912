/**
 * What the object's parts share while it is awake: the tables of calls, the link, the copies of what D1 and the device
 * said. Built from storage when first needed; everything here can be lost at any time and is then built again.
 */
import { QUEUE, TUNNEL } from "../src/limits.ts";
import type { UpstreamState } from "../src/tunnel/frames.ts";
import { FlowBudget } from "../src/tunnel/flow.ts";
import { HeldBytes } from "../src/tunnel/held-bytes.ts";
import { Alarms } from "./alarms.ts";
import { AuditBuffer } from "./audit-buffer.ts";
import { CallRates } from "./call-rates.ts";
import { Catalogue } from "./catalogue.ts";
import { Delivered } from "./delivered.ts";
import { FairQueue } from "./fair-queue.ts";
import { Grants } from "./grants.ts";
import { LegacySessions } from "./legacy-sessions.ts";
import { ListChanges } from "./list-changes.ts";
import { Listeners } from "./listeners.ts";
import { Links } from "./links.ts";
import { Meta } from "./meta.ts";
import { ParkedCalls } from "./parked-calls.ts";
import { PendingCalls } from "./pending-calls.ts";
import { Presence } from "./presence.ts";
import { Subscriptions } from "./subscriptions.ts";
import { Ticker } from "./ticker.ts";
import { UpstreamResources } from "./upstream-resources.ts";
import { type PostWake, Waker } from "./waker.ts";
import { Watchers } from "./watchers.ts";

/** A call that waits for its turn. `go` takes the place that became free, at once, or ends the call. */
export interface Turn {
  readonly grant: string;
  go(): void;
}

export class Desk {
  readonly ctx: DurableObjectState;
  readonly meta: Meta;
  readonly grants: Grants;
  readonly sessions: LegacySessions;
  readonly catalogue: Catalogue;
  readonly alarms: Alarms;
  readonly parked: ParkedCalls;
  readonly links: Links;
  readonly presence: Presence;
  readonly delivered: Delivered;
  readonly listeners: Listeners;
  readonly listChanges: ListChanges;
  readonly subscriptions: Subscriptions;
  readonly upstreamResources: UpstreamResources;
  readonly watchers = new Watchers(this);
  readonly pending = new PendingCalls((call) => this.watchers.began(call));
  readonly rates: CallRates;
  readonly audit: AuditBuffer;
  /** Refused attempts of each grant that became rows. */
  readonly refusals = new CallRates();
  readonly queue = new FairQueue<Turn>(QUEUE.waiting);
  /** Who stands in the queue, by call id. */
  readonly turns = new Map<string, Turn>();
  readonly ticker: Ticker;
  readonly flow = new FlowBudget({
    totalBytes: TUNNEL.heldBytes,
    initialBytes: TUNNEL.initialCreditBytes + TUNNEL.creditSlackBytes,
    refillBytes: TUNNEL.creditSlackBytes,
    maxWindowBytes: TUNNEL.maxWindowBytes,
    slots: TUNNEL.maxConcurrentCalls,
  });
  /** Epoch ms until which the relay counts as about to end. */
  drainsUntil = 0;
  /** The same, for an end after which nobody takes over. */
  stopsUntil = 0;
  /** Requests that the agent does not have yet, by call id, and the questions and answers of calls, by `asksOf`. */
  readonly held = new HeldBytes(TUNNEL.heldRequestBytes);
  /** The object was destroyed: late work must leave storage alone. */
  isOver = false;
  /** Epoch ms of the last call that had an outcome; stored with the next batch of deliveries. */
  lastCallAt: number | undefined;
  /** Calls that ended here and may be asked for again, with their grant; the newest JOURNAL.entries. */
  readonly settled = new Map<string, string>();
  /** Which run of the agent the calls in flight were sent to. */
  lastInstance: string | undefined;
  lastInstallation: string | undefined;
  /** Upstreams as the agent told them on this instance's watch. */
  upstreams: UpstreamState[] | undefined;
  /** Resolved, and made anew, whenever a catalogue arrives. */
  catalogueArrived = Promise.withResolvers<void>();

  readonly waker: Waker;

  constructor(ctx: DurableObjectState, db: D1Database, onTick: (desk: Desk) => void, postWake: PostWake) {
    this.ctx = ctx;
    this.waker = new Waker(this, postWake);
    const { storage } = ctx;
    this.meta = new Meta(storage.sql);
    this.grants = new Grants(storage.sql);
    this.listeners = new Listeners(this);
    this.listChanges = new ListChanges(this);
    this.subscriptions = new Subscriptions(storage.sql);
    this.upstreamResources = new UpstreamResources(this);
    this.sessions = new LegacySessions(storage.sql, (id) => this.pending.ofSession(id) > 0 || this.listeners.hasSession(id));
    this.sessions.onEnd = (id) => this.listeners.endSession(id);
    this.sessions.streaming = () => this.listeners.sessions();
    this.catalogue = new Catalogue(storage);
    this.alarms = new Alarms(storage);
    this.parked = new ParkedCalls(storage.sql);
    this.links = new Links(ctx);
    this.presence = new Presence(this, db);
    this.rates = new CallRates((since) => this.audit.callsSince(this.meta.get("deviceId") ?? "", since));
    this.audit = new AuditBuffer({
      sql: storage.sql,
      db,
      planRetry: (at) => this.alarms.planBy("audit", at),
      onStored: () => this.delivered.flush(),
      now: () => this.now(),
    });
    this.delivered = new Delivered(
      this.links,
      (id) => !this.audit.holds(id) && this.pending.get(id) === undefined,
      () => this.#keepLastCall(),
    );
    this.ticker = new Ticker(() => onTick(this));
    this.lastCallAt = this.meta.get("lastCallAt");
    this.countSlots();
  }

  /** Epoch ms. */
  now(): number {
    return Date.now();
  }

  /** Takes over how many calls the agent runs at once; parked ones keep their place at the agent. */
  countSlots(): void {
    const offered = this.links.current()?.attachment.maxConcurrentCalls ?? TUNNEL.maxConcurrentCalls;
    this.flow.setSlots(Math.min(offered, TUNNEL.maxConcurrentCalls) - this.parked.count());
  }

  /** At most one write a minute, and never while a call waits for it. */
  #keepLastCall(): void {
    if (this.isOver) return;
    const stored = this.meta.get("lastCallAt") ?? 0;
    if (this.lastCallAt !== undefined && this.lastCallAt - stored >= TUNNEL.pingMs) this.meta.set("lastCallAt", this.lastCallAt);
  }
}
