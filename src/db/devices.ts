/** Table `devices`: names, presence, and the revision of each device's grants. Times are epoch ms. */
import { z } from "zod";
import { type DeviceSettingsChange, readDeviceSettings } from "../policy/device-settings.ts";

const FormerNames = z.array(z.object({ name: z.string(), until: z.number() }));

const Row = z
  .object({
    id: z.string(),
    name: z.string(),
    created_at: z.number(),
    born_at: z.number().nullable(),
    generation: z.number(),
    online: z.number(),
    last_seen_at: z.number().nullable(),
    agent_version: z.string().nullable(),
    grant_revision: z.number(),
    paused_at: z.number().nullable(),
    removed_at: z.number().nullable(),
    settings: z.string(),
    former: z.string(),
    keyed: z.number(),
  })
  .transform((row) => ({
    id: row.id,
    name: row.name,
    createdAt: row.created_at,
    /** First authenticated dial-in; only then does the device's object exist. */
    bornAt: row.born_at,
    generation: row.generation,
    online: row.online === 1,
    lastSeenAt: row.last_seen_at,
    agentVersion: row.agent_version,
    grantRevision: row.grant_revision,
    pausedAt: row.paused_at,
    removedAt: row.removed_at,
    settings: readDeviceSettings(row.settings),
    /** Names of before a rename, and until when each still counts. */
    formerNames: FormerNames.parse(JSON.parse(row.former)),
    /** False when every device key was revoked: the agent cannot come back. */
    hasKey: row.keyed === 1,
  }));

const Counts = z.object({ all: z.number(), online: z.number() });

/** A device as D1 records it. */
export type Device = z.output<typeof Row>;

const COLUMNS = `d.id, d.name, d.created_at, d.born_at, d.generation, d.online, d.last_seen_at, d.agent_version, d.grant_revision,
  d.paused_at, d.removed_at, d.settings,
  (SELECT json_group_array(json_object('name', n.name, 'until', n.until)) FROM device_names n WHERE n.device_id = d.id) AS former,
  EXISTS (SELECT 1 FROM device_keys k WHERE k.device_id = d.id AND k.revoked_at IS NULL
    AND (k.expires_at IS NULL OR k.expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER))) AS keyed`;

/** Inserts a device and its first key in one batch. False when the name is taken: nothing was written then. */
export async function insertDevice(
  db: D1Database,
  device: { id: string; name: string; keyHash: string; createdAt: number },
): Promise<boolean> {
  const [inserted] = await db.batch([
    db
      .prepare(
        `INSERT INTO devices (id, name, created_at) SELECT ?1, ?2, ?3
         WHERE NOT EXISTS (SELECT 1 FROM device_names n JOIN devices d ON d.id = n.device_id
           WHERE n.name = ?2 AND n.until > ?3 AND d.removed_at IS NULL)
         ON CONFLICT (name) WHERE removed_at IS NULL DO NOTHING`,
      )
      .bind(device.id, device.name, device.createdAt),
    db
      .prepare(
        `INSERT INTO device_keys (hash, device_id, created_at)
         SELECT ?, id, ? FROM devices WHERE id = ?`,
      )
      .bind(device.keyHash, device.createdAt, device.id),
  ]);
  return inserted?.meta.changes === 1;
}

/** The device that has this name now, or null. */
export async function findDeviceByName(db: D1Database, name: string): Promise<Device | null> {
  const row = await db.prepare(`SELECT ${COLUMNS} FROM devices d WHERE d.name = ? AND d.removed_at IS NULL`).bind(name).first();
  return row === null ? null : Row.parse(row);
}

/** The device with this id, or null; a removed one counts as unknown. */
export async function findDevice(db: D1Database, id: string): Promise<Device | null> {
  const row = await db.prepare(`SELECT ${COLUMNS} FROM devices d WHERE d.id = ? AND d.removed_at IS NULL`).bind(id).first();
  return row === null ? null : Row.parse(row);
}

/** All devices by name, at most `limit`. */
export async function listDevices(db: D1Database, limit: number): Promise<Device[]> {
  const { results } = await db
    .prepare(`SELECT ${COLUMNS} FROM devices d WHERE d.removed_at IS NULL ORDER BY d.name LIMIT ?`)
    .bind(limit)
    .all();
  return results.map((row) => Row.parse(row));
}

/** How many devices there are, and how many of them have their agent connected. */
export async function countDevices(db: D1Database): Promise<{ all: number; online: number }> {
  const row = await db
    .prepare('SELECT COUNT(*) AS "all", COALESCE(SUM(online), 0) AS online FROM devices WHERE removed_at IS NULL')
    .first();
  return Counts.parse(row);
}

/** Changes the settings that are given, in one statement, so that two changes at once do not undo each other. */
export async function changeDeviceSettings(db: D1Database, id: string, change: DeviceSettingsChange): Promise<void> {
  await db
    .prepare("UPDATE devices SET settings = json_patch(settings, ?2) WHERE id = ?1 AND removed_at IS NULL")
    .bind(id, JSON.stringify(change))
    .run();
}

/** Records the first authenticated dial-in; later ones change nothing. */
export async function markBorn(db: D1Database, id: string, at: number): Promise<void> {
  await db.prepare("UPDATE devices SET born_at = ? WHERE id = ? AND born_at IS NULL AND removed_at IS NULL").bind(at, id).run();
}

/** What the object tells about its tunnel. */
export interface Presence {
  generation: number;
  online: boolean;
  /** Epoch ms. */
  lastSeenAt: number;
  /** Absent keeps what is recorded. */
  agentVersion?: string | undefined;
}

/**
 * Writes presence. An older generation changes nothing; within a generation a device goes from online to offline
 * and never back, so a late write cannot overwrite a newer one.
 */
export async function recordPresence(db: D1Database, id: string, presence: Presence): Promise<void> {
  await db
    .prepare(
      `UPDATE devices SET generation = ?2, online = ?3, last_seen_at = MAX(COALESCE(last_seen_at, 0), ?4),
         agent_version = COALESCE(?5, agent_version)
       WHERE id = ?1 AND removed_at IS NULL AND (generation < ?2 OR (generation = ?2 AND online >= ?3))`,
    )
    .bind(id, presence.generation, presence.online ? 1 : 0, presence.lastSeenAt, presence.agentVersion ?? null)
    .run();
}

/** Ends a device: frees its name, revokes its grants and keys, in one batch. Running it again changes nothing. */
export async function removeDevice(db: D1Database, id: string, at: number): Promise<void> {
  await db.batch([
    db
      .prepare("UPDATE devices SET removed_at = ?2, online = 0, grant_revision = grant_revision + 1 WHERE id = ?1 AND removed_at IS NULL")
      .bind(id, at),
    db.prepare("UPDATE device_keys SET revoked_at = ?2 WHERE device_id = ?1 AND revoked_at IS NULL").bind(id, at),
    db
      .prepare(
        `UPDATE grants SET revoked_at = ?2, revision = (SELECT grant_revision FROM devices WHERE id = ?1)
         WHERE device_id = ?1 AND revoked_at IS NULL`,
      )
      .bind(id, at),
  ]);
}

/** The statement that gives a device's grants their next revision; runs in one batch with the change it belongs to. */
export function bumpGrantRevision(db: D1Database, id: string): D1PreparedStatement {
  return db.prepare("UPDATE devices SET grant_revision = grant_revision + 1 WHERE id = ? AND removed_at IS NULL").bind(id);
}

/** Pauses a device at `pausedAt` (epoch ms), or lets it run again with null. */
export async function setDevicePaused(db: D1Database, id: string, pausedAt: number | null): Promise<void> {
  await db.prepare("UPDATE devices SET paused_at = ?2 WHERE id = ?1 AND removed_at IS NULL").bind(id, pausedAt).run();
}

/** The devices on which a member has a grant that is not revoked, or that they were invited to; by name, at most `limit`. */
export async function listDevicesOf(db: D1Database, member: string, limit: number): Promise<Device[]> {
  const { results } = await db
    .prepare(
      `SELECT ${COLUMNS} FROM devices d WHERE d.removed_at IS NULL
         AND (EXISTS (SELECT 1 FROM grants g WHERE g.device_id = d.id AND g.member_id = ?1 AND g.revoked_at IS NULL)
           OR EXISTS (SELECT 1 FROM invitations i WHERE i.device_id = d.id AND i.taken_by = ?1 AND i.revoked_at IS NULL))
       ORDER BY d.name LIMIT ?2`,
    )
    .bind(member, limit)
    .all();
  return results.map((row) => Row.parse(row));
}
