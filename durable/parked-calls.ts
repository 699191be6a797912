/**
 * Calls that wait for a person while nobody is attached (design section 6). They are kept in SQLite, not in memory,
 * so that the object can sleep for the minutes this takes. One that waited too long stays for an hour to say so.
 */
import { z } from "zod";
import { CALL } from "../src/limits.ts";
import { CallNotes } from "./call-notes.ts";

const Facts = z.object({
  clientId: z.string().optional(),
  canStream: z.boolean(),
  timeoutMs: z.number(),
  era: z.enum(["modern", "legacy"]).optional(),
  notes: CallNotes.optional(),
});

const Row = z
  .object({
    call_id: z.string(),
    grant_id: z.string(),
    session_id: z.string().nullable(),
    generation: z.number(),
    seq: z.number(),
    remaining_ms: z.number(),
    input_by: z.number(),
    is_expired: z.number(),
    facts: z.string(),
  })
  .transform((row) => ({
    id: row.call_id,
    grant: row.grant_id,
    session: row.session_id ?? undefined,
    generation: row.generation,
    seq: row.seq,
    remainingMs: row.remaining_ms,
    inputBy: row.input_by,
    isExpired: row.is_expired === 1,
    ...Facts.parse(JSON.parse(row.facts)),
  }));

/** A parked call. `remainingMs` is what is left of its own time; `inputBy` (epoch ms) is when it has waited too long. */
export type ParkedCall = z.output<typeof Row>;

const encoder = new TextEncoder();

export class ParkedCalls {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
  }

  /** Parks a call with its open asks. */
  put(call: ParkedCall, asks: ReadonlyMap<string, string | Uint8Array>): void {
    this.#sql.exec(
      `INSERT OR REPLACE INTO parked_calls (call_id, grant_id, session_id, generation, seq, remaining_ms, input_by, is_expired, facts)
       VALUES (?, ?, ?, ?, ?, ?, ?, 0, ?)`,
      call.id,
      call.grant,
      call.session ?? null,
      call.generation,
      call.seq,
      Math.ceil(call.remainingMs),
      Math.ceil(call.inputBy),
      JSON.stringify({ clientId: call.clientId, canStream: call.canStream, timeoutMs: call.timeoutMs, era: call.era, notes: call.notes }),
    );
    this.#sql.exec("DELETE FROM parked_asks WHERE call_id = ?", call.id);
    for (const [askId, message] of asks) {
      const bytes = typeof message === "string" ? encoder.encode(message) : message.slice();
      this.#sql.exec("INSERT INTO parked_asks (call_id, ask_id, message) VALUES (?, ?, ?)", call.id, askId, bytes.buffer);
    }
  }

  /** A parked call, expired or not; undefined when none has this id. */
  get(callId: string): ParkedCall | undefined {
    const [row] = this.#sql.exec("SELECT * FROM parked_calls WHERE call_id = ?", callId).toArray();
    return row === undefined ? undefined : Row.parse(row);
  }

  /** The open asks of a parked call, as the agent sent them. */
  asks(callId: string): Map<string, Uint8Array> {
    const rows = this.#sql
      .exec<{ ask_id: string; message: ArrayBuffer }>("SELECT ask_id, message FROM parked_asks WHERE call_id = ? ORDER BY rowid", callId)
      .toArray();
    return new Map(rows.map((row) => [row.ask_id, new Uint8Array(row.message)]));
  }

  remove(callId: string): void {
    this.#sql.exec("DELETE FROM parked_calls WHERE call_id = ?", callId);
    this.#sql.exec("DELETE FROM parked_asks WHERE call_id = ?", callId);
  }

  /** Calls that still wait, of one grant or of all. */
  waiting(grant?: string): ParkedCall[] {
    return this.#sql
      .exec("SELECT * FROM parked_calls WHERE is_expired = 0 AND (?1 IS NULL OR grant_id = ?1)", grant ?? null)
      .toArray()
      .map((row) => Row.parse(row));
  }

  count(grant?: string): number {
    const sql = "SELECT COUNT(*) AS n FROM parked_calls WHERE is_expired = 0 AND (?1 IS NULL OR grant_id = ?1)";
    return this.#sql.exec<{ n: number }>(sql, grant ?? null).one().n;
  }

  /** Ends what has waited too long at `now` and returns it; forgets what expired long ago. */
  expire(now: number): ParkedCall[] {
    this.#sql.exec("DELETE FROM parked_calls WHERE is_expired = 1 AND input_by <= ?", now - CALL.expiredMs);
    const expired = this.waiting().filter((call) => call.inputBy <= now);
    for (const call of expired) {
      this.#sql.exec("UPDATE parked_calls SET is_expired = 1 WHERE call_id = ?", call.id);
      this.#sql.exec("DELETE FROM parked_asks WHERE call_id = ?", call.id);
    }
    return expired;
  }

  /** When the next waiting call expires, or the next expired one is to be forgotten (epoch ms). */
  nextAt(): number | undefined {
    const sql = "SELECT MIN(input_by + CASE is_expired WHEN 1 THEN ? ELSE 0 END) AS at FROM parked_calls";
    return this.#sql.exec<{ at: number | null }>(sql, CALL.expiredMs).one().at ?? undefined;
  }
}
