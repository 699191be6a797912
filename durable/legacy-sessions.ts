/**
 * Legacy sessions of one device (design section 6), in SQLite, so that neither a deploy nor hibernation ends them.
 * A session counts from the first request that echoes its id. It is awake until its idle time is over, then asleep
 * for a day: the next request of the same grant wakes it. Idle time does not run while something is in flight.
 * Ended and evicted sessions are unknown for good.
 */
import { z } from "zod";
import { SESSION } from "../src/limits.ts";
import type { SessionInit, SessionUse } from "./rpc.ts";

const JsonObject = z.record(z.string(), z.unknown());
const Row = z
  .object({
    id: z.string(),
    grant_id: z.string(),
    version: z.string(),
    capabilities: z.string(),
    client_info: z.string().nullable(),
    log_level: z.string().nullable(),
    is_used: z.number(),
    last_used_at: z.number(),
  })
  .transform((row) => ({
    id: row.id,
    grant: row.grant_id,
    version: row.version,
    capabilities: JsonObject.parse(JSON.parse(row.capabilities)),
    clientInfo: row.client_info === null ? undefined : JsonObject.parse(JSON.parse(row.client_info)),
    logLevel: row.log_level ?? undefined,
    isUsed: row.is_used === 1,
    lastUsedAt: row.last_used_at,
    writtenAt: row.last_used_at,
  }));

/** A session as the object works with it. Times are epoch ms. */
export type LegacySession = z.output<typeof Row>;

export type SessionResult = { ok: true; session: LegacySession } | { ok: false; why: "unknown" | "version" | "busy" };

/** Bounds of a device's sessions. */
export interface SessionRules {
  idleMs: number;
  asleepMs: number;
  perGrant: number;
  perDevice: number;
}

export const SESSION_RULES: SessionRules = {
  idleMs: SESSION.idleMs,
  asleepMs: SESSION.asleepMs,
  perGrant: SESSION.perGrant,
  perDevice: SESSION.perDevice,
};

export class LegacySessions {
  readonly #sql: SqlStorage;
  readonly #rules: SessionRules;
  /** Whether something of this session is in flight: then it is awake, and not to be evicted. */
  readonly #isBusy: (id: string) => boolean;
  readonly #cache = new Map<string, LegacySession>();
  /** Told of a session that ended, in whatever way but with its grant. */
  onEnd: (id: string) => void = () => undefined;
  /** Sessions whose own stream is open: they are awake however long ago their last request was. */
  streaming: () => readonly string[] = () => [];

  constructor(sql: SqlStorage, isBusy: (id: string) => boolean, rules: SessionRules = SESSION_RULES) {
    this.#sql = sql;
    this.#isBusy = isBusy;
    this.#rules = rules;
  }

  /** Opens a session. `busy` when the grant's sessions are all awake with something in flight. */
  open(grant: string, init: SessionInit, now: number): { ok: true; id: string } | { ok: false; why: "busy" | "too_large" } {
    const capabilities = JSON.stringify(init.capabilities);
    const clientInfo = init.clientInfo === undefined ? null : JSON.stringify(init.clientInfo);
    if (capabilities.length + (clientInfo?.length ?? 0) > SESSION.recordBytes) return { ok: false, why: "too_large" };
    this.#purge(grant, now);
    const awake = this.#awake(now).filter((session) => session.grant === grant);
    if (awake.length >= this.#rules.perGrant && awake.every((session) => this.#isBusy(session.id))) return { ok: false, why: "busy" };
    const id = crypto.randomUUID();
    this.#sql.exec(
      `INSERT INTO sessions (id, grant_id, version, capabilities, client_info, is_used, created_at, last_used_at)
       VALUES (?, ?, ?, ?, ?, 0, ?, ?)`,
      id,
      grant,
      init.version,
      capabilities,
      clientInfo,
      now,
      now,
    );
    return { ok: true, id };
  }

  /** Checks a session for a request and marks its use. Another grant's session is as unknown as one that never was. */
  use(grant: string, use: SessionUse, now: number): SessionResult {
    const session = this.#find(use.id);
    if (session === undefined || session.grant !== grant) return { ok: false, why: "unknown" };
    const isAwake = this.#isAwake(session, now);
    const asleepMs = use.strict === true ? 0 : this.#rules.asleepMs;
    if (!isAwake && now >= session.lastUsedAt + this.#rules.idleMs + asleepMs) {
      this.end(session.id);
      return { ok: false, why: "unknown" };
    }
    if (use.headerVersion !== undefined && use.headerVersion !== session.version) return { ok: false, why: "version" };
    const counts = isAwake && session.isUsed;
    if (!counts && !this.#makeRoom(session, now)) return { ok: false, why: "busy" };
    session.lastUsedAt = now;
    if (!counts || now - session.writtenAt >= SESSION.touchMs) this.#write(session);
    return { ok: true, session };
  }

  /** Something of the session ended at `now`: its idle time starts again. */
  release(id: string, now: number): void {
    const session = this.#cache.get(id);
    if (session === undefined) return;
    session.lastUsedAt = now;
    if (now - session.writtenAt >= SESSION.touchMs) this.#write(session);
  }

  /** Keeps the lowest level of log notifications that the session wants. */
  setLogLevel(session: LegacySession, level: string): void {
    session.logLevel = level;
    this.#sql.exec("UPDATE sessions SET log_level = ? WHERE id = ?", level, session.id);
  }

  /** A session as it is, without using or waking it; undefined when it is unknown to this grant. */
  peek(grant: string, id: string): LegacySession | undefined {
    const session = this.#find(id);
    return session?.grant === grant ? session : undefined;
  }

  /** Ends a session: its id is unknown from now on. */
  end(id: string): void {
    this.#sql.exec("DELETE FROM sessions WHERE id = ?", id);
    this.#cache.delete(id);
    this.onEnd(id);
  }

  /** Ends all sessions of a grant. */
  endGrant(grant: string): void {
    this.#sql.exec("DELETE FROM sessions WHERE grant_id = ?", grant);
    for (const session of this.#cache.values()) if (session.grant === grant) this.#cache.delete(session.id);
  }

  /** Sessions awake at `now`. */
  countAwake(now: number): number {
    return this.#awake(now).length;
  }

  #find(id: string): LegacySession | undefined {
    const cached = this.#cache.get(id);
    if (cached !== undefined) return cached;
    const [row] = this.#sql.exec("SELECT * FROM sessions WHERE id = ?", id).toArray();
    if (row === undefined) return undefined;
    const session = Row.parse(row);
    this.#cache.set(id, session);
    return session;
  }

  #isAwake(session: LegacySession, now: number): boolean {
    return now < session.lastUsedAt + this.#rules.idleMs || this.#isBusy(session.id);
  }

  /** Sessions that count: used and awake, longest idle first. The cache knows of uses that were not written yet. */
  #awake(now: number): LegacySession[] {
    const oldest = now - this.#rules.idleMs - SESSION.touchMs;
    const ids = this.#sql.exec<{ id: string }>("SELECT id FROM sessions WHERE is_used = 1 AND last_used_at > ?", oldest).toArray();
    const known = new Set([...ids.map((row) => row.id), ...this.streaming()]);
    for (const session of this.#cache.values()) if (session.isUsed) known.add(session.id);
    return [...known]
      .map((id) => this.#find(id))
      .filter((session) => session !== undefined)
      .filter((session) => this.#isAwake(session, now))
      .sort((a, b) => a.lastUsedAt - b.lastUsedAt);
  }

  /** Lets a session count, evicting the longest idle one without anything in flight if it would be one too many. */
  #makeRoom(session: LegacySession, now: number): boolean {
    const awake = this.#awake(now).filter((other) => other.id !== session.id);
    const own = awake.filter((other) => other.grant === session.grant);
    const crowd = own.length >= this.#rules.perGrant ? own : awake.length >= this.#rules.perDevice ? awake : [];
    if (crowd.length > 0) {
      const victim = crowd.find((other) => !this.#isBusy(other.id));
      if (victim === undefined) return false;
      this.end(victim.id);
    }
    session.isUsed = true;
    return true;
  }

  /** Deletes what nobody can wake any more, and keeps the rows of one grant that do not count within their bound. */
  #purge(grant: string, now: number): void {
    const gone = now - this.#rules.idleMs - this.#rules.asleepMs - SESSION.touchMs;
    for (const row of this.#sql.exec<{ id: string }>("SELECT id FROM sessions WHERE last_used_at <= ?", gone).toArray())
      if (!this.#isBusy(row.id)) this.end(row.id);
    const counted = new Set(this.#awake(now).map((session) => session.id));
    const rows = this.#sql
      .exec<{ id: string }>("SELECT id FROM sessions WHERE grant_id = ? ORDER BY last_used_at DESC", grant)
      .toArray()
      .filter((row) => !counted.has(row.id));
    for (const row of rows.slice(SESSION.asleepPerGrant - 1)) if (!this.#isBusy(row.id)) this.end(row.id);
  }

  #write(session: LegacySession): void {
    this.#sql.exec(
      "UPDATE sessions SET last_used_at = ?, is_used = ? WHERE id = ?",
      session.lastUsedAt,
      session.isUsed ? 1 : 0,
      session.id,
    );
    session.writtenAt = session.lastUsedAt;
  }
}
