/** One relay per data directory: a lock file that also says where the relay listens. */
import { join } from "node:path";
import { holderOf, lockProcess, type ProcessLock } from "../agent/process-lock.ts";

/** The file in the data directory; there, alive or not, it is a sign that Longline has used the directory. */
export const LOCK_FILE = "lock";

/** Locks the directory for this process; an `ApiError` names the process that has it. */
export function lockDataDir(dir: string): ProcessLock {
  return lockProcess(
    join(dir, LOCK_FILE),
    ({ pid }) => `${dir} is in use by another Longline relay (process ${pid}). Stop it, or choose another directory with --data.`,
  );
}

/** The address of the relay that runs on this data directory, if one does. */
export function runningRelay(dir: string): string | undefined {
  return holderOf(join(dir, LOCK_FILE))?.url;
}
