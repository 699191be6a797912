/** CSV (RFC 4180) of foreign text: cells are cleaned and quoted, and none can start a formula in a spreadsheet. */
import { cleanText } from "./clean-text.ts";

/** Characters with which spreadsheets begin a formula; a tab or a full-width form counts too once it is trimmed or folded. */
const FORMULA = /^[\s\uFEFF]*[=+\-@\t\r\uFF1D\uFF0B\uFF0D\uFF20]/;

/** Rows as CSV without a last line break; `head` first when it is given. */
export function formatCsv(head: readonly string[] | undefined, rows: readonly (readonly string[])[]): string {
  return [...(head === undefined ? [] : [head]), ...rows].map((row) => row.map(csvCell).join(",")).join("\r\n");
}

/** One cell. A number is left as it is, so that it still counts as one. */
export function csvCell(text: string): string {
  if (/^-?\d+(?:\.\d+)?$/.test(text)) return text;
  const clean = cleanText(text, Number.MAX_SAFE_INTEGER);
  const safe = FORMULA.test(clean) ? `'${clean}` : clean;
  return /[",\r\n']/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
