/** The embedded relay and wrangler read the same bindings from `wrangler.toml`. */
import { join } from "node:path";
import { expect, test } from "vitest";
import { unstable_getMiniflareWorkerOptions, unstable_readConfig } from "wrangler";
import { storageBindings } from "../../src/serve/runtime.ts";
import { parseWorkerConfig, readWorkerConfig } from "../../src/serve/wrangler-config.ts";

const PATH = join(import.meta.dirname, "../../wrangler.toml");
const MINIMAL = 'name = "x"\nmain = "a.ts"\ncompatibility_date = "2026-08-01"\n';

test("bindings, dates and flags equal wrangler's own reading", async () => {
  const config = await readWorkerConfig(PATH);
  const storage = storageBindings(config);
  const { workerOptions: theirs, main } = unstable_getMiniflareWorkerOptions(PATH);
  expect(join(PATH, "..", config.main)).toBe(main);
  expect(theirs).toMatchObject({
    compatibilityDate: config.compatibilityDate,
    compatibilityFlags: config.compatibilityFlags,
    bindings: config.vars,
    durableObjects: storage.durableObjects,
  });
  const { d1_databases: d1, kv_namespaces: kv } = unstable_readConfig({ config: PATH });
  expect(config.databases).toEqual(
    d1.map((d: { binding: string; migrations_dir?: string }) => ({ binding: d.binding, migrationsDir: d.migrations_dir })),
  );
  expect(config.assets).toBe(unstable_readConfig({ config: PATH }).assets?.binding);
  expect(config.namespaces).toEqual(kv.map((k: { binding: string }) => k.binding));
});

test("the embedded relay knows every binding that wrangler finds", async () => {
  const config = await readWorkerConfig(PATH);
  const known = new Set(["bindings", "assets", ...Object.keys(storageBindings(config))]);
  const notBindings = new Set(["rootPath", "compatibilityDate", "compatibilityFlags", "modulesRules", "email"]);
  const { workerOptions } = unstable_getMiniflareWorkerOptions(PATH);
  const unknown = Object.entries(workerOptions).filter(([name, value]) => isFilled(value) && !known.has(name) && !notBindings.has(name));
  expect(unknown).toEqual([]);
});

test("a kind of binding that the embedded relay does not know is an error that names it", () => {
  expect(() => parseWorkerConfig(`${MINIMAL}[[queues.producers]]\nqueue = "q"\nbinding = "Q"\n`)).toThrow(/queues/);
  expect(() => parseWorkerConfig('name = "x"\n')).toThrow(/main/);
});

test("storage ids follow the binding, so that an account's database id does not hide local data", () => {
  const text = `${MINIMAL}[[d1_databases]]\nbinding = "DB"\ndatabase_name = "n"\ndatabase_id = "ID"\nmigrations_dir = "m"\n`;
  const ids = (id: string): unknown => storageBindings(parseWorkerConfig(text.replace("ID", id)));
  expect(ids("one")).toEqual(ids("two"));
  expect(ids("one")).toMatchObject({ d1Databases: { DB: "db" } });
});

function isFilled(value: unknown): boolean {
  return typeof value === "object" && value !== null && Object.keys(value).length > 0;
}
