/** Has workerd started through `workerd-watch.sh`, so that it ends with the relay's process, however that ends. */
import { accessSync, constants } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { z } from "zod";

const WorkerdModule = z.object({ default: z.string() });

/** Points miniflare at the watcher; it reads this variable each time it starts workerd. Nothing to do on Windows. */
export function watchWorkerd(root: string, log: (line: string) => void): void {
  const script = join(root, "src/serve/workerd-watch.sh");
  if (process.platform === "win32" || process.env["MINIFLARE_WORKERD_PATH"] === script) return;
  try {
    accessSync(script, constants.X_OK);
  } catch {
    log(`${script} cannot be executed: a killed relay would leave its runtime behind. Make it executable with chmod 755.`);
    return;
  }
  process.env["LONGLINE_WORKERD"] = process.env["MINIFLARE_WORKERD_PATH"] ?? workerdPath();
  process.env["MINIFLARE_WORKERD_PATH"] = script;
}

/** The workerd that miniflare itself would start. */
function workerdPath(): string {
  const fromHere = createRequire(import.meta.url);
  const fromMiniflare = createRequire(fromHere.resolve("miniflare"));
  return WorkerdModule.parse(fromMiniflare("workerd")).default;
}
