/**
 * Table `invitations`: what somebody may take once. The code is stored as a hash; one update makes it single-use. Times
 * are epoch ms.
 */
import { z } from "zod";
import { Caps, Rights } from "../policy/grant.ts";
import { Role } from "./members.ts";

const Json = z.string().transform((text): unknown => JSON.parse(text));

const Row = z
  .object({
    id: z.string(),
    label: z.string(),
    role: Role,
    device_id: z.string().nullable(),
    device_name: z.string().nullable(),
    rights: Json.pipe(Rights).nullable(),
    caps: Json.pipe(Caps).nullable(),
    grant_ms: z.number().nullable(),
    created_by: z.string(),
    created_at: z.number(),
    expires_at: z.number(),
    taken_at: z.number().nullable(),
    taken_by: z.string().nullable(),
    taken_name: z.string().nullable(),
    revoked_at: z.number().nullable(),
  })
  .transform((row) => ({
    id: row.id,
    label: row.label,
    role: row.role,
    /** The device it is about, or null for an invitation to the relay alone. */
    device: row.device_id === null ? null : { id: row.device_id, name: row.device_name ?? "" },
    rights: row.rights,
    caps: row.caps,
    /** ms that a grant made from it lives. */
    grantMs: row.grant_ms,
    createdBy: row.created_by,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    takenAt: row.taken_at,
    takenBy: row.taken_by,
    takenName: row.taken_name,
    revokedAt: row.revoked_at,
  }));

/** An invitation as D1 records it. */
export type Invitation = z.output<typeof Row>;

const SELECT = `SELECT i.id, i.label, i.role, i.device_id, d.name AS device_name, i.rights, i.caps, i.grant_ms, i.created_by, i.created_at,
  i.expires_at, i.taken_at, i.taken_by, m.name AS taken_name, i.revoked_at
  FROM invitations i LEFT JOIN devices d ON d.id = i.device_id LEFT JOIN members m ON m.id = i.taken_by`;

/** What a new invitation says. */
export interface NewInvitation {
  id: string;
  hash: string;
  label: string;
  role: Role;
  deviceId: string | null;
  rights: Rights | null;
  caps: Caps | null;
  grantMs: number | null;
  createdBy: string;
  createdAt: number;
  expiresAt: number;
}

/** Records an invitation. */
export async function insertInvitation(db: D1Database, invitation: NewInvitation): Promise<void> {
  const { id, hash, label, role, deviceId, rights, caps, grantMs, createdBy, createdAt, expiresAt } = invitation;
  await db
    .prepare(
      `INSERT INTO invitations (id, hash, label, role, device_id, rights, caps, grant_ms, created_by, created_at, expires_at)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    )
    .bind(
      id,
      hash,
      label,
      role,
      deviceId,
      rights === null ? null : JSON.stringify(rights),
      caps === null ? null : JSON.stringify(caps),
      grantMs,
      createdBy,
      createdAt,
      expiresAt,
    )
    .run();
}

/** The invitation behind a code that can still be taken at `now`, or null. */
export async function findOpenInvitation(db: D1Database, hash: string, now: number): Promise<Invitation | null> {
  const row = await db
    .prepare(
      `${SELECT} WHERE i.hash = ?1 AND i.taken_at IS NULL AND i.revoked_at IS NULL AND i.expires_at > ?2
         AND (i.device_id IS NULL OR d.removed_at IS NULL)`,
    )
    .bind(hash, now)
    .first();
  return row === null ? null : Row.parse(row);
}

/** The invitation with this id, or null. */
export async function findInvitation(db: D1Database, id: string): Promise<Invitation | null> {
  const row = await db.prepare(`${SELECT} WHERE i.id = ?`).bind(id).first();
  return row === null ? null : Row.parse(row);
}

/** Invitations, newest first, at most `limit`. */
export async function listInvitations(db: D1Database, limit: number): Promise<Invitation[]> {
  const { results } = await db.prepare(`${SELECT} ORDER BY i.created_at DESC, i.id LIMIT ?`).bind(limit).all();
  return results.map((row) => Row.parse(row));
}

/** What a member has taken and may still use, newest first. */
export async function listInvitationsOf(db: D1Database, member: string, limit: number): Promise<Invitation[]> {
  const { results } = await db
    .prepare(
      `${SELECT} WHERE i.taken_by = ?1 AND i.revoked_at IS NULL AND i.device_id IS NOT NULL AND d.removed_at IS NULL ORDER BY i.taken_at DESC LIMIT ?2`,
    )
    .bind(member, limit)
    .all();
  return results.map((row) => Row.parse(row));
}

/**
 * Takes an invitation for a member. True for the one caller who got it: the update succeeds once. `newMember` is added
 * only then, in the same transaction.
 */
export async function takeInvitation(
  db: D1Database,
  taken: { id: string; member: { id: string; name: string; role: Role }; isNew: boolean; at: number },
): Promise<boolean> {
  const { id, member, isNew, at } = taken;
  const insert = db
    .prepare(
      `INSERT INTO members (id, name, role, created_at) SELECT ?2, ?3, ?4, ?5
       WHERE EXISTS (SELECT 1 FROM invitations WHERE id = ?1 AND taken_at IS NULL AND revoked_at IS NULL AND expires_at > ?5)`,
    )
    .bind(id, member.id, member.name, member.role, at);
  const take = db
    .prepare(
      `UPDATE invitations SET taken_at = ?3, taken_by = ?2
       WHERE id = ?1 AND taken_at IS NULL AND revoked_at IS NULL AND expires_at > ?3`,
    )
    .bind(id, member.id, at);
  const results = await db.batch(isNew ? [insert, take] : [take]);
  return results.at(-1)?.meta.changes === 1;
}

/** Revokes an invitation. One that was taken gives no further grants; those that exist are revoked on their own. */
export async function revokeInvitation(db: D1Database, id: string, at: number): Promise<boolean> {
  const { meta } = await db.prepare("UPDATE invitations SET revoked_at = COALESCE(revoked_at, ?2) WHERE id = ?1").bind(id, at).run();
  return meta.changes === 1;
}
