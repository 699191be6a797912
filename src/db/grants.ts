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
  })
  .transform((row) => ({
    deviceId: row.device_id,
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
  g.paused_at, g.revoked_at, g.revision FROM grants g JOIN devices d ON d.id = g.device_id`;

/** Adds a grant at the device's next revision and returns it so; null when the device is gone. */
export async function insertGrant(
  db: D1Database,
  deviceId: string,
  grant: Omit<Grant, "revision" | "pausedAt" | "revokedAt">,
  createdAt: number,
): Promise<Grant | null> {
  const [, inserted] = await db.batch([
    bumpGrantRevision(db, deviceId),
    db
      .prepare(
        `INSERT INTO grants (id, device_id, member_id, label, rights, caps, created_at, expires_at, revision)
         SELECT ?2, id, ?3, ?4, ?5, ?6, ?7, ?8, grant_revision FROM devices WHERE id = ?1 AND removed_at IS NULL
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

/** Grants of one device, or of all when `deviceId` is absent; newest first, at most `limit`. */
export async function listGrants(db: D1Database, deviceId: string | undefined, limit: number): Promise<GrantRecord[]> {
  const { results } = await db
    .prepare(
      `${SELECT} WHERE d.removed_at IS NULL AND (?1 IS NULL OR g.device_id = ?1)
       ORDER BY g.created_at DESC, g.id LIMIT ?2`,
    )
    .bind(deviceId ?? null, limit)
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
