/**
 * One agent per state directory: two would share a journal, and each would answer for calls of the other. The lock is
 * a file with the process id; on Linux the start time of the process counts as well, because in a container every
 * start may get the same id. A lock left by a killed agent is taken over.
 */
import { closeSync, linkSync, openSync, readFileSync, renameSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { ApiError } from "../errors.ts";

interface Holder {
  pid: number;
  started: string;
}

/** Locks the directory for this process and returns what releases it. An `ApiError` names the process that has it. */
export function lockState(stateDir: string): () => void {
  const path = join(stateDir, "lock");
  const mine = `${process.pid} ${startOf(process.pid)}\n`;
  for (let tries = 0; tries < 10; tries += 1) {
    if (create(path, mine)) return () => release(path, mine);
    const text = read(path);
    if (text === undefined) continue;
    const holder = parse(text);
    if (holder !== undefined && isAlive(holder)) {
      throw new ApiError(
        "failed",
        `Another agent (process ${holder.pid}) runs with the state directory ${stateDir}. Stop it, or give this one its own with --state.`,
      );
    }
    removeStale(path, text);
  }
  throw new ApiError("failed", `The lock in ${stateDir} changes all the time: several agents start with one state directory.`);
}

/** True while an agent runs with the directory. */
export function isStateLocked(stateDir: string): boolean {
  const text = read(join(stateDir, "lock"));
  const holder = text === undefined ? undefined : parse(text);
  return holder !== undefined && isAlive(holder);
}

/** Creates the file with its content in one step: nobody ever reads half of it. */
function create(path: string, content: string): boolean {
  const draft = `${path}.${process.pid}.new`;
  const file = openSync(draft, "w", 0o600);
  writeSync(file, content);
  closeSync(file);
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

function release(path: string, mine: string): void {
  if (read(path) === mine) rmSync(path, { force: true });
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined; // Gone since.
  }
}

/** Undefined for a lock that names no process: nobody could hold the directory by it. */
function parse(text: string): Holder | undefined {
  const [, pid, started] = /^(\d{1,10}) (\S+)\n$/.exec(text) ?? [];
  return pid === undefined || started === undefined ? undefined : { pid: Number(pid), started };
}

function isAlive({ pid, started }: Holder): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    // EPERM: it lives, under another user.
    if (codeOf(error) !== "EPERM") return false;
  }
  const now = startOf(pid);
  return started === UNKNOWN || now === UNKNOWN ? true : started === now;
}

const UNKNOWN = "?";

/** Start time of a process in clock ticks since boot, where the system tells it (proc(5), stat field 22). */
function startOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The command name may contain spaces and brackets; fields are counted after its closing one.
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? UNKNOWN;
  } catch {
    return UNKNOWN; // Not Linux, or no such process.
  }
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}
