/** A short chaos run whose faults are always the same ones; `npm run chaos` is the long one. */
import { expect, test } from "vitest";
import { runChaos } from "./chaos.ts";

test("calls of both eras survive cut and frozen links, killed agents and reset objects: answered, once, and nobody else's", async () => {
  const lines: string[] = [];
  const report = await runChaos({ seed: 20_260_728, ms: 20_000, withRelayRestarts: false, callers: 2, log: (line) => lines.push(line) });
  expect({ violations: report.violations, faults: lines }).toEqual({ violations: [], faults: lines });
  expect(report.answered).toBeGreaterThan(0);
  expect(report.faults).toBeGreaterThan(0);
});
