/** A new owner token for an embedded relay, from its data directory: whoever can read the data owns the relay. */
import { createHash, randomBytes } from "node:crypto";
import { join } from "node:path";
import { NAMES } from "../limits.ts";
import { openDataDir, ownerTokenPath } from "./data-dir.ts";
import { applyMigrations } from "./migrate.ts";
import { ensureOwner } from "./owner.ts";
import { packageRoot } from "./package-root.ts";
import { withDatabases } from "./runtime.ts";
import { writePrivateFile } from "./secret-file.ts";
import { readWorkerConfig } from "./wrangler-config.ts";

/**
 * Makes a new owner token, the one that `serve` keeps from now on; every other token for the API and every browser
 * session ends. The relay has to be stopped: its data is locked for as long as this takes.
 */
export async function recoverOwner(dataDir: string, log: (line: string) => void): Promise<{ ownerToken: string }> {
  const data = await openDataDir(dataDir, log);
  try {
    const root = packageRoot();
    const config = await readWorkerConfig(join(root, "wrangler.toml"));
    const ownerToken = `llo_${randomBytes(NAMES.secretBits / 8).toString("base64url")}`;
    const hash = createHash("sha256").update(ownerToken).digest("base64url");
    const now = Date.now();
    await withDatabases({ config, dataDir: data.path, log }, async (database, migrationsDir) => {
      await applyMigrations(database, join(root, migrationsDir));
      await ensureOwner(database, ownerToken, now);
      await database.batch([
        database.prepare("UPDATE owner_tokens SET revoked_at = ? WHERE hash <> ? AND revoked_at IS NULL").bind(now, hash),
        database.prepare("UPDATE web_sessions SET revoked_at = ? WHERE revoked_at IS NULL").bind(now),
      ]);
    });
    // Last: until here the token that was kept before still opens the relay.
    await writePrivateFile(ownerTokenPath(data.path), `${ownerToken}\n`);
    return { ownerToken };
  } finally {
    data.lock.release();
  }
}
