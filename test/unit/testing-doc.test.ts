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

/** Rows of the tables whose first cell begins with such a name, with their last cell. */
function rowsOf(name: RegExp): Map<string, string> {
  const rows = [...page.matchAll(/^\| (\w+)(?: [^|]*)? \|.* (.+) \|$/gm)].filter(([, first = ""]) => name.test(first));
  const named = new Map(rows.map(([row, first = ""]) => [first, row]));
  expect(named.size, "a name has one row").toBe(rows.length);
  return named;
}

test("every point that the official suite does not look at has a row with a proof", () => {
  const points = Array.from({ length: 26 }, (_, n) => `S${n + 1}`);
  const rows = rowsOf(/^S\d+$/);
  expect([...rows.keys()]).toEqual(points);
  for (const [name, row] of rows) expect(row, name).toMatch(/`test\/.+` “.+”/);
});

test("every report from the field on identity, sessions and the HTTP surface has a row with a proof", () => {
  // Numbers have gaps: what is missing was a duplicate.
  const groups = {
    identity: [1, 3, 4, 5, 6, 7],
    sessions: [20, 21, 22, 23, 24, 25, 26, 30],
    http: [31, 32, 33, 35, 36, 38, 39, 40, 41, 42, 43, 44, 45, 46],
  };
  const rows = rowsOf(/^[BC]\d+$/);
  for (const number of Object.values(groups).flat()) expect(rows.get(`B${number}`), `B${number}`).toMatch(/`test\/.+` “.+”/);
  for (const [name, row] of rows) expect(row, name).toMatch(/`test\/.+` “.+”|`npm run |not tried/);
});

test("every test it names exists", () => {
  expect(proofs.length).toBeGreaterThan(LAST_RULE);
  for (const { file, text } of proofs) {
    expect(existsSync(join(ROOT, file)), file).toBe(true);
    expect(readFileSync(join(ROOT, file), "utf8").includes(text), `${file}: ${text}`).toBe(true);
  }
  for (const [, file = ""] of page.matchAll(/`((?:test|docs)\/[\w./-]+\.\w+)`/g)) expect(existsSync(join(ROOT, file)), file).toBe(true);
});

test("every report about the link, about agents and tool servers, and from the code of others has a row that proves it or says why not", () => {
  const rows = new Map([...page.matchAll(/^\| ([BC]\d+) .+? \| (.+) \|$/gm)].map(([, report = "", proof = ""]) => [report, proof]));
  const link = [8, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19].map((n) => `B${n}`);
  const agents = [47, 48, 50].map((n) => `B${n}`);
  const code = Array.from({ length: 12 }, (_none, n) => `C${n + 1}`);
  for (const report of [...link, ...agents, ...code]) expect(rows.get(report), report).toMatch(/`test\/.+` “.+”|`npm run chaos`|not tried/);
});

test("R61: nothing on a call's path fetches an address", () => {
  for (const directory of ["src/mcp", "src/policy", "src/tunnel", "durable"]) {
    for (const name of readdirSync(join(ROOT, directory))) {
      const source = readFileSync(join(ROOT, directory, name), "utf8");
      expect(/(?<![\w.])fetch\((?!request: Request\))/.test(source), `${directory}/${name}`).toBe(false);
    }
  }
});
