/**
 * Applies the D1 migrations of the package, each file in one transaction. Uses wrangler's own table, so that the
 * files count as applied for wrangler too.
 */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { ApiError } from "../errors.ts";
import type { Database } from "./runtime.ts";

const TABLE = `CREATE TABLE IF NOT EXISTS d1_migrations (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT UNIQUE,
  applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL
)`;

/** Applies what is new in the directory, in order of file name; gives the names applied. */
export async function applyMigrations(database: Database, dir: string): Promise<string[]> {
  const files = (await readdir(dir)).filter((name) => name.endsWith(".sql")).sort();
  await database.batch([database.prepare(TABLE)]);
  const { results } = await database.prepare("SELECT name FROM d1_migrations").all();
  const applied = new Set(results.map((row) => String(row["name"])));
  const unknown = [...applied].find((name) => !files.includes(name));
  if (unknown !== undefined) {
    throw new ApiError(
      "failed",
      `The data was written by a newer Longline (it has ${unknown}). Install that version, or restore a backup.`,
    );
  }
  const pending = files.filter((name) => !applied.has(name));
  for (const name of pending) {
    // `exec` splits on newlines and would break triggers; `prepare` takes the whole file, and a batch is a transaction.
    const sql = await readFile(join(dir, name), "utf8");
    await database.batch([database.prepare(sql), database.prepare("INSERT INTO d1_migrations (name) VALUES (?)").bind(name)]);
  }
  return pending;
}
