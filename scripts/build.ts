/** Builds what a package needs in `dist/`: the Worker for the embedded relay, and the command as plain JavaScript. */
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { build } from "esbuild";
import { BUILT_WORKER, bundleWorker } from "../src/serve/bundle.ts";
import { packageRoot } from "../src/serve/package-root.ts";
import { readWorkerConfig } from "../src/serve/wrangler-config.ts";

const root = packageRoot();
const dist = join(root, "dist");
await rm(dist, { recursive: true, force: true });
await mkdir(dist);

const { main } = await readWorkerConfig(join(root, "wrangler.toml"));
await writeFile(join(root, BUILT_WORKER), await bundleWorker(join(root, main)));

await import("./build-agent.ts");

// Dependencies stay packages: they are installed beside it.
await build({
  entryPoints: { cli: join(root, "src/cli/main.ts") },
  outdir: dist,
  bundle: true,
  splitting: true,
  platform: "node",
  format: "esm",
  target: "node22.18",
  packages: "external",
  logLevel: "warning",
});
console.log(`Built ${dist}`);
