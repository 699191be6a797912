/** The official conformance suite, through a real relay, a real agent and a server of both eras over stdio. */
import { expect, test } from "vitest";
import { startProcess } from "../support/processes.ts";

const RUN = new URL("../conformance/run.ts", import.meta.url).pathname;
const WITHIN_MS = 400_000;

test("every check of the official suite passes, at every version", { timeout: WITHIN_MS }, async () => {
  const run = startProcess(process.execPath, [RUN]);
  const { code } = await run.ended(WITHIN_MS - 10_000);
  // docs/testing.md says why it is 80 at 2025-11-25.
  expect(run.output.stdout.trim().split("\n"), run.output.stderr).toEqual([
    "2025-03-26: 1 scenarios, 3/3 checks, 0 warnings",
    "2025-06-18: 27 scenarios, 56/56 checks, 0 warnings",
    "2025-11-25: 33 scenarios, 80/80 checks, 0 warnings",
    "2026-07-28: 40 scenarios, 152/152 checks, 0 warnings",
    "conformance through stdio: 291 passed, 0 failed",
  ]);
  expect(code).toBe(0);
});
