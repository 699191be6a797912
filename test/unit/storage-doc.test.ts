/** docs/storage.md names every table that there is. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const ROOT = join(import.meta.dirname, "../..");

function tablesIn(text: string): string[] {
  const dropped = new Set([...text.matchAll(/DROP TABLE (\w+)/g)].map(([, name]) => name));
  const made = [...text.matchAll(/CREATE TABLE (?:IF NOT EXISTS )?(\w+)/g)].map(([, name = ""]) => name);
  return made.filter((name) => !dropped.has(name));
}

test("every table of D1 and of the device's object is explained", () => {
  const migrations = readdirSync(join(ROOT, "migrations")).map((name) => readFileSync(join(ROOT, "migrations", name), "utf8"));
  const tables = [...migrations, readFileSync(join(ROOT, "durable/schema.ts"), "utf8")].flatMap(tablesIn);
  expect(tables.length).toBeGreaterThan(20);
  const doc = readFileSync(join(ROOT, "docs/storage.md"), "utf8");
  expect(tables.filter((table) => !doc.includes(`\`${table}\``))).toEqual([]);
});
