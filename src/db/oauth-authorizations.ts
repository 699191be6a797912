/** Table `oauth_authorizations`: which grant and resource the provider library's own grants stand for. Times are epoch ms. */
import { z } from "zod";

const Row = z
  .object({ id: z.string(), grant_id: z.string(), member_id: z.string(), resource: z.string() })
  .transform((row) => ({ id: row.id, grantId: row.grant_id, memberId: row.member_id, resource: row.resource }));

/** One authorization. `id` is the library's; codes and refresh tokens carry it. */
export type Authorization = z.output<typeof Row>;

/** Records an authorization that was just completed. */
export async function insertAuthorization(db: D1Database, authorization: Authorization & { createdAt: number }): Promise<void> {
  const { id, grantId, memberId, resource, createdAt } = authorization;
  await db
    .prepare("INSERT INTO oauth_authorizations (id, grant_id, member_id, resource, created_at) VALUES (?, ?, ?, ?, ?)")
    .bind(id, grantId, memberId, resource, createdAt)
    .run();
}

/** The authorization with this id, or null. */
export async function findAuthorization(db: D1Database, id: string): Promise<Authorization | null> {
  const row = await db.prepare("SELECT id, grant_id, member_id, resource FROM oauth_authorizations WHERE id = ?").bind(id).first();
  return row === null ? null : Row.parse(row);
}

/** Ids of the authorizations of a person, newest first, at most `limit`. */
export async function listAuthorizationIds(db: D1Database, memberId: string, limit: number): Promise<string[]> {
  const { results } = await db
    .prepare("SELECT id FROM oauth_authorizations WHERE member_id = ? ORDER BY created_at DESC LIMIT ?")
    .bind(memberId, limit)
    .all<{ id: string }>();
  return results.map((row) => row.id);
}
