/** Table `members`: the people of a relay. Ids are opaque and random. */
import { z } from "zod";

/** `owner` administers the relay; a `member` uses what is shared with them. */
export const Role = z.enum(["owner", "member"]);
export type Role = z.infer<typeof Role>;

const Row = z
  .object({ id: z.string(), name: z.string(), role: Role, created_at: z.number() })
  .transform((row) => ({ id: row.id, name: row.name, role: row.role, createdAt: row.created_at }));

/** A person as D1 records them. */
export type Member = z.output<typeof Row>;

/** Adds a person. `createdAt` is epoch ms. */
export async function insertMember(db: D1Database, member: Member): Promise<void> {
  await db
    .prepare("INSERT INTO members (id, name, role, created_at) VALUES (?, ?, ?, ?)")
    .bind(member.id, member.name, member.role, member.createdAt)
    .run();
}

/** The person with this id, or null; a removed one counts as unknown. */
export async function findMember(db: D1Database, id: string): Promise<Member | null> {
  const row = await db.prepare("SELECT id, name, role, created_at FROM members WHERE id = ? AND removed_at IS NULL").bind(id).first();
  return row === null ? null : Row.parse(row);
}

/** The person with this id, removed or not, or null. */
export async function findAnyMember(db: D1Database, id: string): Promise<Member | null> {
  const row = await db.prepare("SELECT id, name, role, created_at FROM members WHERE id = ?").bind(id).first();
  return row === null ? null : Row.parse(row);
}

const Listed = z
  .object({
    id: z.string(),
    name: z.string(),
    role: Role,
    created_at: z.number(),
    grants: z.number(),
    sessions: z.number(),
  })
  .transform((row) => ({
    id: row.id,
    name: row.name,
    role: row.role,
    createdAt: row.created_at,
    /** Grants that can be used now, and browsers that are signed in. */
    grants: row.grants,
    sessions: row.sessions,
  }));

/** A person in a list. */
export type ListedMember = z.output<typeof Listed>;

/** The people of the relay by name, at most `limit`. `now` is epoch ms. */
export async function listMembers(db: D1Database, now: number, limit: number): Promise<ListedMember[]> {
  const { results } = await db
    .prepare(
      `SELECT m.id, m.name, m.role, m.created_at,
         (SELECT COUNT(*) FROM grants g JOIN devices d ON d.id = g.device_id
          WHERE g.member_id = m.id AND g.revoked_at IS NULL AND g.expires_at > ?1 AND d.removed_at IS NULL) AS grants,
         (SELECT COUNT(*) FROM web_sessions s WHERE s.member_id = m.id AND s.revoked_at IS NULL AND s.expires_at > ?1) AS sessions
       FROM members m WHERE m.removed_at IS NULL ORDER BY m.name, m.id LIMIT ?2`,
    )
    .bind(now, limit)
    .all();
  return results.map((row) => Listed.parse(row));
}

/**
 * Removes a person's ways in, in one batch: browser sessions, tokens for the API, links, invitations taken. False, and
 * nothing changed, when they are the last owner. The row stays, so that the audit keeps its names.
 */
export async function removeMember(db: D1Database, id: string, at: number): Promise<boolean> {
  const [removed] = await db.batch([
    db
      .prepare(
        `UPDATE members SET removed_at = COALESCE(removed_at, ?2) WHERE id = ?1
           AND (role <> 'owner' OR EXISTS (SELECT 1 FROM members o WHERE o.role = 'owner' AND o.id <> ?1 AND o.removed_at IS NULL))`,
      )
      .bind(id, at),
    ...[
      "UPDATE web_sessions SET revoked_at = ?2 WHERE member_id = ?1 AND revoked_at IS NULL",
      "UPDATE owner_tokens SET revoked_at = ?2 WHERE member_id = ?1 AND revoked_at IS NULL",
      "UPDATE setup_codes SET used_at = ?2 WHERE member_id = ?1 AND used_at IS NULL",
      "UPDATE invitations SET revoked_at = ?2 WHERE taken_by = ?1 AND revoked_at IS NULL",
    ].map((sql) => db.prepare(`${sql} AND EXISTS (SELECT 1 FROM members WHERE id = ?1 AND removed_at IS NOT NULL)`).bind(id, at)),
  ]);
  return removed?.meta.changes === 1;
}
