/** Table `pairings`: who waits for a device key, and what the owner decided. Times are epoch ms. */
import { z } from "zod";

const Row = z
  .object({
    id: z.string(),
    screen: z.string(),
    created_at: z.number(),
    expires_at: z.number(),
    wrong_tries: z.number(),
    denied_at: z.number().nullable(),
    approved_at: z.number().nullable(),
    approved_by: z.string().nullable(),
    device_id: z.string().nullable(),
    device_name: z.string().nullable(),
    polled_at: z.number().nullable(),
  })
  .transform((row) => ({
    id: row.id,
    /** What the agent's screen shows beside the code. */
    screen: row.screen,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    wrongTries: row.wrong_tries,
    deniedAt: row.denied_at,
    approvedAt: row.approved_at,
    approvedBy: row.approved_by,
    deviceId: row.device_id,
    deviceName: row.device_name,
    polledAt: row.polled_at,
  }));

/** A pairing as D1 records it. */
export type PairingRow = z.output<typeof Row>;

/** A pairing that is about to be recorded. */
export interface NewPairing {
  id: string;
  deviceHash: string;
  userHash: string;
  screen: string;
  createdAt: number;
  expiresAt: number;
  /** What limits count an address by; null where it is not known. */
  source: string | null;
}

/**
 * Records a pairing unless as many wait already as may, altogether or from its source. False then; what has expired is
 * swept and does not count. Exact, as D1 runs one statement after the other.
 */
export async function insertPairing(
  db: D1Database,
  pairing: NewPairing,
  max: { pending: number; pendingPerSource: number },
): Promise<boolean> {
  const [, inserted] = await db.batch([
    db.prepare("DELETE FROM pairings WHERE expires_at <= ?").bind(pairing.createdAt),
    db
      .prepare(
        `INSERT INTO pairings (id, device_hash, user_hash, screen, created_at, expires_at, source) SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7
         WHERE (SELECT COUNT(*) FROM pairings WHERE approved_at IS NULL AND denied_at IS NULL) < ?8
           AND (SELECT COUNT(*) FROM pairings WHERE source = ?7 AND approved_at IS NULL AND denied_at IS NULL) < ?9`,
      )
      .bind(
        pairing.id,
        pairing.deviceHash,
        pairing.userHash,
        pairing.screen,
        pairing.createdAt,
        pairing.expiresAt,
        pairing.source,
        max.pending,
        max.pendingPerSource,
      ),
  ]);
  return inserted?.meta.changes === 1;
}

/** The pairing of a device code that has not expired at `now`, or null. */
export async function findByDeviceCode(db: D1Database, hash: string, now: number): Promise<PairingRow | null> {
  const row = await db.prepare("SELECT * FROM pairings WHERE device_hash = ? AND expires_at > ?").bind(hash, now).first();
  return row === null ? null : Row.parse(row);
}

/** The pairing of a user code that still waits for a decision at `now`, or null. */
export async function findByUserCode(db: D1Database, hash: string, now: number): Promise<PairingRow | null> {
  const row = await db
    .prepare("SELECT * FROM pairings WHERE user_hash = ? AND expires_at > ? AND approved_at IS NULL AND denied_at IS NULL")
    .bind(hash, now)
    .first();
  return row === null ? null : Row.parse(row);
}

/** Notes when the agent asked; for its next answer. */
export async function markPolled(db: D1Database, id: string, at: number): Promise<void> {
  await db.prepare("UPDATE pairings SET polled_at = ?2 WHERE id = ?1").bind(id, at).run();
}

/** Counts a wrong try; the one that reaches `max` ends the pairing. */
export async function countWrongTry(db: D1Database, id: string, max: number, at: number): Promise<void> {
  await db
    .prepare(
      `UPDATE pairings SET wrong_tries = wrong_tries + 1, denied_at = CASE WHEN wrong_tries + 1 >= ?2 THEN ?3 ELSE denied_at END
       WHERE id = ?1 AND approved_at IS NULL`,
    )
    .bind(id, max, at)
    .run();
}

/** Refuses a pairing for good. */
export async function denyPairing(db: D1Database, id: string, at: number): Promise<void> {
  await db.prepare("UPDATE pairings SET denied_at = ?2 WHERE id = ?1 AND approved_at IS NULL").bind(id, at).run();
}

/** Records the decision. True for the one who made it, while the pairing still waits and has tries left. */
export async function approvePairing(
  db: D1Database,
  decision: { id: string; deviceId: string; deviceName: string; member: string; at: number; maxTries: number },
): Promise<boolean> {
  const { id, deviceId, deviceName, member, at, maxTries } = decision;
  const { meta } = await db
    .prepare(
      `UPDATE pairings SET approved_at = ?5, approved_by = ?4, device_id = ?2, device_name = ?3
       WHERE id = ?1 AND approved_at IS NULL AND denied_at IS NULL AND expires_at > ?5 AND wrong_tries < ?6`,
    )
    .bind(id, deviceId, deviceName, member, at, maxTries)
    .run();
  return meta.changes === 1;
}

/**
 * Turns an approved pairing into a device key: adds the device if it is new, and the key under the pairing's unique id.
 * True for the one claim that got it; a second one, or a name that was taken in the meantime, writes no key. Older keys of
 * the device work until `olderUntil`.
 */
export async function claimPairing(
  db: D1Database,
  claim: { id: string; keyHash: string; deviceId: string; deviceName: string; at: number; olderUntil: number },
): Promise<boolean> {
  const { id, keyHash, deviceId, deviceName, at, olderUntil } = claim;
  const isOpen = `EXISTS (SELECT 1 FROM pairings p WHERE p.id = ?1 AND p.approved_at IS NOT NULL AND p.expires_at > ?4)
    AND NOT EXISTS (SELECT 1 FROM device_keys k WHERE k.pairing_id = ?1)`;
  const results = await db.batch([
    db
      .prepare(
        `INSERT INTO devices (id, name, created_at) SELECT ?2, ?3, ?4 WHERE ${isOpen}
           AND NOT EXISTS (SELECT 1 FROM devices d WHERE d.id = ?2)
           AND NOT EXISTS (SELECT 1 FROM device_names n JOIN devices d ON d.id = n.device_id
             WHERE n.name = ?3 AND n.until > ?4 AND d.removed_at IS NULL)
         ON CONFLICT (name) WHERE removed_at IS NULL DO NOTHING`,
      )
      .bind(id, deviceId, deviceName, at),
    db
      .prepare(
        `UPDATE device_keys SET expires_at = MIN(COALESCE(expires_at, ?3), ?3)
         WHERE device_id = ?2 AND revoked_at IS NULL AND ${isOpen}`,
      )
      .bind(id, deviceId, olderUntil, at),
    db
      .prepare(
        `INSERT INTO device_keys (hash, device_id, created_at, pairing_id)
         SELECT ?3, d.id, ?4, ?1 FROM devices d WHERE d.id = ?2 AND d.removed_at IS NULL AND ${isOpen}
         ON CONFLICT DO NOTHING`,
      )
      .bind(id, deviceId, keyHash, at),
  ]);
  return results.at(-1)?.meta.changes === 1;
}
