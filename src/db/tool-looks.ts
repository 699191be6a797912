/** Table `tool_looks`: which tools of a device a person has seen, by digest of their definitions. Times are epoch ms. */
import { z } from "zod";

const Tools = z.record(z.string(), z.string());

const Row = z
  .object({ looked_at: z.number(), tools: z.string() })
  .transform((row) => ({ lookedAt: row.looked_at, tools: new Map(Object.entries(Tools.parse(JSON.parse(row.tools)))) }));

/** A person's last look at a device's tools. */
export type ToolLook = z.output<typeof Row>;

/** The last look of a member at a device, or null. */
export async function findToolLook(db: D1Database, member: string, deviceId: string): Promise<ToolLook | null> {
  const row = await db
    .prepare("SELECT looked_at, tools FROM tool_looks WHERE member_id = ? AND device_id = ?")
    .bind(member, deviceId)
    .first();
  return row === null ? null : Row.parse(row);
}

/** Records a look; it takes the place of the one before. */
export async function recordToolLook(
  db: D1Database,
  look: { member: string; deviceId: string; lookedAt: number; tools: ReadonlyMap<string, string> },
): Promise<void> {
  await db
    .prepare(
      `INSERT INTO tool_looks (member_id, device_id, looked_at, tools) VALUES (?1, ?2, ?3, ?4)
       ON CONFLICT (member_id, device_id) DO UPDATE SET looked_at = excluded.looked_at, tools = excluded.tools`,
    )
    .bind(look.member, look.deviceId, look.lookedAt, JSON.stringify(Object.fromEntries(look.tools)))
    .run();
}
