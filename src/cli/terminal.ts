/** Where a command reads its surroundings and writes its output: data on stdout, everything else on stderr. */

import { CLI } from "../limits.ts";

/** The surroundings of one command. */
export interface Terminal {
  env: Readonly<Record<string, string | undefined>>;
  cwd: string;
  /** Columns of the terminal behind stdout; undefined when stdout is a file or a pipe. */
  columns: number | undefined;
  /** Whether stdout takes colours: a terminal, and `NO_COLOR` is not set (no-color.org). */
  hasColor: boolean;
  /** Columns of the terminal behind stderr; undefined when it is a file or a pipe, or cannot rewrite a line. */
  errColumns?: number | undefined;
  /** Writes on stderr without a line break. */
  paint?: (text: string) => void;
  out(text: string): void;
  err(text: string): void;
}

/** The terminal of this process. */
export function processTerminal(): Terminal {
  const { env, stdout } = process;
  const noColor = env["NO_COLOR"] !== undefined && env["NO_COLOR"] !== "";
  return {
    env,
    cwd: process.cwd(),
    columns: stdout.isTTY ? stdout.columns : undefined,
    hasColor: stdout.isTTY && !noColor && env["TERM"] !== "dumb",
    errColumns: process.stderr.isTTY && env["TERM"] !== "dumb" ? process.stderr.columns || CLI.columns : undefined,
    paint: (text) => void process.stderr.write(text),
    out: (text) => void process.stdout.write(`${text}\n`),
    err: (text) => void process.stderr.write(`${text}\n`),
  };
}

/** Prints one JSON value on stdout, on one line. */
export function printJson(terminal: Terminal, value: unknown): void {
  terminal.out(JSON.stringify(value));
}
