/** Table `device_names`: former names, whose URLs work for a while after a rename. Times are epoch ms. */
/** The device that a name meant before a rename, and until when it still does; null for a free name. */
export async function findFormerName(db: D1Database, name: string, now: number): Promise<{ deviceId: string; until: number } | null> {
  const row = await db
    .prepare(
      `SELECT n.device_id AS deviceId, n.until FROM device_names n JOIN devices d ON d.id = n.device_id
       WHERE n.name = ? AND n.until > ? AND d.removed_at IS NULL`,
    )
    .bind(name, now)
    .first<{ deviceId: string; until: number }>();
  return row;
}

/**
 * Gives a device another name; the one it had stays usable until `until`. False when the name is taken by a device or
 * kept for another one's former name: nothing was changed then.
 */
export async function renameDevice(
  db: D1Database,
  change: { deviceId: string; from: string; to: string; at: number; until: number },
): Promise<boolean> {
  const { deviceId, from, to, at, until } = change;
  const [renamed] = await db.batch([
    db
      .prepare(
        `UPDATE devices SET name = ?3 WHERE id = ?1 AND name = ?2 AND removed_at IS NULL
           AND NOT EXISTS (SELECT 1 FROM devices d WHERE d.name = ?3 AND d.removed_at IS NULL)
           AND NOT EXISTS (SELECT 1 FROM device_names n JOIN devices d ON d.id = n.device_id
             WHERE n.name = ?3 AND n.until > ?4 AND n.device_id <> ?1 AND d.removed_at IS NULL)`,
      )
      .bind(deviceId, from, to, at),
    // Only if the rename above took place.
    db
      .prepare(
        `INSERT INTO device_names (name, device_id, until)
         SELECT ?2, id, ?4 FROM devices WHERE id = ?1 AND name = ?3
         ON CONFLICT (name) DO UPDATE SET device_id = excluded.device_id, until = excluded.until`,
      )
      .bind(deviceId, from, to, until),
    db.prepare("DELETE FROM device_names WHERE name = ?2 AND device_id = ?1").bind(deviceId, to),
  ]);
  return renamed?.meta.changes === 1;
}
