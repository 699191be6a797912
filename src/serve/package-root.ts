/** Finds the files that ship beside the code: `wrangler.toml`, `migrations/`, and the Worker. */
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";

/** The directory that holds `wrangler.toml`, from this file upwards; the same from source and from a build. */
export function packageRoot(): string {
  for (let at = import.meta.dirname; ; at = dirname(at)) {
    if (existsSync(join(at, "wrangler.toml"))) return at;
    if (dirname(at) === at) throw new Error("wrangler.toml is missing: install Longline again");
  }
}
