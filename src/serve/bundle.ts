/** The Worker as one module: bundled from source in a checkout, read from `dist/` in an installed package. */
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join, resolve } from "node:path";

/** Where a build leaves the Worker, relative to the package. */
export const BUILT_WORKER = "dist/worker.js";

/** The Worker's JavaScript; `main` is its entry, relative to the package. Source wins over a build, which may be older. */
export async function workerBundle(root: string, main: string): Promise<string> {
  const entry = resolve(root, main);
  return existsSync(entry) ? await bundleWorker(entry) : await readFile(join(root, BUILT_WORKER), "utf8");
}

/** Bundles the Worker as `wrangler deploy` does: platform modules stay imports, export conditions are workerd's. */
export async function bundleWorker(entry: string): Promise<string> {
  const { build } = await import("esbuild");
  const result = await build({
    entryPoints: [entry],
    bundle: true,
    write: false,
    format: "esm",
    target: "es2024",
    conditions: ["workerd", "worker", "browser"],
    external: ["cloudflare:*", "node:*"],
    jsx: "automatic",
    jsxImportSource: "hono/jsx",
    // Names of functions would be set at run time, each time a closure is made; nothing reads them.
    keepNames: false,
    legalComments: "none",
    // Comments of libraries are a sixth of it; names stay, for the frames of a logged error.
    minifyWhitespace: true,
    logLevel: "silent",
  });
  const [file] = result.outputFiles;
  if (file === undefined) throw new Error("the Worker's bundle is empty");
  return file.text;
}
