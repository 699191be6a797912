/** Objects of one class share an isolate, and the platform refuses a timer, promise or storage of one inside another. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const ROOT = join(import.meta.dirname, "../..");
/** What a module may make once for all objects: it keeps nothing from one use to the next. */
const STATELESS = /^(?:export )?const \w+ = new Text(?:En|De)coder\(/;

test("no module that objects run keeps a variable, a table, a promise or a timer of its own", () => {
  for (const directory of ["durable", "src/tunnel", "src/policy", "src/db"]) {
    for (const name of readdirSync(join(ROOT, directory))) {
      const source = readFileSync(join(ROOT, directory, name), "utf8");
      const kept = source
        .split("\n")
        .filter((line) => /^(?:export )?(?:let|var) |^(?:export )?const [^(]*=\s*(?:new |set(?:Timeout|Interval)\(|Promise\.)/.test(line));
      const mutable = kept.filter((line) => !STATELESS.test(line) && !/: Readonly(?:Map|Set)|new (?:Set|Map)(?:<[^>]*>)?\(\[/.test(line));
      expect(mutable, `${directory}/${name}`).toEqual([]);
    }
  }
});
