/**
 * Audit rows on their way to D1: gathered in memory, written in one batch after a quarter of a second or a hundred
 * rows, never on a call's path. When D1 does not take a batch, the object's own storage does, and the alarm tries again.
 * Until a row is in one of the two, the agent is not told that it may forget the call: a lost object loses no row of a
 * call that ran.
 */
import { callsSince, insertAuditRows, type NewAuditRow, sweepAudit } from "../src/db/audit.ts";
import { AUDIT } from "../src/limits.ts";
import { log } from "../src/log.ts";
import { countRow } from "../src/metrics.ts";
import type { MadeCall } from "./call-rates.ts";

/** What the buffer needs of its object. */
export interface AuditPlace {
  readonly sql: SqlStorage;
  readonly db: D1Database;
  /** Asks for `retry` at this time (epoch ms). */
  planRetry(at: number): void;
  /** Rows were stored: what waited for them may go on. */
  onStored(): void;
  now(): number;
}

export class AuditBuffer {
  readonly #place: AuditPlace;
  #rows: NewAuditRow[] = [];
  /** Ids of rows in neither place yet. */
  readonly #unstored = new Set<string>();
  #timer: number | null = null;
  #writing: Promise<void> | undefined;
  #sweptAt = 0;

  constructor(place: AuditPlace) {
    this.#place = place;
  }

  /** Takes a row. Returns at once. */
  add(row: NewAuditRow): void {
    countRow(row);
    this.#rows.push(row);
    this.#unstored.add(row.id);
    if (this.#rows.length >= AUDIT.batchRows) void this.flush();
    else this.#timer ??= setTimeout(() => void this.flush(), AUDIT.delayMs);
  }

  /** Whether a row with this id still waits to be stored. */
  holds(id: string): boolean {
    return this.#unstored.has(id);
  }

  /** The device's calls since a time (epoch ms) that are on record. Without D1, those it did not take. Never rejects. */
  async callsSince(deviceId: string, since: number): Promise<MadeCall[]> {
    const kept = this.#kept().filter((row) => row.kind === "call" && row.at > since);
    const calls = kept.flatMap(({ grant, at }) => (grant === undefined || grant === null ? [] : [{ grant, at }]));
    try {
      return [...calls, ...(await withDeadline(callsSince(this.#place.db, deviceId, since), AUDIT.writeMs))];
    } catch (error) {
      log("warn", "audit.not-read", { deviceId, error });
      return calls;
    }
  }

  /** Stores what is gathered. Never rejects; batches do not overlap. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = null;
    this.#writing ??= this.#writeAll().finally(() => {
      this.#writing = undefined;
    });
    await this.#writing;
  }

  /** The alarm's work: rows that D1 did not take go there now, or are planned again. Never rejects. */
  async retry(): Promise<void> {
    try {
      if (!(await this.#handOver())) this.#place.planRetry(this.#place.now() + AUDIT.retryMs);
    } catch (error) {
      // The object was destroyed in the meantime: its tables are gone.
      log("warn", "audit.not-handed-over", { error });
    }
  }

  async #handOver(): Promise<boolean> {
    for (;;) {
      const kept = this.#kept(AUDIT.batchRows);
      if (kept.length === 0) return true;
      if (!(await this.#toD1(kept))) return false;
      for (const { id } of kept) this.#place.sql.exec("DELETE FROM audit_kept WHERE id = ?", id);
    }
  }

  #kept(limit: number = AUDIT.keptRows): NewAuditRow[] {
    const rows = this.#place.sql.exec<{ row: string }>("SELECT row FROM audit_kept LIMIT ?", limit).toArray();
    return rows.map(({ row }) => JSON.parse(row) as NewAuditRow);
  }

  async #writeAll(): Promise<void> {
    while (this.#rows.length > 0) {
      const batch = this.#rows.splice(0, AUDIT.batchRows);
      if (!(await this.#toD1(batch))) this.#keep(batch);
      for (const { id } of batch) this.#unstored.delete(id);
      this.#place.onStored();
    }
  }

  async #toD1(rows: readonly NewAuditRow[]): Promise<boolean> {
    const { db } = this.#place;
    const now = this.#place.now();
    const isSweep = now - this.#sweptAt >= AUDIT.sweepMs;
    try {
      const statements = [insertAuditRows(db, rows), ...(isSweep ? [sweepAudit(db, now)] : [])];
      await withDeadline(db.batch(statements), AUDIT.writeMs);
      if (isSweep) this.#sweptAt = now;
      return true;
    } catch (error) {
      log("warn", "audit.not-written", { rows: rows.length, error });
      return false;
    }
  }

  /** Into the object's storage, the oldest giving way when there are too many. */
  #keep(rows: readonly NewAuditRow[]): void {
    const { sql } = this.#place;
    try {
      for (const row of rows) sql.exec("INSERT OR IGNORE INTO audit_kept (id, row) VALUES (?, ?)", row.id, JSON.stringify(row));
      const dropped = sql.exec(
        "DELETE FROM audit_kept WHERE rowid <= (SELECT MAX(rowid) FROM audit_kept) - ? RETURNING id",
        AUDIT.keptRows,
      );
      const count = dropped.toArray().length;
      if (count > 0) log("error", "audit.rows-dropped", { count });
      this.#place.planRetry(this.#place.now() + AUDIT.retryMs);
    } catch (error) {
      // The object was destroyed in the meantime: its tables are gone.
      log("error", "audit.not-kept", { rows: rows.length, error });
    }
  }
}

async function withDeadline<T>(work: Promise<T>, ms: number): Promise<T> {
  let timer: number | null = null;
  const deadline = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`D1 did not answer within ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([work, deadline]);
  } finally {
    clearTimeout(timer);
  }
}
