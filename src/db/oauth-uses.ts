/** Table `oauth_uses`: codes and refresh tokens that were used, by hash. One insert decides who was first. Times are epoch ms. */
import { z } from "zod";

const Row = z
  .object({ used_at: z.number(), claim: z.string(), answer: z.string().nullable() })
  .transform((row) => ({ usedAt: row.used_at, claim: row.claim, answer: row.answer }));

/** A use. `answer` is sealed, and null while the use has not finished. */
export type Use = z.output<typeof Row>;

/** Claims the first use of a code or refresh token; false when somebody has it. Sweeps what is over. */
export async function claimUse(db: D1Database, use: { hash: string; claim: string; at: number; expiresAt: number }): Promise<boolean> {
  const [inserted] = await db.batch([
    db
      .prepare("INSERT INTO oauth_uses (hash, used_at, claim, expires_at) VALUES (?, ?, ?, ?) ON CONFLICT (hash) DO NOTHING")
      .bind(use.hash, use.at, use.claim, use.expiresAt),
    db.prepare("DELETE FROM oauth_uses WHERE expires_at <= ?").bind(use.at),
  ]);
  return inserted?.meta.changes === 1;
}

/** The use of a code or refresh token, or null. */
export async function findUse(db: D1Database, hash: string): Promise<Use | null> {
  const row = await db.prepare("SELECT used_at, claim, answer FROM oauth_uses WHERE hash = ?").bind(hash).first();
  return row === null ? null : Row.parse(row);
}

/** Takes a use over from the claim that has it; false when that one changed in the meantime. */
export async function takeOverUse(db: D1Database, hash: string, from: Use, claim: string, at: number): Promise<boolean> {
  const { meta } = await db
    .prepare("UPDATE oauth_uses SET claim = ?4, used_at = ?5, answer = NULL WHERE hash = ?1 AND claim = ?2 AND used_at = ?3")
    .bind(hash, from.claim, from.usedAt, claim, at)
    .run();
  return meta.changes === 1;
}

/** Stores what a use came to, for those who wait for it. */
export async function answerUse(db: D1Database, hash: string, claim: string, answer: string): Promise<void> {
  await db.prepare("UPDATE oauth_uses SET answer = ?3 WHERE hash = ?1 AND claim = ?2").bind(hash, claim, answer).run();
}

/** Gives a claim up: the use came to nothing. */
export async function dropUse(db: D1Database, hash: string, claim: string): Promise<void> {
  await db.prepare("DELETE FROM oauth_uses WHERE hash = ? AND claim = ?").bind(hash, claim).run();
}
