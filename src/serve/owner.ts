/** Makes sure that the registry knows the owner, and a token of theirs that is kept on this machine. */
import { createHash, randomBytes } from "node:crypto";
import { NAMES } from "../limits.ts";
import type { Database } from "./runtime.ts";

/** A statement and its values: numbers, and texts of letters, digits, `-` and `_` only. */
export interface OwnerStatement {
  sql: string;
  values: readonly (string | number)[];
}

/** Adds the owner when there is none, and the token's hash when the registry lacks it. `label` says what the token is for. */
export function ownerStatements(ownerToken: string, label: string, now: number): OwnerStatement[] {
  const hash = createHash("sha256").update(ownerToken).digest("base64url");
  const memberId = randomBytes(NAMES.idBits / 8).toString("hex");
  return [
    {
      sql: "INSERT INTO members (id, name, role, created_at) SELECT ?, 'owner', 'owner', ? WHERE NOT EXISTS (SELECT 1 FROM members WHERE role = 'owner')",
      values: [memberId, now],
    },
    {
      sql: `INSERT INTO owner_tokens (hash, member_id, label, created_at)
         SELECT ?, id, ?, ? FROM members WHERE role = 'owner' ORDER BY created_at LIMIT 1
         ON CONFLICT (hash) DO NOTHING`,
      values: [hash, label, now],
    },
  ];
}

/** Does so in a database of this machine. */
export async function ensureOwner(database: Database, ownerToken: string, now: number): Promise<void> {
  const statements = ownerStatements(ownerToken, "serve", now);
  await database.batch(statements.map(({ sql, values }) => database.prepare(sql).bind(...values)));
}
