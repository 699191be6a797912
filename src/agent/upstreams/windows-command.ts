/**
 * How a command is started on Windows: found through PATH and PATHEXT, and, when it is a batch file, given to cmd.exe
 * with every argument quoted so that cmd.exe takes it literally. Pure. Untested on a real Windows machine.
 *
 * A batch file's arguments are parsed by cmd.exe twice, as a line and again where the file says `%*`. Both times only
 * double quotes hide `& | < > ^`, so quotes stay closed around an argument: an inner one is doubled. `%` is not
 * hidden by quotes; `%%cd:~,%` is a `%` followed by a variable cut to nothing.
 */
import { win32 } from "node:path";
import { variable } from "./environment.ts";

export interface WindowsHost {
  env: Readonly<Record<string, string | undefined>>;
  /** Directory that a command with a path is relative to. */
  cwd: string;
  isFile(path: string): boolean;
}

/** What `spawn` is given. `isVerbatim`: the arguments are a command line already. */
export interface SpawnPlan {
  file: string;
  args: string[];
  isVerbatim: boolean;
}

/** A command that cannot be started as it was given; the text is for a person. */
export class CommandError extends Error {
  override readonly name = "CommandError";
}

const DEFAULT_PATHEXT = ".COM;.EXE;.BAT;.CMD";
const BATCH = /\.(?:bat|cmd)$/i;

/** Resolves and quotes a command. Throws CommandError. */
export function windowsPlan(command: string, args: readonly string[], host: WindowsHost): SpawnPlan {
  const file = findOnWindows(command, host);
  if (file === undefined) throw new CommandError(`The command ${JSON.stringify(command)} was not found.`);
  if (!BATCH.test(file)) return { file, args: [...args], isVerbatim: false };
  const shell =
    variable(host.env, "COMSPEC", "win32") ?? win32.join(variable(host.env, "SYSTEMROOT", "win32") ?? "C:\\Windows", "System32", "cmd.exe");
  const line = [`"${batchPath(file)}"`, ...args.map(quoteForBatch)].join(" ");
  // /d: no AutoRun; /e:on: `%cd:~,%` works; /v:off: `!` is literal; /s: only the outermost quotes are taken off.
  return { file: shell, args: ["/d", "/e:on", "/v:off", "/s", "/c", `"${line}"`], isVerbatim: true };
}

/** The file a command names: with a path as it is, else in PATH, never in the current directory; each with PATHEXT. */
export function findOnWindows(command: string, host: WindowsHost): string | undefined {
  const extensions = (variable(host.env, "PATHEXT", "win32") ?? DEFAULT_PATHEXT)
    .split(";")
    .filter((ext) => ext.startsWith("."))
    .map((ext) => ext.toLowerCase());
  const isComplete = extensions.some((ext) => command.toLowerCase().endsWith(ext));
  const names = isComplete ? [command, ...extensions.map((ext) => command + ext)] : extensions.map((ext) => command + ext);
  const hasPath = /[\\/]/.test(command) || win32.isAbsolute(command);
  const directories = hasPath ? [host.cwd] : pathDirectories(variable(host.env, "PATH", "win32") ?? "");
  for (const directory of directories) {
    for (const name of names) {
      const path = win32.resolve(directory, name);
      if (host.isFile(path)) return path;
    }
  }
  return undefined;
}

function pathDirectories(path: string): string[] {
  // An empty or relative entry would mean the current directory.
  return path
    .split(";")
    .map((entry) => entry.trim().replaceAll('"', ""))
    .filter((entry) => win32.isAbsolute(entry));
}

function batchPath(path: string): string {
  if (path.includes('"')) throw new CommandError("A batch file's path cannot contain a quote.");
  return path.replaceAll("%", "%%cd:~,%");
}

/** One argument as cmd.exe and the C runtime both read it back. Throws CommandError for what no quoting can carry. */
export function quoteForBatch(arg: string): string {
  // oxlint-disable-next-line no-control-regex -- these end cmd.exe's line
  if (/[\u0000\r\n]/.test(arg)) throw new CommandError("A batch file cannot be given an argument with a line break.");
  // A backslash before a quote, or at the end, would escape the quote for the C runtime: such runs are doubled.
  const escaped = arg.replaceAll(/(\\*)"/g, '$1$1""').replace(/(\\+)$/, "$1$1");
  return `"${escaped.replaceAll("%", "%%cd:~,%")}"`;
}
