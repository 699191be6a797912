/** Table `identities`: who an outside issuer's subject is here. Times are epoch ms. */
import { z } from "zod";
import { Role } from "./members.ts";

const Row = z
  .object({ id: z.string(), name: z.string(), role: Role, removed_at: z.number().nullable() })
  .transform((row) => ({ id: row.id, name: row.name, role: row.role, isRemoved: row.removed_at !== null }));

/** The person behind an identity. */
export type IdentifiedMember = z.output<typeof Row>;

/** The person an issuer's subject is, removed or not, or null. */
export async function findIdentity(db: D1Database, issuer: string, subject: string): Promise<IdentifiedMember | null> {
  const row = await db
    .prepare(
      `SELECT m.id, m.name, m.role, m.removed_at FROM identities i JOIN members m ON m.id = i.member_id
       WHERE i.issuer = ? AND i.subject = ?`,
    )
    .bind(issuer, subject)
    .first();
  return row === null ? null : Row.parse(row);
}

/** Adds a person with an identity, unless another request did so first. */
export async function insertIdentity(
  db: D1Database,
  identity: { issuer: string; subject: string; memberId: string; name: string; role: Role; createdAt: number },
): Promise<void> {
  const { issuer, subject, memberId, name, role, createdAt } = identity;
  await db.batch([
    db
      .prepare(
        `INSERT INTO members (id, name, role, created_at) SELECT ?, ?, ?, ?
         WHERE NOT EXISTS (SELECT 1 FROM identities WHERE issuer = ? AND subject = ?)`,
      )
      .bind(memberId, name, role, createdAt, issuer, subject),
    db
      .prepare(
        `INSERT INTO identities (issuer, subject, member_id, created_at) SELECT ?1, ?2, id, ?4 FROM members WHERE id = ?3
         ON CONFLICT DO NOTHING`,
      )
      .bind(issuer, subject, memberId, createdAt),
  ]);
}

/** The list of subjects says what somebody is; a change of it counts from their next sign-in. */
export async function setRole(db: D1Database, memberId: string, role: Role): Promise<void> {
  await db.prepare("UPDATE members SET role = ?2 WHERE id = ?1 AND role <> ?2").bind(memberId, role).run();
}
