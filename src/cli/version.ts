/** The version of this package. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { packageRoot } from "../serve/package-root.ts";

const PackageFile = z.looseObject({ version: z.string() });

/** The version in `package.json`. */
export function packageVersion(): string {
  return PackageFile.parse(JSON.parse(readFileSync(join(packageRoot(), "package.json"), "utf8"))).version;
}
