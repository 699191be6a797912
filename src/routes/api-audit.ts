/** `/audit` and `/settings`, below `/api`. A member reads the calls of their own grants, an owner everything. */
import { Hono } from "hono";
import { z } from "zod";
import { audited } from "../auth/admin-audit.ts";
import { ownersOnly } from "../auth/owner.ts";
import { AuditOutcome, listAudit, newestAuditSeq } from "../db/audit.ts";
import { readSettings, Settings, writeSettings } from "../db/settings.ts";
import type { AppEnv } from "../env.ts";
import { AUDIT } from "../limits.ts";
import { deviceNamed } from "./api-devices.ts";
import { readBody, readQuery } from "./body.ts";

const Whole = z
  .string()
  .regex(/^\d{1,16}$/, "must be a whole number")
  .transform(Number);

const AuditQuery = z.object({
  device: z.string().optional(),
  grant: z.string().max(64).optional(),
  outcome: AuditOutcome.optional(),
  /** Epoch ms. */
  since: Whole.optional(),
  /** `seq` of the last row a follower has. */
  after: Whole.optional(),
  limit: Whole.pipe(z.int().min(1).max(AUDIT.maxListRows)).default(AUDIT.listRows),
});

const SettingsChange = z.strictObject({ auditDays: Settings.shape.auditDays.unwrap() }).partial();

/** The audit routes. */
export function auditRoutes(): Hono<AppEnv> {
  const app = new Hono<AppEnv>();
  app.get("/audit", async (c) => {
    const { device, grant, outcome, since, after, limit } = readQuery(c, AuditQuery);
    const { id, role } = c.get("member");
    const deviceId = device === undefined ? undefined : (await deviceNamed(c.env, device)).id;
    const member = role === "owner" ? undefined : id;
    // Read first: a row that arrives in between is then told by the next question rather than by none.
    const newest = await newestAuditSeq(c.env.DB);
    const rows = await listAudit(c.env.DB, { deviceId, grant, outcome, member, since, after, limit });
    return c.json({ rows, newest: after === undefined ? newest : Math.max(after, ...rows.map((row) => row.seq)) });
  });
  app.get("/settings", ownersOnly, async (c) => c.json(await readSettings(c.env.DB)));
  app.patch("/settings", ownersOnly, async (c) => {
    const change = await readBody(c, SettingsChange);
    await audited(c, { name: "settings.change", target: Object.keys(change).join(" ") }, () =>
      writeSettings(c.env.DB, change.auditDays === undefined ? {} : { auditDays: change.auditDays }),
    );
    return c.json(await readSettings(c.env.DB));
  });
  return app;
}
