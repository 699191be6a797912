/** A `longline` command line: settings shared by every program, and how failures become one line and an exit code. */
import { Command, CommanderError } from "commander";
import { ApiError } from "../errors.ts";
import { EXIT, exitCodeOf } from "./exit-codes.ts";
import type { Terminal } from "./terminal.ts";
import { packageVersion } from "./version.ts";

/** A program without commands. Settings come first: commander copies them to each subcommand as it is made. */
export function newProgram(name: string, terminal: Terminal): Command {
  return new Command(name)
    .description("Remote access to the MCP tools on a device that only dials out.")
    .version(packageVersion(), "--version", "print the version")
    .enablePositionalOptions()
    .exitOverride()
    .configureOutput({
      writeOut: (text) => terminal.out(text.trimEnd()),
      writeErr: (text) => terminal.err(redact(text.trimEnd())),
      outputError: (text, write) => write(`longline: ${oneLine(text)}`),
      ...(terminal.columns === undefined ? {} : { getOutHelpWidth: () => terminal.columns ?? 0 }),
    });
}

/** Runs one command line on a program and gives the exit code. */
export async function runProgram(program: Command, argv: readonly string[], terminal: Terminal): Promise<number> {
  try {
    await program.parseAsync(argv, { from: "user" });
    return EXIT.ok;
  } catch (error) {
    // Commander has printed its message already.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
    terminal.err(`longline: ${redact(oneLine(messageOf(error, terminal)))}`);
    return exitCodeOf(error);
  }
}

/** Only messages made for people are shown; LONGLINE_DEBUG adds the stack of an unexpected one. */
function messageOf(error: unknown, terminal: Terminal): string {
  if (error instanceof ApiError) return error.message;
  if (error instanceof Error && terminal.env["LONGLINE_DEBUG"] === "1") return error.stack ?? error.message;
  return "Something unexpected went wrong. Run it again with LONGLINE_DEBUG=1 to see what.";
}

function oneLine(text: string): string {
  return text
    .replace(/^error: /, "")
    .trim()
    .replace(/\s*\n\s*/g, " ");
}

/** SECURITY: a mistyped option is quoted in its error, and its value may be a secret. */
function redact(text: string): string {
  return text.replace(/\bll[a-z]_[\w-]+/g, "[secret]").replace(/\beyJ[\w-]+\.[\w-]+\.[\w-]*/g, "[secret]");
}
