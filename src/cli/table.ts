/**
 * Tables that fit the terminal: the widest column gives way first, and no cell goes below a readable width. The first
 * column is never cut: it is the name or id that other commands take.
 */
import { CLI } from "../limits.ts";
import { cleanText } from "../agent/clean-text.ts";
import type { Terminal } from "./terminal.ts";

const GAP = "  ";
const MIN_WIDTH = 8;

const graphemes = new Intl.Segmenter(undefined, { granularity: "grapheme" });

/** The characters of a text as a person counts them. */
function characters(text: string): string[] {
  return Array.from(graphemes.segment(text), ({ segment }) => segment);
}

/** Lays out rows under their headings; every cell is foreign text and is made safe. Empty when there are no rows. */
export function formatTable(
  terminal: Pick<Terminal, "columns" | "hasColor">,
  head: readonly string[],
  rows: readonly (readonly string[])[],
): string {
  const cells = rows.map((row) => row.map((cell) => cleanText(cell)));
  const natural = head.map((title, i) => Math.max(title.length, ...cells.map((row) => characters(row[i] ?? "").length)));
  const widths = fitWidths(natural, terminal.columns ?? CLI.columns);
  const title = line(head, widths);
  return [terminal.hasColor ? `\u001b[1m${title}\u001b[0m` : title, ...cells.map((row) => line(row, widths))].join("\n");
}

/** Narrows the widest columns but the first until the row fits, as far as the smallest readable width allows. */
export function fitWidths(natural: readonly number[], columns: number): number[] {
  const widths = [...natural];
  let over = widths.reduce((sum, width) => sum + width, GAP.length * (widths.length - 1)) - columns;
  for (; over > 0; over -= 1) {
    const widest = Math.max(...widths.slice(1));
    if (widest <= MIN_WIDTH) break;
    widths[widths.indexOf(widest, 1)] = widest - 1;
  }
  return widths;
}

function line(row: readonly string[], widths: readonly number[]): string {
  return row
    .map((cell, i) => fit(cell, widths[i] ?? 0))
    .join(GAP)
    .trimEnd();
}

/** A cell cut or filled to a width. */
function fit(cell: string, width: number): string {
  const all = characters(cell);
  if (all.length > width) return `${all.slice(0, width - 1).join("")}…`;
  return cell + " ".repeat(width - all.length);
}
