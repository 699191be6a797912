/** The guard that an old Node meets first. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { transform } from "esbuild";
import { expect, test } from "vitest";
import { startProcess } from "../support/processes.ts";

const ROOT = join(import.meta.dirname, "../..");
const GUARD = join(ROOT, "scripts/check-node.cjs");
const { isTooOld } = createRequire(import.meta.url)(GUARD) as { isTooOld: (version: string) => boolean };

test("knows which Node runs TypeScript by itself", () => {
  for (const version of ["4.9.1", "12.22.12", "18.20.0", "20.20.2", "22.17.1", "23.5.0"])
    expect([version, isTooOld(version)]).toEqual([version, true]);
  for (const version of ["22.18.0", "23.6.0", "24.0.0", "24.21.0", "26.0.0"])
    expect([version, isTooOld(version)]).toEqual([version, false]);
});

test("what runs before the guard can be parsed by an old Node", async () => {
  for (const file of [GUARD, join(ROOT, "bin/longline.cjs")]) {
    const text = readFileSync(file, "utf8");
    // Nothing has to be rewritten for the oldest Node that knows `import()`.
    const [old, asItIs] = await Promise.all([transform(text, { target: "node12.20" }), transform(text, { target: "esnext" })]);
    expect(old.code).toBe(asItIs.code);
  }
});

test("says so in one line and ends with 1", async () => {
  const script = `Object.defineProperty(process.versions, "node", { value: "20.20.2" }); require(${JSON.stringify(join(ROOT, "bin/longline.cjs"))});`;
  const run = startProcess(process.execPath, ["-e", script, "status"]);
  expect((await run.ended()).code).toBe(1);
  expect(run.output.stdout).toBe("");
  expect(run.output.stderr).toMatch(/^longline: this is Node 20\.20\.2, and Longline needs 22\.18 or newer\.[^\n]*\n$/);
});
