/** Table `settings`: the few settings of a whole relay. */
import { z } from "zod";
import { AUDIT } from "../limits.ts";

/** Settings and their meaning; one that was never set has its default. */
export const Settings = z.strictObject({
  /** Days that audit rows are kept. */
  auditDays: z.int().min(1).max(AUDIT.maxKeepDays).default(AUDIT.keepDays),
});
export type Settings = z.output<typeof Settings>;

/** All settings. */
export async function readSettings(db: D1Database): Promise<Settings> {
  const { results } = await db.prepare("SELECT name, value FROM settings").all<{ name: string; value: string }>();
  const known = results.filter((row) => row.name in Settings.shape).map((row) => [row.name, JSON.parse(row.value) as unknown]);
  return Settings.parse(Object.fromEntries(known));
}

/** Writes the settings that are given. */
export async function writeSettings(db: D1Database, settings: Partial<Settings>): Promise<void> {
  const rows = Object.entries(settings).filter(([, value]) => value !== undefined);
  if (rows.length === 0) return;
  await db.batch(
    rows.map(([name, value]) =>
      db
        .prepare("INSERT INTO settings (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value")
        .bind(name, JSON.stringify(value)),
    ),
  );
}
