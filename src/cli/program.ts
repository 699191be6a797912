/** The `longline` command and its subcommands. */
import type { Command } from "commander";
import { newProgram, runProgram } from "./command-line.ts";
import { addAgentCommand } from "./commands/agent.ts";
import { addInstallCommands } from "./commands/agent-install.ts";
import { addAuditCommand } from "./commands/audit.ts";
import { addDeployCommands } from "./commands/deploy.ts";
import { addConnectCommand } from "./commands/connect.ts";
import { addDeviceCommands } from "./commands/device.ts";
import { addDoctorCommand } from "./commands/doctor.ts";
import { addInviteCommands } from "./commands/invite.ts";
import { addKeysCommand } from "./commands/keys.ts";
import { addMemberCommands } from "./commands/member.ts";
import { addOriginCommands } from "./commands/origin.ts";
import { addOwnerCommands } from "./commands/owner.ts";
import { addServeCommand } from "./commands/serve.ts";
import { addStartCommand } from "./commands/start.ts";
import { addStatusCommand } from "./commands/status.ts";
import { addTokenCommands } from "./commands/token.ts";
import type { Terminal } from "./terminal.ts";

/** All subcommands on one program. */
export function buildProgram(terminal: Terminal): Command {
  const program = newProgram("longline", terminal);
  addServeCommand(program, terminal);
  addInstallCommands(addAgentCommand(program, terminal), terminal);
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
  addDoctorCommand(program, terminal);
  addStartCommand(program, terminal);
  return program.addHelpText(
    "after",
    "\nExample:\n  longline serve\n\n`longline COMMAND --help` shows each command's options and an example.",
  );
}

/** Runs one command line and gives the exit code. */
export async function run(argv: readonly string[], terminal: Terminal): Promise<number> {
  return await runProgram(buildProgram(terminal), argv, terminal);
}
