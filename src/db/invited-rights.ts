/** Table `invitations`, as far as it says what a member was given on a device. */
import { z } from "zod";
import { Caps, Rights } from "../policy/grant.ts";

const Json = z.string().transform((text): unknown => JSON.parse(text));
const Row = z.object({ rights: Json.pipe(Rights), caps: Json.pipe(Caps).nullable(), grant_ms: z.number().nullable() }).transform((row) => ({
  rights: row.rights,
  caps: row.caps,
  /** ms that a grant made from it may live. */
  grantMs: row.grant_ms,
}));

/** What one invitation gave. */
export type InvitedRights = z.output<typeof Row>;

/** What a member was given on a device by invitations that were not taken back, newest first. */
export async function listInvitedRights(db: D1Database, memberId: string, deviceId: string): Promise<InvitedRights[]> {
  const { results } = await db
    .prepare(
      `SELECT rights, caps, grant_ms FROM invitations
       WHERE taken_by = ? AND device_id = ? AND rights IS NOT NULL AND revoked_at IS NULL ORDER BY taken_at DESC`,
    )
    .bind(memberId, deviceId)
    .all();
  return results.map((row) => Row.parse(row));
}
