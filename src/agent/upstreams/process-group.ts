/** How the agent starts and ends programs: no shell, a process group of its own, everything in it ended together. */
import { spawn, type SpawnOptions } from "node:child_process";
import { statSync } from "node:fs";
import { CommandError, windowsPlan, type SpawnPlan } from "./windows-command.ts";

/**
 * What every program is started with, for `spawn`. Throws CommandError on Windows when there is no such command.
 * `isVerbatim`: on Windows, the arguments are a command line already.
 */
export function planProgram(
  command: string,
  args: readonly string[],
  options: { env: Readonly<Record<string, string>>; cwd?: string | undefined; isVerbatim?: boolean | undefined },
): SpawnPlan & { options: SpawnOptions } {
  const isWindows = process.platform === "win32";
  const plan =
    isWindows && options.isVerbatim !== true
      ? windowsPlan(command, args, { env: options.env, cwd: options.cwd ?? process.cwd(), isFile })
      : { file: command, args: [...args], isVerbatim: options.isVerbatim === true };
  return {
    ...plan,
    options: {
      shell: false,
      detached: !isWindows,
      windowsHide: true,
      windowsVerbatimArguments: plan.isVerbatim,
      env: { ...options.env },
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    },
  };
}

/** Signals a whole group, named by its leader. On Windows the tree is ended, whatever the signal. */
export function signalGroup(pid: number | undefined, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  if (process.platform === "win32") {
    spawn("taskkill.exe", ["/pid", String(pid), "/t", "/f"], { stdio: "ignore", windowsHide: true }).on("error", () => undefined);
    return;
  }
  try {
    process.kill(-pid, signal);
  } catch {
    // ESRCH: nobody is left in the group.
  }
}

/** Why a program could not be started, for a person: what was thrown at once, or came as an event. */
export function startProblem(command: string, error: unknown, cwd?: string): string {
  if (error instanceof CommandError) return error.message;
  const name = JSON.stringify(command);
  const code = error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "unknown error";
  if (code === "ENOENT" && cwd !== undefined && !isDirectory(cwd)) return `The working directory ${JSON.stringify(cwd)} does not exist.`;
  if (code === "ENOENT") return `The command ${name} was not found.`;
  if (code === "EACCES") return `The command ${name} may not be executed.`;
  return `The command ${name} could not be started (${code}).`;
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}
