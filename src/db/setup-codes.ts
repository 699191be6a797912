/** Table `setup_codes`: links that sign an existing member in, once. Hashes only; times are epoch ms. */

/** Records a code. */
export async function insertSetupCode(
  db: D1Database,
  code: { hash: string; memberId: string; createdAt: number; expiresAt: number },
): Promise<void> {
  await db.batch([
    db.prepare("DELETE FROM setup_codes WHERE expires_at <= ?").bind(code.createdAt),
    db
      .prepare("INSERT INTO setup_codes (hash, member_id, created_at, expires_at) VALUES (?, ?, ?, ?)")
      .bind(code.hash, code.memberId, code.createdAt, code.expiresAt),
  ]);
}

/** The member a code signs in at `now`, or null; nothing is used up by looking. */
export async function findSetupCode(db: D1Database, hash: string, now: number): Promise<{ memberId: string; name: string } | null> {
  return db
    .prepare(
      `SELECT m.id AS memberId, m.name FROM setup_codes s JOIN members m ON m.id = s.member_id
       WHERE s.hash = ?1 AND s.used_at IS NULL AND s.expires_at > ?2 AND m.removed_at IS NULL`,
    )
    .bind(hash, now)
    .first<{ memberId: string; name: string }>();
}

/** Uses a code up. True for the one caller who got it. */
export async function useSetupCode(db: D1Database, hash: string, now: number): Promise<boolean> {
  const { meta } = await db
    .prepare("UPDATE setup_codes SET used_at = ?2 WHERE hash = ?1 AND used_at IS NULL AND expires_at > ?2")
    .bind(hash, now)
    .run();
  return meta.changes === 1;
}
