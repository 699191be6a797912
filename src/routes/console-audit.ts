/** Console: the audit with its plots, and as CSV. A member reads the calls of their own grants, an owner everything. */
import { type Context, Hono } from "hono";
import { type AuditAsked, auditPage, SPANS } from "../console/audit-page.tsx";
import { type Slot, slotsOf } from "../console/plots.tsx";
import { callStats } from "../db/audit-stats.ts";
import { type AuditFilter, AuditOutcome, listAudit } from "../db/audit.ts";
import type { Device } from "../db/devices.ts";
import type { AppEnv } from "../env.ts";
import { AUDIT, CONSOLE } from "../limits.ts";
import { AUDIT_COLUMNS, auditCells } from "../policy/audit-columns.ts";
import { formatCsv } from "../policy/csv.ts";
import { visibleDevices } from "./api-devices.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** The filter of the query. What cannot be meant counts as not given: the page shows what it used. */
function readAsked(c: Context<AppEnv>, devices: readonly Device[]): { asked: AuditAsked; deviceId: string | undefined } {
  const query = (name: string): string => c.req.query(name) ?? "";
  const device = devices.find(({ name }) => name === query("device"));
  const span = SPANS.find(({ value }) => value === query("span")) ?? SPANS[0];
  const asked: AuditAsked = {
    device: device?.name ?? "",
    outcome: AuditOutcome.safeParse(query("outcome")).data ?? "",
    grant: query("grant").slice(0, 64),
    span: span.value,
    per: query("per") === "day" ? "day" : "hour",
  };
  return { asked, deviceId: device?.id };
}

function memberOf(c: Context<AppEnv>): string | undefined {
  const { id, role } = c.get("member");
  return role === "owner" ? undefined : id;
}

function filterOf(c: Context<AppEnv>, { asked, deviceId }: ReturnType<typeof readAsked>): Omit<AuditFilter, "limit"> {
  const ms = SPANS.find(({ value }) => value === asked.span)?.ms;
  return {
    deviceId,
    grant: asked.grant === "" ? undefined : asked.grant,
    outcome: AuditOutcome.safeParse(asked.outcome).data,
    member: memberOf(c),
    since: ms === undefined ? undefined : Date.now() - ms,
  };
}

async function plotted(c: Context<AppEnv>, per: AuditAsked["per"], deviceId: string | undefined): Promise<Slot[]> {
  const bucketMs = per === "day" ? DAY_MS : HOUR_MS;
  const count = per === "day" ? CONSOLE.plotDays : CONSOLE.plotHours;
  const last = Math.floor(Date.now() / bucketMs);
  const stats = await callStats(c.env.DB, { deviceId, member: memberOf(c), since: (last - count + 1) * bucketMs, bucketMs });
  return slotsOf(stats, { last, count, bucketMs });
}

async function show(c: Context<AppEnv>): Promise<Response> {
  const devices = await visibleDevices(c);
  const read = readAsked(c, devices);
  const before = Number(c.req.query("before") ?? "");
  const filter = { ...filterOf(c, read), ...(Number.isSafeInteger(before) && before > 0 ? { before } : {}), limit: CONSOLE.auditRows + 1 };
  const [rows, slots] = await Promise.all([listAudit(c.env.DB, filter), plotted(c, read.asked.per, read.deviceId)]);
  const shown = rows.slice(0, CONSOLE.auditRows);
  return auditPage(c, {
    person: c.get("member"),
    asked: read.asked,
    devices: devices.map(({ name }) => name),
    rows: shown,
    slots,
    older: rows.length > shown.length ? shown.at(-1)?.seq : undefined,
  });
}

async function csv(c: Context<AppEnv>): Promise<Response> {
  const rows = await listAudit(c.env.DB, { ...filterOf(c, readAsked(c, await visibleDevices(c))), limit: AUDIT.maxListRows });
  return c.body(`${formatCsv(AUDIT_COLUMNS, rows.map(auditCells))}\r\n`, 200, {
    "Content-Type": "text/csv; charset=utf-8",
    "Content-Disposition": 'attachment; filename="longline-audit.csv"',
  });
}

/** The routes of the audit. */
export function consoleAuditRoutes(): Hono<AppEnv> {
  return new Hono<AppEnv>().get("/audit", show).get("/audit.csv", csv);
}
