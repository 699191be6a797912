/**
 * Entry of the agent in one file (`/agent.mjs`): what a device needs, for Node 20 and newer, with nothing beside it.
 * Without the name of a command it is the agent.
 */
import type { Command } from "commander";
import { newProgram, runProgram } from "./command-line.ts";
import { addAgentCommand } from "./commands/agent.ts";
import { addInstallCommands } from "./commands/agent-install.ts";
import { addConnectCommand } from "./commands/connect.ts";
import { addDoctorCommand } from "./commands/doctor.ts";
import { completeNode20 } from "./node-20.ts";
import { processTerminal, type Terminal } from "./terminal.ts";

function buildAgentFile(terminal: Terminal): Command {
  const program = newProgram("agent.mjs", terminal);
  addInstallCommands(addAgentCommand(program, terminal, { isDefault: true }), terminal);
  addConnectCommand(program, terminal);
  addDoctorCommand(program, terminal);
  return program;
}

// A reader that left, such as `head`, ends the command quietly; a closed terminal takes no more lines.
process.stdout.on("error", () => process.exit(0));
process.stderr.on("error", () => undefined);

completeNode20();
const terminal = processTerminal();
const code = await runProgram(buildAgentFile(terminal), process.argv.slice(2), terminal);
process.stdout.write("", () => process.exit(code));
