/** Table `owner_tokens`: SHA-256 hashes of the tokens that open the owner API. */
import { z } from "zod";
import { Role } from "./members.ts";

const Row = z.object({ id: z.string(), name: z.string(), role: Role });

/** The person behind an owner token. */
export type TokenHolder = z.output<typeof Row>;

/** Records a token's hash for a member. `createdAt` is epoch ms. */
export async function insertOwnerToken(
  db: D1Database,
  token: { hash: string; memberId: string; label: string; createdAt: number },
): Promise<void> {
  await db
    .prepare("INSERT INTO owner_tokens (hash, member_id, label, created_at) VALUES (?, ?, ?, ?)")
    .bind(token.hash, token.memberId, token.label, token.createdAt)
    .run();
}

/** The member a token's hash belongs to, or null when it is unknown or revoked. */
export async function findTokenHolder(db: D1Database, hash: string): Promise<TokenHolder | null> {
  const row = await db
    .prepare(
      `SELECT m.id, m.name, m.role FROM owner_tokens t JOIN members m ON m.id = t.member_id
       WHERE t.hash = ? AND t.revoked_at IS NULL`,
    )
    .bind(hash)
    .first();
  return row === null ? null : Row.parse(row);
}

/** Revokes one token at `at` (epoch ms). */
export async function revokeOwnerToken(db: D1Database, hash: string, at: number): Promise<void> {
  await db.prepare("UPDATE owner_tokens SET revoked_at = ?2 WHERE hash = ?1 AND revoked_at IS NULL").bind(hash, at).run();
}
