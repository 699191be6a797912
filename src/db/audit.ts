/**
 * Table `audit`: what was called, refused and changed, and how it ended; never arguments or results. Rows are added by
 * id, so that writing one twice is writing it once. Times are epoch ms, durations ms, sizes bytes.
 */
import { z } from "zod";
import { AUDIT } from "../limits.ts";

/**
 * `ok`; `error`: the upstream's own JSON-RPC error; `failed`: a failure of ours (`reason` is its name); `refused`;
 * `cancelled` (`reason` says by what); `incomplete`: an action that did not reach everything; `unknown`: the relay was
 * lost during the call and nobody came back for the outcome.
 */
export const AuditOutcome = z.enum(["ok", "error", "failed", "refused", "cancelled", "incomplete", "unknown"]);
export type AuditOutcome = z.infer<typeof AuditOutcome>;

export const AuditKind = z.enum(["call", "refused", "admin"]);
export type AuditKind = z.infer<typeof AuditKind>;

const Text = z.string().nullable().default(null);
const Count = z.int().nullable().default(null);

/** A row to be added. Members that do not apply are left out. */
export const NewAuditRow = z.strictObject({
  id: z.string(),
  kind: AuditKind,
  at: z.int(),
  deviceId: Text,
  device: Text,
  grant: Text,
  label: Text,
  /** Member id: whose grant it is, or who acted. */
  member: Text,
  client: Text,
  clientVersion: Text,
  clientProtocol: Text,
  upstreamProtocol: Text,
  method: Text,
  target: Text,
  outcome: AuditOutcome,
  reason: Text,
  durationMs: Count,
  bytesIn: Count,
  bytesOut: Count,
});
export type NewAuditRow = z.input<typeof NewAuditRow>;

const Row = z
  .object({
    seq: z.number(),
    id: z.string(),
    kind: AuditKind,
    at: z.number(),
    device: z.string().nullable(),
    grant_id: z.string().nullable(),
    label: z.string().nullable(),
    member_id: z.string().nullable(),
    member_name: z.string().nullable(),
    client: z.string().nullable(),
    client_version: z.string().nullable(),
    client_protocol: z.string().nullable(),
    upstream_protocol: z.string().nullable(),
    method: z.string().nullable(),
    target: z.string().nullable(),
    outcome: AuditOutcome,
    reason: z.string().nullable(),
    duration_ms: z.number().nullable(),
    bytes_in: z.number().nullable(),
    bytes_out: z.number().nullable(),
    attempts: z.number().nullable(),
  })
  .transform((row) => ({
    seq: row.seq,
    at: row.at,
    kind: row.kind,
    device: row.device,
    grant: row.grant_id,
    label: row.label,
    member: row.member_id,
    memberName: row.member_name,
    client: row.client,
    clientVersion: row.client_version,
    clientProtocol: row.client_protocol,
    upstreamProtocol: row.upstream_protocol,
    method: row.method,
    target: row.target,
    outcome: row.outcome,
    reason: row.reason,
    durationMs: row.duration_ms,
    bytesIn: row.bytes_in,
    bytesOut: row.bytes_out,
    callId: row.id,
    /** How many attempts the row stands for; null for one of its own. */
    attempts: row.attempts,
  }));

/** A row as the API gives it. */
export type AuditRow = z.output<typeof Row>;

const MadeCall = z.object({ grant: z.string(), at: z.number() });

const DAY_MS = 86_400_000;

/**
 * Adds rows in one statement. A row that is there already stays, unless all that was known of it was that the relay had
 * lost it: what comes later knows better.
 */
export function insertAuditRows(db: D1Database, rows: readonly NewAuditRow[]): D1PreparedStatement {
  return db
    .prepare(
      `INSERT INTO audit (id, kind, at, device_id, device, grant_id, label, member_id, client, client_version, client_protocol,
         upstream_protocol, method, target, outcome, reason, duration_ms, bytes_in, bytes_out)
       SELECT value ->> 'id', value ->> 'kind', value ->> 'at', value ->> 'deviceId', value ->> 'device', value ->> 'grant',
         value ->> 'label', value ->> 'member', value ->> 'client', value ->> 'clientVersion', value ->> 'clientProtocol',
         value ->> 'upstreamProtocol', value ->> 'method', value ->> 'target', value ->> 'outcome', value ->> 'reason',
         value ->> 'durationMs', value ->> 'bytesIn', value ->> 'bytesOut'
       FROM json_each(?1) WHERE true
       ON CONFLICT (id) DO UPDATE SET at = excluded.at, device = excluded.device, grant_id = excluded.grant_id, label = excluded.label,
         member_id = excluded.member_id, client = excluded.client, client_version = excluded.client_version,
         client_protocol = excluded.client_protocol, upstream_protocol = excluded.upstream_protocol, method = excluded.method,
         target = excluded.target, outcome = excluded.outcome, reason = excluded.reason, duration_ms = excluded.duration_ms,
         bytes_in = excluded.bytes_in, bytes_out = excluded.bytes_out
       WHERE audit.outcome = 'unknown'`,
    )
    .bind(JSON.stringify(rows.map((row) => NewAuditRow.parse(row))));
}

/** Deletes what is older than the retention setting, a bounded number of rows; runs beside a batch of new ones. */
export function sweepAudit(db: D1Database, now: number): D1PreparedStatement {
  return db
    .prepare(
      `DELETE FROM audit WHERE seq IN (
         SELECT seq FROM audit
         WHERE at < ?1 - COALESCE((SELECT CAST(value AS INTEGER) FROM settings WHERE name = 'auditDays'), ?2) * ${DAY_MS}
         ORDER BY at LIMIT ?3)`,
    )
    .bind(now, AUDIT.keepDays, AUDIT.sweepRows);
}

/** What to show of the audit; everything given has to hold. */
export interface AuditFilter {
  deviceId?: string | undefined;
  grant?: string | undefined;
  outcome?: AuditOutcome | undefined;
  /** Calls of this member only. */
  member?: string | undefined;
  /** Epoch ms. */
  since?: number | undefined;
  /** Rows that arrived after this one, oldest first, for a follower. Without it the newest come first. */
  after?: number | undefined;
  /** Rows that arrived before this one. */
  before?: number | undefined;
  limit: number;
}

/** Rows of the audit. With `after` in order of arrival, else newest first. */
export async function listAudit(db: D1Database, filter: AuditFilter): Promise<AuditRow[]> {
  const order = filter.after === undefined ? "a.at DESC, a.seq DESC" : "a.seq";
  const { results } = await db
    .prepare(
      `SELECT a.seq, a.id, a.kind, a.at, a.device, a.grant_id, a.label, a.member_id, m.name AS member_name, a.client, a.client_version,
         a.client_protocol, a.upstream_protocol, a.method, a.target, a.outcome, a.reason, a.duration_ms, a.bytes_in, a.bytes_out,
         a.attempts
       FROM audit a LEFT JOIN members m ON m.id = a.member_id
       WHERE (?1 IS NULL OR a.device_id = ?1) AND (?2 IS NULL OR a.grant_id = ?2) AND (?3 IS NULL OR a.outcome = ?3)
         AND (?4 IS NULL OR (a.member_id = ?4 AND a.kind <> 'admin')) AND (?5 IS NULL OR a.at >= ?5) AND (?6 IS NULL OR a.seq > ?6)
         AND (?8 IS NULL OR a.seq < ?8)
       ORDER BY ${order} LIMIT ?7`,
    )
    .bind(
      filter.deviceId ?? null,
      filter.grant ?? null,
      filter.outcome ?? null,
      filter.member ?? null,
      filter.since ?? null,
      filter.after ?? null,
      filter.limit,
      filter.before ?? null,
    )
    .all();
  return results.map((row) => Row.parse(row));
}

/** The calls on one device since a time (epoch ms), newest first, a bounded number: what was counted against its caps. */
export async function callsSince(db: D1Database, deviceId: string, since: number): Promise<{ grant: string; at: number }[]> {
  const { results } = await db
    .prepare(
      "SELECT grant_id AS \"grant\", at FROM audit WHERE device_id = ?1 AND at > ?2 AND kind = 'call' AND grant_id IS NOT NULL ORDER BY at DESC LIMIT ?3",
    )
    .bind(deviceId, since, AUDIT.countedRows)
    .all();
  return results.map((row) => MadeCall.parse(row));
}

/** The number of the newest row; 0 for an empty table. A follower starts behind it. */
export async function newestAuditSeq(db: D1Database): Promise<number> {
  return (await db.prepare("SELECT COALESCE(MAX(seq), 0) AS seq FROM audit").first<number>("seq")) ?? 0;
}
