/** Figures of the audit: what counts as a call and as a failure, percentiles, and whose calls. */
import { env } from "cloudflare:workers";
import { beforeEach, describe, expect, it } from "vitest";
import { slotsOf } from "../../src/console/plots.tsx";
import { callStats } from "../../src/db/audit-stats.ts";
import { insertAuditRows, type NewAuditRow } from "../../src/db/audit.ts";

const HOUR_MS = 3_600_000;
const START = 1_000 * HOUR_MS;

function row(hour: number, change: Partial<NewAuditRow> = {}): NewAuditRow {
  return {
    id: crypto.randomUUID(),
    kind: "call",
    at: START + hour * HOUR_MS + 5,
    deviceId: "d1",
    member: "m1",
    outcome: "ok",
    durationMs: 10,
    ...change,
  };
}

async function add(...rows: NewAuditRow[]): Promise<void> {
  await env.DB.batch([insertAuditRows(env.DB, rows)]);
}

const stats = (more: object = {}) => callStats(env.DB, { since: START, bucketMs: HOUR_MS, ...more });

describe("calls per hour", () => {
  beforeEach(async () => {
    await env.DB.exec("DELETE FROM audit");
  });

  it("counts calls and failures; refusals and administrative rows are neither", async () => {
    const outcomes = ["ok", "error", "failed", "unknown", "cancelled"] as const;
    await add(
      ...outcomes.map((outcome) => row(0, { outcome })),
      row(0, { kind: "refused", outcome: "refused" }),
      row(0, { kind: "admin" }),
      row(2),
    );
    expect(await stats()).toMatchObject([
      { bucket: 1000, calls: 5, errors: 3 },
      { bucket: 1002, calls: 1, errors: 0 },
    ]);
  });

  it("gives percentiles by nearest rank, over calls with a duration", async () => {
    await add(
      ...Array.from({ length: 20 }, (_, index) => row(0, { durationMs: (index + 1) * 10 })),
      row(0, { durationMs: null }),
      row(1, { durationMs: 7 }),
    );
    expect(await stats()).toMatchObject([
      { calls: 21, p50: 100, p95: 190 },
      { calls: 1, p50: 7, p95: 7 },
    ]);
    await add(row(2, { durationMs: null }));
    expect((await stats())[2]).toMatchObject({ calls: 1, p50: null, p95: null });
  });

  it("keeps to a device, a member and a time", async () => {
    await add(row(0), row(0, { deviceId: "d2" }), row(0, { member: "m2" }), row(-1));
    expect(await stats({ deviceId: "d2" })).toMatchObject([{ calls: 1 }]);
    expect(await stats({ member: "m2" })).toMatchObject([{ calls: 1 }]);
    expect(await stats()).toMatchObject([{ calls: 3 }]);
  });

  it("leaves no gap on the axis: an hour without calls has none, and no latency", () => {
    const slots = slotsOf([{ bucket: 9, calls: 2, errors: 1, p50: 3, p95: 4 }], { last: 10, count: 3, bucketMs: HOUR_MS });
    expect(slots).toEqual([
      { label: "01-01 08:00", calls: 0, errors: 0, p50: null, p95: null },
      { label: "01-01 09:00", calls: 2, errors: 1, p50: 3, p95: 4 },
      { label: "01-01 10:00", calls: 0, errors: 0, p50: null, p95: null },
    ]);
  });
});
