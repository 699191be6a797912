/** The `longline` command: its subcommands, and how their failures become one line and an exit code. */
import { Command, CommanderError } from "commander";
import { ApiError } from "../errors.ts";
import { addAgentCommand } from "./commands/agent.ts";
import { addAuditCommand } from "./commands/audit.ts";
import { addDeployCommands } from "./commands/deploy.ts";
import { addConnectCommand } from "./commands/connect.ts";
import { addDeviceCommands } from "./commands/device.ts";
import { addInviteCommands } from "./commands/invite.ts";
import { addKeysCommand } from "./commands/keys.ts";
import { addMemberCommands } from "./commands/member.ts";
import { addOriginCommands } from "./commands/origin.ts";
import { addOwnerCommands } from "./commands/owner.ts";
import { addServeCommand } from "./commands/serve.ts";
import { addStartCommand } from "./commands/start.ts";
import { addStatusCommand } from "./commands/status.ts";
import { addTokenCommands } from "./commands/token.ts";
import { EXIT, exitCodeOf } from "./exit-codes.ts";
import type { Terminal } from "./terminal.ts";
import { packageVersion } from "./version.ts";

/** All subcommands on one program. Settings come first: commander copies them to each subcommand as it is made. */
export function buildProgram(terminal: Terminal): Command {
  const program = new Command("longline")
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
  addServeCommand(program, terminal);
  addAgentCommand(program, terminal);
  addConnectCommand(program, terminal);
  addDeviceCommands(program, terminal);
  addTokenCommands(program, terminal);
  addInviteCommands(program, terminal);
  addMemberCommands(program, terminal);
  addOwnerCommands(program, terminal);
  addOriginCommands(program, terminal);
  addKeysCommand(program, terminal);
  addAuditCommand(program, terminal);
  addStatusCommand(program, terminal);
  addDeployCommands(program, terminal);
  addStartCommand(program, terminal);
  return program.addHelpText(
    "after",
    "\nExample:\n  longline serve\n\n`longline COMMAND --help` shows each command's options and an example.",
  );
}

/** Runs one command line and gives the exit code. */
export async function run(argv: readonly string[], terminal: Terminal): Promise<number> {
  try {
    await buildProgram(terminal).parseAsync(argv, { from: "user" });
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
