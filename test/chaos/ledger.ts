/** What each call was told, held against how often it ran. */
import { readFileSync } from "node:fs";

/** What became of a call as its client saw it. */
export type Fate =
  /** Its own result, whole. */
  | { kind: "answered" }
  /** A failure of ours, or an error of the device, by JSON-RPC. */
  | { kind: "failed"; reason: string; outcome: "not_started" | "unknown" }
  /** The client ended its connection, or the relay's process did. */
  | { kind: "gone"; why: "left" | "died" }
  /** Anything that a client must never see: another's answer, no answer, an HTTP error. */
  | { kind: "wrong"; what: string };

export interface Entry {
  key: string;
  caller: string;
  ms: number;
  fate: Fate;
}

export interface Report {
  calls: number;
  answered: number;
  failed: Record<string, number>;
  gone: number;
  violations: string[];
}

export class Ledger {
  readonly #entries: Entry[] = [];

  add(entry: Entry): void {
    this.#entries.push(entry);
  }

  get size(): number {
    return this.#entries.length;
  }

  /** Compares with the counts that the upstreams left in `file`. */
  check(file: string): Report {
    const counts = new Map<string, number>();
    for (const key of readFileSync(file, "utf8")
      .split("\n")
      .filter((line) => line !== ""))
      counts.set(key, (counts.get(key) ?? 0) + 1);
    const report: Report = { calls: this.#entries.length, answered: 0, failed: {}, gone: 0, violations: [] };
    for (const entry of this.#entries) this.#checkOne(report, entry, counts.get(entry.key) ?? 0);
    const known = new Set(this.#entries.map((entry) => entry.key));
    for (const key of counts.keys()) if (!known.has(key)) report.violations.push(`${key} ran and nobody called it`);
    return report;
  }

  #checkOne(report: Report, { key, caller, ms, fate }: Entry, count: number): void {
    const blame = (what: string): void => {
      report.violations.push(`${key} (${caller}, ${ms} ms): ${what}; it ran ${count} times`);
    };
    if (count > 1) blame(`${fate.kind}, but ran more than once`);
    switch (fate.kind) {
      case "answered":
        report.answered += 1;
        if (count !== 1) blame("answered, but did not run exactly once");
        return;
      case "failed": {
        const label = `${fate.reason}/${fate.outcome}`;
        report.failed[label] = (report.failed[label] ?? 0) + 1;
        if (fate.outcome === "not_started" && count !== 0) blame(`said not_started (${fate.reason})`);
        return;
      }
      case "gone":
        report.gone += 1;
        return;
      case "wrong":
        blame(fate.what);
    }
  }
}
