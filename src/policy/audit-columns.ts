/** Columns of the audit as CSV, in order, for the command line and the console alike; names are those of the JSON. */
export const AUDIT_COLUMNS = [
  "at",
  "kind",
  "device",
  "grant",
  "label",
  "member",
  "memberName",
  "client",
  "clientVersion",
  "clientProtocol",
  "upstreamProtocol",
  "method",
  "target",
  "outcome",
  "reason",
  "durationMs",
  "bytesIn",
  "bytesOut",
  "callId",
  "attempts",
] as const;

/** The cells of one row. */
export function auditCells(row: Record<(typeof AUDIT_COLUMNS)[number], string | number | null>): string[] {
  return AUDIT_COLUMNS.map((column) => (column === "at" ? new Date(Number(row.at)).toISOString() : String(row[column] ?? "")));
}
