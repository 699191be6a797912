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
       WHERE t.hash = ? AND t.revoked_at IS NULL AND m.removed_at IS NULL`,
    )
    .bind(hash)
    .first();
  return row === null ? null : Row.parse(row);
}

/** Characters of a hash that name its token in lists; far too few to be of use for anything else. */
const ID_LENGTH = 12;

const Listed = z
  .object({ hash: z.string(), label: z.string(), member_id: z.string(), member_name: z.string(), created_at: z.number() })
  .transform((row) => ({
    id: row.hash.slice(0, ID_LENGTH),
    label: row.label,
    member: row.member_id,
    memberName: row.member_name,
    createdAt: row.created_at,
  }));

/** Tokens for the API that are not revoked, oldest first. */
export async function listOwnerTokens(db: D1Database, limit: number): Promise<z.output<typeof Listed>[]> {
  const { results } = await db
    .prepare(
      `SELECT t.hash, t.label, t.member_id, m.name AS member_name, t.created_at FROM owner_tokens t JOIN members m ON m.id = t.member_id
       WHERE t.revoked_at IS NULL AND m.removed_at IS NULL ORDER BY t.created_at, t.hash LIMIT ?`,
    )
    .bind(limit)
    .all();
  return results.map((row) => Listed.parse(row));
}

/** Revokes the token that a list names `id`, at `at` (epoch ms). False when there is none. */
export async function revokeOwnerTokenById(db: D1Database, id: string, at: number): Promise<boolean> {
  const { meta } = await db
    .prepare("UPDATE owner_tokens SET revoked_at = ?3 WHERE substr(hash, 1, ?2) = ?1 AND revoked_at IS NULL")
    .bind(id, ID_LENGTH, at)
    .run();
  return meta.changes > 0;
}
