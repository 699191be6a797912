/** Tells when a file changed, also when an editor replaced it. Its directory is watched, as the file may come and go. */
import { watch, type FSWatcher } from "node:fs";
import { basename, dirname } from "node:path";
import { CONFIG } from "../../limits.ts";

export interface FileWatch {
  close(): void;
}

/** Calls back once things are quiet after a change; `failed` once when the directory cannot be watched. */
export function watchFile(path: string, changed: () => void, failed: () => void): FileWatch {
  let timer: NodeJS.Timeout | undefined;
  let watcher: FSWatcher | undefined;
  const name = basename(path);
  const close = () => {
    clearTimeout(timer);
    watcher?.close();
  };
  try {
    watcher = watch(dirname(path), { persistent: false }, (_event, file) => {
      // Some systems do not say which file it was.
      if (file !== null && file !== name) return;
      clearTimeout(timer);
      timer = setTimeout(changed, CONFIG.settleMs);
    });
    watcher.on("error", () => {
      close();
      failed();
    });
  } catch {
    failed();
  }
  return { close };
}
