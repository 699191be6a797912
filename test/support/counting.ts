/** The counting upstream: which calls ran, and how often. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const SERVER = join(import.meta.dirname, "../fixtures/upstream/counting.mjs");

export interface Counting {
  /** Arguments of `longline agent` that offer it. */
  args: string[];
  /** How often the call with this key ran. */
  runs: (key: string) => number;
}

/** A counting upstream whose counts are kept in a file of this directory. */
export function counting(dir: string, era: "modern" | "legacy" | "both" = "both"): Counting {
  const file = join(dir, `counts-${era}`);
  writeFileSync(file, "");
  return {
    args: ["--", process.execPath, SERVER, file, era],
    runs: (key) =>
      readFileSync(file, "utf8")
        .split("\n")
        .filter((line) => line === key).length,
  };
}
