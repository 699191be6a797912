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

/** The person with this id, or null. */
export async function findMember(db: D1Database, id: string): Promise<Member | null> {
  const row = await db.prepare("SELECT id, name, role, created_at FROM members WHERE id = ?").bind(id).first();
  return row === null ? null : Row.parse(row);
}
