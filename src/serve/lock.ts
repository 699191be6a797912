/**
 * One relay per data directory: a lock file with the process id and, once it listens, the relay's address. A lock left
 * by a killed relay is taken over. The process id alone can lie (in a container every start may get the same one), so
 * on Linux the start time of the process counts as well.
 */
import { readFileSync } from "node:fs";
import { link, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { ApiError } from "../errors.ts";
import { isNotFound, systemCode, writePrivateFile } from "./secret-file.ts";

const LOCK = "lock";

const LockFile = z.object({ pid: z.int().positive(), started: z.string().optional(), url: z.string().optional() });
type LockFile = z.infer<typeof LockFile>;

/** The lock of this process on a data directory. */
export interface DataLock {
  /** True when a relay that did not stop in order held the directory before. */
  tookOver: boolean;
  /** Tells other commands where the relay listens. */
  publish(url: string): Promise<void>;
  release(): Promise<void>;
}

/** Locks the directory for this process; an `ApiError` names the process that has it. */
export async function lockDataDir(dir: string): Promise<DataLock> {
  const path = join(dir, LOCK);
  const mine: LockFile = { pid: process.pid, started: startOf(process.pid) };
  let tookOver = false;
  while (!(await create(path, mine))) {
    const text = await readFile(path, "utf8").catch(notThere);
    if (text === undefined) continue;
    const holder = parseLock(text);
    if (holder !== undefined && isAlive(holder)) {
      throw new ApiError(
        "failed",
        `${dir} is in use by another Longline relay (process ${holder.pid}). Stop it, or choose another directory with --data.`,
      );
    }
    await removeStale(path, text);
    tookOver = true;
  }
  return {
    tookOver,
    publish: async (url) => await writePrivateFile(path, JSON.stringify({ ...mine, url })),
    release: async () => await rm(path, { force: true }),
  };
}

/** The address of the relay that runs on this data directory, if one does. */
export async function runningRelay(dir: string): Promise<string | undefined> {
  const text = await readFile(join(dir, LOCK), "utf8").catch(notThere);
  const holder = text === undefined ? undefined : parseLock(text);
  return holder !== undefined && isAlive(holder) ? holder.url : undefined;
}

/** True when the directory holds a lock, alive or not: a sign that Longline has used it. */
export const LOCK_FILE = LOCK;

/** Creates the file with its content in one step: a reader never sees it half written. */
async function create(path: string, lock: LockFile): Promise<boolean> {
  const draft = `${path}.${process.pid}.new`;
  await writeFile(draft, JSON.stringify(lock), { mode: 0o600 });
  try {
    await link(draft, path);
    return true;
  } catch (error) {
    if (systemCode(error) === "EEXIST") return false;
    throw error;
  } finally {
    await rm(draft, { force: true });
  }
}

/** Removes a stale lock; when another start replaced it meanwhile, puts that one back. */
async function removeStale(path: string, text: string): Promise<void> {
  const aside = `${path}.${process.pid}.stale`;
  await rename(path, aside).catch(notThere);
  const moved = await readFile(aside, "utf8").catch(notThere);
  if (moved !== undefined && moved !== text) await link(aside, path).catch(() => undefined);
  await rm(aside, { force: true });
}

function parseLock(text: string): LockFile | undefined {
  try {
    return LockFile.parse(JSON.parse(text));
  } catch {
    // A lock nobody can read names no process that could hold the directory.
    return undefined;
  }
}

function isAlive(holder: LockFile): boolean {
  if (holder.pid === process.pid) return holder.started !== undefined && holder.started === startOf(process.pid);
  try {
    process.kill(holder.pid, 0);
  } catch (error) {
    // EPERM: it lives, under another user.
    if (systemCode(error) !== "EPERM") return false;
  }
  const started = startOf(holder.pid);
  return holder.started === undefined || started === undefined || holder.started === started;
}

/** Start time of a process in clock ticks since boot, where the system tells it (proc(5), stat field 22). */
function startOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The command name may contain spaces and brackets; fields are counted after its closing one.
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
  } catch {
    // Not Linux, or no such process.
    return undefined;
  }
}

function notThere(error: unknown): undefined {
  if (isNotFound(error)) return undefined;
  throw error;
}
