/**
 * Attempts of strangers in table `audit`: requests that opened nothing, so there is no grant or device to name. They are
 * counted together, one row for each door, reason and window of AUDIT.strangerWindowMs, so that nobody fills the table by
 * knocking.
 */
import { AUDIT } from "../limits.ts";

/** Why: a credential that opened nothing, or more requests than one may make. */
export type StrangerReason = "not_authorised" | "too_many";

/** So many attempts at one door. */
export interface RefusedAttempts {
  /** The pattern of the route, never the path that was asked for. */
  door: string;
  reason: StrangerReason;
  count: number;
}

/** Adds counts to the rows of the window that `now` (epoch ms) is in, whichever isolate counted them. */
export function addRefusedAttempts(db: D1Database, attempts: readonly RefusedAttempts[], now: number): D1PreparedStatement {
  const window = now - (now % AUDIT.strangerWindowMs);
  const rows = attempts.map(({ door, reason, count }) => ({ id: `refused ${window} ${door} ${reason}`, door, reason, count }));
  return db
    .prepare(
      `INSERT INTO audit (id, kind, at, method, outcome, reason, attempts)
       SELECT value ->> 'id', 'refused', ?2, value ->> 'door', 'refused', value ->> 'reason', value ->> 'count'
       FROM json_each(?1) WHERE true
       ON CONFLICT (id) DO UPDATE SET attempts = audit.attempts + excluded.attempts`,
    )
    .bind(JSON.stringify(rows), now);
}
