/**
 * Reads what the embedded runtime needs from `wrangler.toml`, the one source of bindings. Strict: a kind of binding
 * that is not known here is an error, because a relay that starts without it would fail later and elsewhere.
 */
import { readFile } from "node:fs/promises";
import { parse } from "smol-toml";
import { z } from "zod";

const Migration = z.strictObject({ tag: z.string(), new_sqlite_classes: z.array(z.string()).default([]) });

const WranglerFile = z.strictObject({
  name: z.string(),
  main: z.string(),
  compatibility_date: z.string(),
  compatibility_flags: z.array(z.string()).default([]),
  vars: z.record(z.string(), z.string()).default({}),
  durable_objects: z
    .strictObject({ bindings: z.array(z.strictObject({ name: z.string(), class_name: z.string() })) })
    .default({ bindings: [] }),
  migrations: z.array(Migration).default([]),
  d1_databases: z
    .array(z.strictObject({ binding: z.string(), database_name: z.string(), database_id: z.string(), migrations_dir: z.string() }))
    .default([]),
  kv_namespaces: z.array(z.strictObject({ binding: z.string(), id: z.string() })).default([]),
  assets: z.strictObject({ directory: z.string(), binding: z.string(), run_worker_first: z.literal(true) }).optional(),
  // What follows only concerns Cloudflare.
  $schema: z.unknown().optional(),
  account_id: z.unknown().optional(),
  minify: z.unknown().optional(),
  send_metrics: z.unknown().optional(),
  build: z.unknown().optional(),
  observability: z.unknown().optional(),
  placement: z.unknown().optional(),
  route: z.unknown().optional(),
  routes: z.unknown().optional(),
  workers_dev: z.unknown().optional(),
  preview_urls: z.unknown().optional(),
});

/** The Worker as `wrangler.toml` describes it, without what only Cloudflare needs. */
export interface WorkerConfig {
  /** Entry file, relative to the package. */
  main: string;
  compatibilityDate: string;
  compatibilityFlags: string[];
  vars: Record<string, string>;
  /** Durable Object bindings: binding name, class, and whether the class keeps SQLite. */
  objects: { binding: string; className: string; sqlite: boolean }[];
  /** D1 bindings and the directory of their migrations, relative to the package. */
  databases: { binding: string; migrationsDir: string }[];
  /** KV binding names. */
  namespaces: string[];
  /** Binding of the files beside the Worker. */
  assets: string | undefined;
}

/** Parses the text of `wrangler.toml`; throws with the path of what is wrong. */
export function parseWorkerConfig(text: string): WorkerConfig {
  const parsed = WranglerFile.safeParse(parse(text));
  if (!parsed.success) throw new Error(`wrangler.toml: ${z.prettifyError(parsed.error)}`);
  const file = parsed.data;
  const sqlite = new Set(file.migrations.flatMap((m) => m.new_sqlite_classes));
  return {
    main: file.main,
    compatibilityDate: file.compatibility_date,
    compatibilityFlags: file.compatibility_flags,
    vars: file.vars,
    objects: file.durable_objects.bindings.map((b) => ({ binding: b.name, className: b.class_name, sqlite: sqlite.has(b.class_name) })),
    databases: file.d1_databases.map((d) => ({ binding: d.binding, migrationsDir: d.migrations_dir })),
    namespaces: file.kv_namespaces.map((k) => k.binding),
    assets: file.assets?.binding,
  };
}

/** Reads and parses `wrangler.toml`. */
export async function readWorkerConfig(path: string): Promise<WorkerConfig> {
  return parseWorkerConfig(await readFile(path, "utf8"));
}
