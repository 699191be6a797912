/** Table `device_keys`: SHA-256 hashes of device keys. A key is found by its hash and never stored. Times are epoch ms. */
import { z } from "zod";

const Row = z.object({ device_id: z.string(), name: z.string(), born_at: z.number().nullable(), older: z.number() }).transform((row) => ({
  deviceId: row.device_id,
  name: row.name,
  bornAt: row.born_at,
  /** Keys from before this one still open the device: its first use ends them. */
  hasOlderKeys: row.older === 1,
}));

/** The device a key belongs to. */
export type KeyHolder = z.output<typeof Row>;

/** The device a usable key opens at `now`, or null: unknown, revoked or expired key, removed device. */
export async function findKeyHolder(db: D1Database, hash: string, now: number): Promise<KeyHolder | null> {
  const row = await db
    .prepare(
      `SELECT k.device_id, d.name, d.born_at, EXISTS (
           SELECT 1 FROM device_keys o WHERE o.device_id = k.device_id AND o.rowid < k.rowid AND o.revoked_at IS NULL
             AND o.expires_at IS NOT NULL AND o.expires_at > ?2) AS older
       FROM device_keys k JOIN devices d ON d.id = k.device_id
       WHERE k.hash = ?1 AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > ?2) AND d.removed_at IS NULL`,
    )
    .bind(hash, now)
    .first();
  return row === null ? null : Row.parse(row);
}

/** Revokes every key of a device at `at`: no further dial-in succeeds. */
export async function revokeDeviceKeys(db: D1Database, deviceId: string, at: number): Promise<void> {
  await db.prepare("UPDATE device_keys SET revoked_at = ?2 WHERE device_id = ?1 AND revoked_at IS NULL").bind(deviceId, at).run();
}

/** Adds a key; those before it open the device until `olderUntil` at the latest. */
export async function addDeviceKey(
  db: D1Database,
  key: { hash: string; deviceId: string; createdAt: number; olderUntil: number },
): Promise<void> {
  await db.batch([
    db
      .prepare(
        `UPDATE device_keys SET expires_at = MIN(COALESCE(expires_at, ?2), ?2)
         WHERE device_id = ?1 AND revoked_at IS NULL`,
      )
      .bind(key.deviceId, key.olderUntil),
    db.prepare("INSERT INTO device_keys (hash, device_id, created_at) VALUES (?, ?, ?)").bind(key.hash, key.deviceId, key.createdAt),
  ]);
}

/** The newer key was used: the ones before it end. */
export async function endOlderKeys(db: D1Database, hash: string, at: number): Promise<void> {
  await db
    .prepare(
      `UPDATE device_keys SET revoked_at = ?2
       WHERE device_id = (SELECT device_id FROM device_keys WHERE hash = ?1) AND revoked_at IS NULL
         AND rowid < (SELECT rowid FROM device_keys WHERE hash = ?1)`,
    )
    .bind(hash, at)
    .run();
}
