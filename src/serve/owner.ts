/** Makes sure that the registry knows the owner, and the token that is kept in the data directory. */
import { createHash, randomBytes } from "node:crypto";
import { NAMES } from "../limits.ts";
import type { Database } from "./runtime.ts";

/** Adds the owner at the first start, and the token's hash whenever the registry lacks it. */
export async function ensureOwner(database: Database, ownerToken: string, now: number): Promise<void> {
  const hash = createHash("sha256").update(ownerToken).digest("base64url");
  const memberId = randomBytes(NAMES.idBits / 8).toString("hex");
  await database.batch([
    database
      .prepare(
        "INSERT INTO members (id, name, role, created_at) SELECT ?, 'owner', 'owner', ? WHERE NOT EXISTS (SELECT 1 FROM members WHERE role = 'owner')",
      )
      .bind(memberId, now),
    database
      .prepare(
        `INSERT INTO owner_tokens (hash, member_id, label, created_at)
         SELECT ?, id, 'serve', ? FROM members WHERE role = 'owner' ORDER BY created_at LIMIT 1
         ON CONFLICT (hash) DO NOTHING`,
      )
      .bind(hash, now),
  ]);
}
