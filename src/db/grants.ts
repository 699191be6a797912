/**
 * Table `grants`: the record of what each token may do. Objects decide by their own copy and pull what is newer by
 * revision, so every change bumps the device's revision in the same batch. Times are epoch ms.
 */
import { z } from "zod";
import { Caps, type Grant, Rights } from "../policy/grant.ts";
import { bumpGrantRevision } from "./devices.ts";

const Json = z.string().transform((text): unknown => JSON.parse(text));

const Row = z
  .object({
    id: z.string(),
    device_id: z.string(),
    device_name: z.string(),
    member_id: z.string(),
    label: z.string(),
    rights: Json.pipe(Rights),
    caps: Json.pipe(Caps),
    created_at: z.number(),
    expires_at: z.number(),
    paused_at: z.number().nullable(),
    revoked_at: z.number().nullable(),
    revision: z.number(),
    note: z.string().nullable(),
    member_name: z.string().nullable(),
    client_name: z.string().nullable(),
  })
  .transform((row) => ({
    deviceId: row.device_id,
    /** For the owner's eyes. */
    note: row.note,
    memberName: row.member_name,
    /** The OAuth client it was given to on the consent page; null for a token that was made by hand. */
    clientName: row.client_name,
    deviceName: row.device_name,
    createdAt: row.created_at,
    grant: {
      id: row.id,
      label: row.label,
      member: row.member_id,
      rights: row.rights,
      caps: row.caps,
      expiresAt: row.expires_at,
      pausedAt: row.paused_at,
      revokedAt: row.revoked_at,
      revision: row.revision,
    } satisfies Grant,
  }));

/** A grant with the device it belongs to. */
export type GrantRecord = z.output<typeof Row>;

const SELECT = `SELECT g.id, g.device_id, d.name AS device_name, g.member_id, g.label, g.rights, g.caps, g.created_at, g.expires_at,
  g.paused_at, g.revoked_at, g.revision, g.note, m.name AS member_name,
  (SELECT o.client_name FROM oauth_grants o WHERE o.grant_id = g.id) AS client_name
  FROM grants g JOIN devices d ON d.id = g.device_id LEFT JOIN members m ON m.id = g.member_id`;

/** Adds a grant at the device's next revision and returns it so; null when the device is gone. */
export async function insertGrant(
  db: D1Database,
  deviceId: string,
  grant: Omit<Grant, "revision" | "pausedAt" | "revokedAt">,
  createdAt: number,
  note: string | null = null,
): Promise<Grant | null> {
  const [, inserted] = await db.batch([
    bumpGrantRevision(db, deviceId),
    db
      .prepare(
        `INSERT INTO grants (id, device_id, member_id, label, rights, caps, created_at, expires_at, note, revision)
         SELECT ?2, id, ?3, ?4, ?5, ?6, ?7, ?8, ?9, grant_revision FROM devices WHERE id = ?1 AND removed_at IS NULL
         RETURNING revision`,
      )
      .bind(
        deviceId,
        grant.id,
        grant.member,
        grant.label,
        JSON.stringify(grant.rights),
        JSON.stringify(grant.caps),
        createdAt,
        grant.expiresAt,
        note,
      ),
  ]);
  const row = z.object({ revision: z.number() }).safeParse(inserted?.results[0]);
  return row.success ? { ...grant, pausedAt: null, revokedAt: null, revision: row.data.revision } : null;
}

/** The grant with this id, or null; grants of removed devices count as unknown. */
export async function findGrant(db: D1Database, id: string): Promise<GrantRecord | null> {
  const row = await db.prepare(`${SELECT} WHERE g.id = ? AND d.removed_at IS NULL`).bind(id).first();
  return row === null ? null : Row.parse(row);
}

/** Grants of one device, or of all when `deviceId` is absent, and of one member if given; newest first, at most `limit`. */
export async function listGrants(db: D1Database, deviceId: string | undefined, limit: number, member?: string): Promise<GrantRecord[]> {
  const { results } = await db
    .prepare(
      `${SELECT} WHERE d.removed_at IS NULL AND (?1 IS NULL OR g.device_id = ?1) AND (?3 IS NULL OR g.member_id = ?3)
       ORDER BY g.created_at DESC, g.id LIMIT ?2`,
    )
    .bind(deviceId ?? null, limit, member ?? null)
    .all();
  return results.map((row) => Row.parse(row));
}

/** What a device's object does not have yet: its grants changed after `revision`, oldest change first. */
export async function grantsSince(db: D1Database, deviceId: string, revision: number): Promise<Grant[]> {
  const { results } = await db
    .prepare(`${SELECT} WHERE g.device_id = ?1 AND g.revision > ?2 ORDER BY g.revision`)
    .bind(deviceId, revision)
    .all();
  return results.map((row) => Row.parse(row).grant);
}

/** Revokes a grant at `at` and gives it the device's next revision. Revoking again keeps the first time. */
export async function revokeGrant(db: D1Database, deviceId: string, id: string, at: number): Promise<void> {
  await db.batch([
    bumpGrantRevision(db, deviceId),
    db
      .prepare(
        `UPDATE grants SET revoked_at = COALESCE(revoked_at, ?3), revision = (SELECT grant_revision FROM devices WHERE id = ?1)
         WHERE id = ?2 AND device_id = ?1`,
      )
      .bind(deviceId, id, at),
  ]);
}

/** Grants of a member that are not revoked yet, on all devices. */
export async function liveGrantsOf(db: D1Database, member: string): Promise<GrantRecord[]> {
  const { results } = await db
    .prepare(`${SELECT} WHERE g.member_id = ? AND g.revoked_at IS NULL AND d.removed_at IS NULL`)
    .bind(member)
    .all();
  return results.map((row) => Row.parse(row));
}

/**
 * Grants of a member whose end an object may not have heard of: everything that has not expired, also what is revoked in
 * the record already.
 */
export async function unexpiredGrantsOf(db: D1Database, member: string, now: number): Promise<GrantRecord[]> {
  const { results } = await db
    .prepare(`${SELECT} WHERE g.member_id = ?1 AND (g.revoked_at IS NULL OR g.expires_at > ?2) AND d.removed_at IS NULL`)
    .bind(member, now)
    .all();
  return results.map((row) => Row.parse(row));
}

/** When the last usable grant expires (epoch ms); 0 without any. */
export async function lastExpiry(db: D1Database, now: number): Promise<number> {
  const sql = "SELECT COALESCE(MAX(expires_at), 0) AS at FROM grants WHERE revoked_at IS NULL AND expires_at > ?";
  return (await db.prepare(sql).bind(now).first<number>("at")) ?? 0;
}

/** Rewrites what can change of a grant, at the device's next revision; null when it is gone or revoked. */
export async function updateGrant(db: D1Database, deviceId: string, grant: Grant, note: string | null): Promise<Grant | null> {
  const [, updated] = await db.batch([
    bumpGrantRevision(db, deviceId),
    db
      .prepare(
        `UPDATE grants SET label = ?3, rights = ?4, caps = ?5, expires_at = ?6, paused_at = ?7, note = ?8,
           revision = (SELECT grant_revision FROM devices WHERE id = ?1)
         WHERE id = ?2 AND device_id = ?1 AND revoked_at IS NULL RETURNING revision`,
      )
      .bind(
        deviceId,
        grant.id,
        grant.label,
        JSON.stringify(grant.rights),
        JSON.stringify(grant.caps),
        grant.expiresAt,
        grant.pausedAt,
        note,
      ),
  ]);
  const row = z.object({ revision: z.number() }).safeParse(updated?.results[0]);
  return row.success ? { ...grant, revision: row.data.revision } : null;
}
