/**
 * One process per directory: a lock file with the process id and, on Linux, the start time of the process, because in
 * a container every start may get the same id. A lock left by a killed process is taken over. Node only.
 */
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { z } from "zod";
import { ApiError } from "../errors.ts";

const Holder = z.object({ pid: z.int().positive(), started: z.string().optional(), url: z.string().optional() });
/** What a lock file says of the process that has it. `url` is where it listens, once it told. */
export type Holder = z.infer<typeof Holder>;

/** A lock that this process has. */
export interface ProcessLock {
  /** True when a process that did not stop in order had it before. */
  tookOver: boolean;
  /** Tells other processes where this one listens. */
  publish(url: string): void;
  release(): void;
}

/** Starts that may meet on one stale lock before it counts as a fault. */
const MAX_TRIES = 10;
/** Paths locked by this process: its own id proves nothing where start times are not known. */
const mine = new Set<string>();

/** Takes the lock. An `ApiError` with the text of `inUse` when a living process has it. */
export function lockProcess(path: string, inUse: (holder: Holder) => string): ProcessLock {
  const started = startOf(process.pid);
  let content = JSON.stringify({ pid: process.pid, ...(started === undefined ? {} : { started }) } satisfies Holder);
  let tookOver = false;
  for (let tries = 0; !create(path, content); tries += 1) {
    if (tries === MAX_TRIES) throw new ApiError("failed", `The lock ${path} changes all the time: several processes start at once.`);
    const text = read(path);
    if (text === undefined) continue;
    const holder = parse(text);
    if (holder !== undefined && isAlive(holder, path)) throw new ApiError("failed", inUse(holder));
    removeStale(path, text);
    tookOver = true;
  }
  mine.add(path);
  return {
    tookOver,
    publish: (url) => {
      content = JSON.stringify({ ...(JSON.parse(content) as Holder), url });
      const draft = draftOf(path, content);
      renameSync(draft, path);
    },
    release: () => {
      mine.delete(path);
      if (read(path) === content) rmSync(path, { force: true });
    },
  };
}

/** The living process that has a lock, as far as it can be read. */
export function holderOf(path: string): Holder | undefined {
  try {
    const holder = parse(read(path) ?? "");
    return holder !== undefined && isAlive(holder, path) ? holder : undefined;
  } catch {
    return undefined; // Not ours to read: it names nobody to us.
  }
}

/** Creates the file with its content in one step: nobody ever reads half of it. */
function create(path: string, content: string): boolean {
  const draft = draftOf(path, content);
  try {
    linkSync(draft, path);
    return true;
  } catch (error) {
    if (codeOf(error) === "EEXIST") return false;
    throw error;
  } finally {
    rmSync(draft, { force: true });
  }
}

function draftOf(path: string, content: string): string {
  const draft = `${path}.${process.pid}.new`;
  writeFileSync(draft, content, { mode: 0o600 });
  return draft;
}

/** Removes a stale lock; when another start replaced it meanwhile, puts that one back. */
function removeStale(path: string, text: string): void {
  const aside = `${path}.${process.pid}.stale`;
  try {
    renameSync(path, aside);
    if (readFileSync(aside, "utf8") !== text) linkSync(aside, path);
  } catch {
    // Somebody else was quicker, and the next look shows who.
  } finally {
    rmSync(aside, { force: true });
  }
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

/** Undefined for a lock that names no process: nobody could hold anything by it. */
function parse(text: string): Holder | undefined {
  try {
    return Holder.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}

function isAlive({ pid, started }: Holder, path: string): boolean {
  if (pid === process.pid) return mine.has(path);
  try {
    process.kill(pid, 0);
  } catch (error) {
    // EPERM: it lives, under another user.
    if (codeOf(error) !== "EPERM") return false;
  }
  const now = startOf(pid);
  return started === undefined || now === undefined || started === now;
}

/** Start time of a process in clock ticks since boot, where the system tells it (proc(5), stat field 22). */
function startOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The command name may contain spaces and brackets; fields are counted after its closing one.
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
  } catch {
    return undefined; // Not Linux, or no such process.
  }
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}
