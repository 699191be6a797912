/** Table `web_sessions`: who is signed in at a browser. A session is found by its hash and never stored. Times are epoch ms. */
import { z } from "zod";
import { Role } from "./members.ts";

const Row = z
  .object({ id: z.string(), member_id: z.string(), name: z.string(), role: Role })
  .transform((row) => ({ sessionId: row.id, memberId: row.member_id, name: row.name, role: row.role }));

/** A session that can be used now, with the person behind it. */
export type WebSession = z.output<typeof Row>;

/** How a person signed in. */
export type SignInWay = "token" | "setup" | "invitation" | "oidc" | "access";

/** Records a session by its hash. */
export async function insertWebSession(
  db: D1Database,
  session: { hash: string; id: string; memberId: string; via: SignInWay; createdAt: number; expiresAt: number },
): Promise<void> {
  await db.batch([
    db
      .prepare("INSERT INTO web_sessions (hash, id, member_id, via, created_at, expires_at) VALUES (?, ?, ?, ?, ?, ?)")
      .bind(session.hash, session.id, session.memberId, session.via, session.createdAt, session.expiresAt),
    // Whoever signs in sweeps; a table of ended sessions serves nobody.
    db.prepare("DELETE FROM web_sessions WHERE expires_at <= ?").bind(session.createdAt),
  ]);
}

/** The session with this hash, or null: unknown, ended, expired, or its member was removed. */
export async function findWebSession(db: D1Database, hash: string, now: number): Promise<WebSession | null> {
  const row = await db
    .prepare(
      `SELECT s.id, s.member_id, m.name, m.role FROM web_sessions s JOIN members m ON m.id = s.member_id
       WHERE s.hash = ?1 AND s.revoked_at IS NULL AND s.expires_at > ?2 AND m.removed_at IS NULL`,
    )
    .bind(hash, now)
    .first();
  return row === null ? null : Row.parse(row);
}

/** Ends one session. */
export async function revokeWebSession(db: D1Database, id: string, at: number): Promise<void> {
  await db.prepare("UPDATE web_sessions SET revoked_at = ?2 WHERE id = ?1 AND revoked_at IS NULL").bind(id, at).run();
}
