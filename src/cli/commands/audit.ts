/** `longline audit`: who called what, how it ended, and what was changed. */
import { setTimeout } from "node:timers/promises";
import { type Command, InvalidArgumentError, Option } from "commander";
import { z } from "zod";
import { CLI } from "../../limits.ts";
import { connect, withOwnerOptions, type OwnerOptions } from "../connection.ts";
import { AUDIT_COLUMNS, auditCells } from "../../policy/audit-columns.ts";
import { formatCsv } from "../../policy/csv.ts";
import { parseCount } from "../numbers.ts";
import type { OwnerApi } from "../owner-api.ts";
import { listenForStop } from "../stop-signals.ts";
import { formatTable } from "../table.ts";
import { printJson, type Terminal } from "../terminal.ts";
import { parseDuration } from "../times.ts";

const Text = z.string().nullable();
const Count = z.number().nullable();
const Row = z.looseObject({
  at: z.number(),
  kind: z.string(),
  device: Text,
  grant: Text,
  label: Text,
  member: Text,
  memberName: Text,
  client: Text,
  clientVersion: Text,
  clientProtocol: Text,
  upstreamProtocol: Text,
  method: Text,
  target: Text,
  outcome: z.string(),
  reason: Text,
  durationMs: Count,
  bytesIn: Count,
  bytesOut: Count,
  callId: z.string(),
  attempts: Count.default(null),
});
type Row = z.infer<typeof Row>;
const Answer = z.looseObject({ rows: z.array(Row), newest: z.number() });
const SettingsAnswer = z.looseObject({ auditDays: z.number() });

const OUTCOMES = ["ok", "error", "failed", "refused", "cancelled", "incomplete", "unknown"];

interface AuditOptions extends OwnerOptions {
  device?: string;
  grant?: string;
  outcome?: string;
  since?: number;
  limit?: number;
  follow?: boolean;
  csv?: boolean;
}

/** Adds the `audit` command to the program. */
export function addAuditCommand(program: Command, terminal: Terminal): void {
  const audit = withOwnerOptions(program.command("audit"))
    .description("show who called what and how it ended; never arguments or results")
    .option("--device <name>", "only this device")
    .option("--grant <id>", "only this grant")
    .addOption(new Option("--outcome <outcome>", "only calls that ended like this").choices(OUTCOMES))
    .option("--since <when>", "a time such as 2026-11-30T12:00Z, or how long ago, such as 2h", parseSince)
    .option("--limit <n>", "rows at most (default: 100)", parseCount)
    .option("--follow", "go on and print rows as they arrive, until stopped")
    .addOption(new Option("--csv", "print CSV instead of a table").conflicts("json"))
    .addHelpText("after", "\nExamples:\n  longline audit --device workshop-pi --since 24h --csv > calls.csv\n  longline audit --follow")
    .action(async (options: AuditOptions) => await show(terminal, options));
  withOwnerOptions(audit.command("retention"))
    .description("show or set how many days rows are kept")
    .argument("[days]", "days to keep rows from now on", parseCount)
    .addHelpText("after", "\nExample:\n  longline audit retention 30")
    .action(async (days: number | undefined, options: OwnerOptions) => await retention(terminal, days, options));
}

function parseSince(text: string): number {
  if (/^\d{1,9}[smhdw]$/.test(text)) return Date.now() - parseDuration(text);
  const at = Date.parse(text);
  if (Number.isNaN(at) || at < 0) throw new InvalidArgumentError("Give a time such as 2026-11-30T12:00Z, or how long ago, such as 2h.");
  return at;
}

async function show(terminal: Terminal, options: AuditOptions): Promise<void> {
  const api = await connect(terminal, options);
  const first = await api.request(Answer, "GET", `/api/audit?${query(options, undefined)}`);
  const rows = options.follow === true ? first.rows.toReversed() : first.rows;
  print(terminal, options, rows, true);
  if (options.follow === true) await follow(terminal, api, options, first.newest);
}

function query({ device, grant, outcome, since, limit }: AuditOptions, after: number | undefined): string {
  const parameters = Object.entries({ device, grant, outcome, since, limit, after });
  return new URLSearchParams(
    parameters.flatMap(([name, value]): [string, string][] => (value === undefined ? [] : [[name, String(value)]])),
  ).toString();
}

async function follow(terminal: Terminal, api: OwnerApi, options: AuditOptions, newest: number): Promise<void> {
  using stop = listenForStop(terminal.env);
  let after = newest;
  while (await pause(stop.signal)) {
    const { rows, newest: next } = await api.request(Answer, "GET", `/api/audit?${query({ ...options, limit: CLI.followRows }, after)}`);
    after = next;
    if (rows.length > 0) print(terminal, options, rows, false);
  }
}

/** Waits for the next look; false when it was stopped. */
async function pause(signal: AbortSignal): Promise<boolean> {
  return await setTimeout(CLI.followMs, true, { signal }).catch(() => false);
}

/** `isFirst` prints headings; a follower's JSON is one row a line, everything else one array. */
function print(terminal: Terminal, options: AuditOptions, rows: readonly Row[], isFirst: boolean): void {
  if (options.json === true && options.follow === true) return rows.forEach((row) => printJson(terminal, row));
  if (options.json === true) return printJson(terminal, rows);
  if (options.csv === true) return terminal.out(formatCsv(isFirst ? AUDIT_COLUMNS : undefined, rows.map(auditCells)));
  if (rows.length === 0) return isFirst ? terminal.err("No rows yet.") : undefined;
  const table = formatTable(terminal, HEAD, rows.map(describe));
  terminal.out(isFirst ? table : table.slice(table.indexOf("\n") + 1));
}

const HEAD = ["TIME", "DEVICE", "WHO", "WHAT", "OUTCOME", "MS"];

function describe(row: Row): string[] {
  return [
    new Date(row.at).toISOString().slice(0, 19).replace("T", " "),
    row.device ?? "-",
    row.kind === "admin" ? (row.memberName ?? row.member ?? "-") : (row.label ?? row.grant ?? "-"),
    [row.method, row.target, row.attempts === null ? null : `(${row.attempts} times)`].filter((part) => part !== null).join(" ") || "-",
    row.reason === null ? row.outcome : `${row.outcome}: ${row.reason}`,
    row.durationMs === null ? "-" : String(row.durationMs),
  ];
}

async function retention(terminal: Terminal, days: number | undefined, options: OwnerOptions): Promise<void> {
  const api = await connect(terminal, options);
  const settings =
    days === undefined
      ? await api.request(SettingsAnswer, "GET", "/api/settings")
      : await api.request(SettingsAnswer, "PATCH", "/api/settings", { auditDays: days });
  if (options.json === true) return printJson(terminal, { auditDays: settings.auditDays });
  terminal.out(`Audit rows are kept for ${settings.auditDays} ${settings.auditDays === 1 ? "day" : "days"}.`);
}
