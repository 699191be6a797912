/** Figures over table `audit`: calls, errors and how long they took, per hour or day. Times are epoch ms, durations ms. */
import { z } from "zod";

const Row = z
  .object({ bucket: z.number(), calls: z.number(), errors: z.number(), p50: z.number().nullable(), p95: z.number().nullable() })
  .transform((row) => ({
    /** Number of the hour or day since the epoch. */
    bucket: row.bucket,
    calls: row.calls,
    /** Calls that failed: the upstream's own errors, failures of the relay, and those whose end is not known. */
    errors: row.errors,
    p50: row.p50,
    p95: row.p95,
  }));

/** One hour or day. */
export type CallStats = z.output<typeof Row>;

/** What is counted; what is given has to hold. */
export interface StatsFilter {
  deviceId?: string | undefined;
  /** Calls of this member only. */
  member?: string | undefined;
  since: number;
  /** ms of an hour or a day. */
  bucketMs: number;
}

/**
 * Calls per hour or day, those without any left out. A bound number is a REAL, so the quotient has to be cut. Percentiles are of the nearest rank, over calls that
 * have a duration.
 */
export async function callStats(db: D1Database, { deviceId, member, since, bucketMs }: StatsFilter): Promise<CallStats[]> {
  const { results } = await db
    .prepare(
      `WITH calls AS (
         SELECT CAST(at / ?1 AS INTEGER) AS bucket, outcome, duration_ms,
           ROW_NUMBER() OVER (PARTITION BY CAST(at / ?1 AS INTEGER), duration_ms IS NULL ORDER BY duration_ms) AS rank,
           COUNT(duration_ms) OVER (PARTITION BY CAST(at / ?1 AS INTEGER)) AS timed
         FROM audit WHERE kind = 'call' AND at >= ?2 AND (?3 IS NULL OR device_id = ?3) AND (?4 IS NULL OR member_id = ?4))
       SELECT bucket, COUNT(*) AS calls, SUM(outcome IN ('error', 'failed', 'unknown')) AS errors,
         MAX(CASE WHEN duration_ms IS NOT NULL AND rank = (timed * 50 + 99) / 100 THEN duration_ms END) AS p50,
         MAX(CASE WHEN duration_ms IS NOT NULL AND rank = (timed * 95 + 99) / 100 THEN duration_ms END) AS p95
       FROM calls GROUP BY bucket ORDER BY bucket`,
    )
    .bind(bucketMs, since, deviceId ?? null, member ?? null)
    .all();
  return results.map((row) => Row.parse(row));
}
