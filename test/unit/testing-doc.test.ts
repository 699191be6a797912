/** docs/testing.md names every rule, and nothing that is not there. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const ROOT = join(import.meta.dirname, "../..");
const page = readFileSync(join(ROOT, "docs/testing.md"), "utf8");
const proofs = [...page.matchAll(/`(test\/[^`]+\.test\.ts)` “([^”]+)”/g)].map(([, file = "", text = ""]) => ({ file, text }));
const LAST_RULE = 142;

test("every rule has a row with a proof", () => {
  const rows = new Map([...page.matchAll(/^\| (R\d+) \| .+ \| (.+) \|$/gm)].map(([, rule = "", proof = ""]) => [rule, proof]));
  for (let n = 1; n <= LAST_RULE; n += 1) expect(rows.get(`R${n}`), `R${n}`).toMatch(/`test\/.+` “.+”/);
  expect(rows.size).toBe(LAST_RULE);
});

test("every test it names exists", () => {
  expect(proofs.length).toBeGreaterThan(LAST_RULE);
  for (const { file, text } of proofs) {
    expect(existsSync(join(ROOT, file)), file).toBe(true);
    expect(readFileSync(join(ROOT, file), "utf8").includes(text), `${file}: ${text}`).toBe(true);
  }
  for (const [, file = ""] of page.matchAll(/`((?:test|docs)\/[\w./-]+\.\w+)`/g)) expect(existsSync(join(ROOT, file)), file).toBe(true);
});

test("R61: nothing on a call's path fetches an address", () => {
  for (const directory of ["src/mcp", "src/policy", "src/tunnel", "durable"]) {
    for (const name of readdirSync(join(ROOT, directory))) {
      const source = readFileSync(join(ROOT, directory, name), "utf8");
      expect(/(?<![\w.])fetch\((?!request: Request\))/.test(source), `${directory}/${name}`).toBe(false);
    }
  }
});
