/** Table `oauth_declined`: scopes a person said no to, for a client and a device. Times are epoch ms. */

/** Whose decision it is, and about what. */
export interface DeclinedKey {
  memberId: string;
  clientId: string;
  deviceId: string;
}

/** Records scopes as declined until `until`; one that was declined before gets the new time. */
export async function recordDeclined(db: D1Database, key: DeclinedKey, scopes: readonly string[], until: number): Promise<void> {
  if (scopes.length === 0) return;
  const insert = db.prepare(
    `INSERT INTO oauth_declined (member_id, client_id, device_id, scope, until) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (member_id, client_id, device_id, scope) DO UPDATE SET until = excluded.until`,
  );
  await db.batch(scopes.map((scope) => insert.bind(key.memberId, key.clientId, key.deviceId, scope, until)));
}

/** Scopes that were ever declined and not allowed since, with the time until which they are not asked for again. */
export async function listDeclined(db: D1Database, key: DeclinedKey): Promise<Map<string, number>> {
  const { results } = await db
    .prepare("SELECT scope, until FROM oauth_declined WHERE member_id = ? AND client_id = ? AND device_id = ?")
    .bind(key.memberId, key.clientId, key.deviceId)
    .all<{ scope: string; until: number }>();
  return new Map(results.map((row) => [row.scope, row.until]));
}

/** Forgets that scopes were declined: the person has allowed them. */
export async function forgetDeclined(db: D1Database, key: DeclinedKey, scopes: readonly string[]): Promise<void> {
  if (scopes.length === 0) return;
  const remove = db.prepare("DELETE FROM oauth_declined WHERE member_id = ? AND client_id = ? AND device_id = ? AND scope = ?");
  await db.batch(scopes.map((scope) => remove.bind(key.memberId, key.clientId, key.deviceId, scope)));
}
