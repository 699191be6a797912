/**
 * Table `origins`: public origins beside those of the configuration. Those with a negative position come before the
 * configured ones, and the first of all is canonical; the others come behind.
 */
import { z } from "zod";

const Row = z.object({ origin: z.string(), position: z.number() });

/** A recorded origin. */
export type OriginRow = z.output<typeof Row>;

/** All recorded origins in their order. */
export async function listOrigins(db: D1Database): Promise<OriginRow[]> {
  const { results } = await db.prepare("SELECT origin, position FROM origins ORDER BY position").all();
  return results.map((row) => Row.parse(row));
}

/** Adds an origin, at the end or in front of all, or moves it there. `createdAt` is epoch ms. */
export async function addOrigin(db: D1Database, origin: string, isFirst: boolean, createdAt: number): Promise<void> {
  const position = isFirst ? "MIN(COALESCE(MIN(position), 0), 0) - 1" : "MAX(COALESCE(MAX(position), 0), 0) + 1";
  await db
    .prepare(
      `INSERT INTO origins (origin, position, created_at) SELECT ?1, ${position}, ?2 FROM origins WHERE true
       ON CONFLICT (origin) DO UPDATE SET position = excluded.position`,
    )
    .bind(origin, createdAt)
    .run();
}

/** Removes an origin. False when it is not recorded. */
export async function removeOrigin(db: D1Database, origin: string): Promise<boolean> {
  return (await db.prepare("DELETE FROM origins WHERE origin = ?").bind(origin).run()).meta.changes === 1;
}
