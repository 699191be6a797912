/** Durations as people type them, and points in time as people read them. */
import { InvalidArgumentError } from "commander";

const SECOND = 1000;
const UNITS = new Map([
  ["s", SECOND],
  ["m", 60 * SECOND],
  ["h", 3600 * SECOND],
  ["d", 24 * 3600 * SECOND],
  ["w", 7 * 24 * 3600 * SECOND],
]);

/** `90s`, `30m`, `12h`, `7d` or `2w` in ms. */
export function parseDuration(text: string): number {
  const match = /^(\d{1,9})([smhdw])$/.exec(text.trim());
  const ms = Number(match?.[1]) * (UNITS.get(match?.[2] ?? "") ?? Number.NaN);
  if (!Number.isSafeInteger(ms) || ms <= 0) throw new InvalidArgumentError("Give a number and a unit: 90s, 30m, 12h, 7d or 2w.");
  return ms;
}

/** How long ago, or how long until, for a table: `now`, `5m ago`, `in 7d`; `never` for null. */
export function relativeTime(at: number | null | undefined, now: number): string {
  if (at === null || at === undefined) return "never";
  const distance = Math.abs(at - now);
  const [unit, ms] = [...UNITS].toReversed().find(([name, size]) => name !== "w" && distance >= size) ?? ["s", SECOND];
  const count = Math.floor(distance / ms);
  if (count === 0) return "now";
  return at < now ? `${count}${unit} ago` : `in ${count}${unit}`;
}

/** An epoch ms time as ISO 8601 to the minute, in UTC. */
export function isoMinute(at: number): string {
  return `${new Date(at).toISOString().slice(0, 16)}Z`;
}
