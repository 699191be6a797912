/** Finds the name that somebody meant. Pure. */
import { CONFIG } from "../../limits.ts";

/** The known name that is only a slip away; undefined when none is. */
export function closest(name: string, known: readonly string[]): string | undefined {
  const [best] = known
    .map((candidate) => ({ candidate, slips: distance(name.toLowerCase(), candidate.toLowerCase()) }))
    .filter(({ candidate, slips }) => slips <= CONFIG.slips && slips < candidate.length)
    .toSorted((a, b) => a.slips - b.slips);
  return best?.candidate;
}

/** Letters to add, drop or change (Levenshtein). */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (const [i, letter] of a.split("").entries()) {
    const next = [i + 1];
    for (const [j, other] of b.split("").entries())
      next.push(Math.min((next[j] ?? 0) + 1, (row[j + 1] ?? 0) + 1, (row[j] ?? 0) + (letter === other ? 0 : 1)));
    row = next;
  }
  return row[b.length] ?? 0;
}
