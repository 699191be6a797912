/** Which programs this machine has, so that a tool it cannot serve is not offered. */
import { accessSync, constants, statSync } from "node:fs";
import { delimiter, join } from "node:path";
import { findOnWindows } from "../upstreams/windows-command.ts";

/** What a built-in tool needs to know of the machine to say whether it works here. */
export interface ToolHost {
  platform: NodeJS.Platform;
  env: Readonly<Record<string, string | undefined>>;
  /** True when the program is in PATH. */
  has: (program: string) => boolean;
}

/** This machine. */
export function thisHost(): ToolHost {
  const { platform, env } = process;
  return { platform, env, has: (program) => isInPath(program, platform, env) };
}

function isInPath(program: string, platform: NodeJS.Platform, env: ToolHost["env"]): boolean {
  if (platform === "win32") return findOnWindows(program, { env, cwd: process.cwd(), isFile }) !== undefined;
  return (env["PATH"] ?? "")
    .split(delimiter)
    .filter((directory) => directory !== "")
    .some((directory) => isExecutable(join(directory, program)));
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return isFile(path);
  } catch {
    return false; // There is none.
  }
}
