/** Table `device_keys`: SHA-256 hashes of device keys. A key is found by its hash and never stored. */
import { z } from "zod";

const Row = z
  .object({ device_id: z.string(), name: z.string(), born_at: z.number().nullable() })
  .transform((row) => ({ deviceId: row.device_id, name: row.name, bornAt: row.born_at }));

/** The device a key belongs to. */
export type KeyHolder = z.output<typeof Row>;

/** The device a usable key opens at `now` (epoch ms), or null: unknown, revoked or expired key, removed device. */
export async function findKeyHolder(db: D1Database, hash: string, now: number): Promise<KeyHolder | null> {
  const row = await db
    .prepare(
      `SELECT k.device_id, d.name, d.born_at FROM device_keys k JOIN devices d ON d.id = k.device_id
       WHERE k.hash = ?1 AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > ?2) AND d.removed_at IS NULL`,
    )
    .bind(hash, now)
    .first();
  return row === null ? null : Row.parse(row);
}

/** Revokes every key of a device at `at` (epoch ms): no further dial-in succeeds. */
export async function revokeDeviceKeys(db: D1Database, deviceId: string, at: number): Promise<void> {
  await db.prepare("UPDATE device_keys SET revoked_at = ?2 WHERE device_id = ?1 AND revoked_at IS NULL").bind(deviceId, at).run();
}
