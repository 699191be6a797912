/**
 * What the object tells D1 and takes from it, beside every call and never on one's path: presence out, newer grants in.
 * D1 may be away: that is logged and tried again by the alarm, and the tunnel works on with what the object has.
 */
import { findDevice, recordPresence } from "../src/db/devices.ts";
import { grantsSince } from "../src/db/grants.ts";
import { TUNNEL } from "../src/limits.ts";
import { log } from "../src/log.ts";
import type { Desk } from "./desk.ts";
import { takeChange } from "./device-changes.ts";
import { takeGrant } from "./grant-changes.ts";

export class Presence {
  readonly #desk: Desk;
  readonly #db: D1Database;
  #pull: Promise<void> | undefined;

  constructor(desk: Desk, db: D1Database) {
    this.#desk = desk;
    this.#db = db;
  }

  /** Tells D1 how the newest generation is, and pulls grants when it is online. Never rejects. */
  sync(): void {
    this.#desk.ctx.waitUntil(this.#tell());
    if (this.#desk.links.current() !== null) {
      this.#pull ??= this.#pullGrants();
      this.#desk.ctx.waitUntil(this.#pull);
    }
  }

  /** Settles when no pull of grants runs any more, at the latest after TUNNEL.syncWaitMs. */
  async settled(): Promise<void> {
    if (this.#pull === undefined) return;
    let timer: number | null = null;
    const limit = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, TUNNEL.syncWaitMs);
    });
    await Promise.race([this.#pull, limit]);
    clearTimeout(timer);
  }

  /** After a reset nobody hears that the sockets closed: what D1 was told last may be wrong. */
  correct(): void {
    const { meta, links } = this.#desk;
    if (meta.get("isShownOnline") === true && links.current() === null) this.sync();
  }

  async #tell(): Promise<void> {
    const { meta, links } = this.#desk;
    const deviceId = meta.get("deviceId");
    const generation = meta.get("generation");
    if (deviceId === undefined || generation === undefined) return;
    const isOnline = links.current() !== null;
    meta.set("isShownOnline", isOnline);
    try {
      await recordPresence(this.#db, deviceId, {
        generation,
        online: isOnline,
        lastSeenAt: meta.get("lastSeenAt") ?? this.#desk.now(),
        agentVersion: meta.get("agentVersion"),
      });
    } catch (error) {
      this.#retry("presence.not-recorded", deviceId, error);
    }
  }

  async #pullGrants(): Promise<void> {
    const { meta } = this.#desk;
    const deviceId = meta.get("deviceId") ?? "";
    const since = meta.get("pulledRevision") ?? 0;
    try {
      const grants = await grantsSince(this.#db, deviceId, since);
      const device = await findDevice(this.#db, deviceId);
      if (this.#desk.isOver) return;
      if (device !== null) takeChange(this.#desk, { pausedAt: device.pausedAt });
      for (const grant of grants) takeGrant(this.#desk, grant);
      meta.set("pulledRevision", Math.max(since, ...grants.map((grant) => grant.revision)));
    } catch (error) {
      this.#retry("grants.not-pulled", deviceId, error);
    } finally {
      this.#pull = undefined;
    }
  }

  #retry(event: string, deviceId: string, error: unknown): void {
    log("warn", event, { deviceId, error });
    if (!this.#desk.isOver) this.#desk.alarms.planBy("sync", this.#desk.now() + TUNNEL.syncRetryMs);
  }
}
