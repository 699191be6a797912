/** Table `oauth_grants`: grants that were given on the consent page, and to which client. Times are epoch ms. */
import { z } from "zod";

const Row = z
  .object({ grant_id: z.string(), client_id: z.string(), client_name: z.string(), redirect: z.string(), created_at: z.number() })
  .transform((row) => ({
    grantId: row.grant_id,
    clientId: row.client_id,
    clientName: row.client_name,
    /** Where codes go, without the port of a loopback address. */
    redirect: row.redirect,
    createdAt: row.created_at,
  }));

/** Which client a grant belongs to. */
export type OAuthGrant = z.output<typeof Row>;

/** Records the client of a grant. */
export async function insertOAuthGrant(db: D1Database, grant: OAuthGrant): Promise<void> {
  await db
    .prepare("INSERT INTO oauth_grants (grant_id, client_id, client_name, redirect, created_at) VALUES (?, ?, ?, ?, ?)")
    .bind(grant.grantId, grant.clientId, grant.clientName, grant.redirect, grant.createdAt)
    .run();
}

/** The client of a grant; null for one that was not given on the consent page. */
export async function findOAuthGrant(db: D1Database, grantId: string): Promise<OAuthGrant | null> {
  const row = await db
    .prepare("SELECT grant_id, client_id, client_name, redirect, created_at FROM oauth_grants WHERE grant_id = ?")
    .bind(grantId)
    .first();
  return row === null ? null : Row.parse(row);
}

/** The id of the newest grant of a person's client on a device that is neither revoked nor expired at `now`, or null. */
export async function findClientGrant(
  db: D1Database,
  key: { memberId: string; deviceId: string; clientId: string; redirect: string },
  now: number,
): Promise<string | null> {
  return await db
    .prepare(
      `SELECT g.id FROM oauth_grants o JOIN grants g ON g.id = o.grant_id
       WHERE o.client_id = ?1 AND o.redirect = ?2 AND g.member_id = ?3 AND g.device_id = ?4 AND g.revoked_at IS NULL AND g.expires_at > ?5
       ORDER BY g.created_at DESC LIMIT 1`,
    )
    .bind(key.clientId, key.redirect, key.memberId, key.deviceId, now)
    .first<string>("id");
}
