/** `longline agent install|uninstall`: a service that keeps the agent running; shown first, and written when it is agreed to. */
import { execFile } from "node:child_process";
import { access, chmod, mkdir, rm, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { InvalidArgumentError, Option, type Command } from "commander";
import { ApiError } from "../../errors.ts";
import { cleanText } from "../../policy/clean-text.ts";
import { writePrivateFile } from "../../serve/secret-file.ts";
import { findRelay } from "../connection.ts";
import { knownKey } from "../device-key.ts";
import { planService } from "../install/plan.ts";
import type { ServiceKind } from "../install/service.ts";
import { serviceKind, SYSTEMS, thisSystem, type System } from "../install/this-system.ts";
import { askLine } from "../prompt.ts";
import { defaultStateDir } from "../state-dir.ts";
import { printJson, type Terminal } from "../terminal.ts";
import { readOffer, withAgentOptions, type AgentCommandOptions } from "./agent.ts";

interface ServiceOptions {
  service: string;
  system?: System;
  yes?: boolean;
  start: boolean;
  json?: boolean;
}
type InstallOptions = AgentCommandOptions & ServiceOptions;

const DEFAULT_SERVICE = "longline-agent";

/** Adds both commands below `agent`. */
export function addInstallCommands(agent: Command, terminal: Terminal): void {
  withServiceOptions(withAgentOptions(agent.command("install")))
    .description("keep this agent running as a service of your user; shows it and asks before it writes anything")
    .option("--no-start", "write it without starting it")
    .argument("[command...]", "a stdio MCP server and its arguments, after --")
    .passThroughOptions()
    .addHelpText(
      "after",
      "\nExample:\n  longline agent install --relay https://relay.example --key-file device-key -- npx -y some-mcp-server",
    )
    .action(
      async (command: string[], _own: object, self: Command) => await install(terminal, command, self.optsWithGlobals<InstallOptions>()),
    );
  withServiceOptions(agent.command("uninstall"))
    .description("end and remove the service that `agent install` made")
    .option("--json", "print one JSON value on stdout and nothing else")
    .addHelpText("after", "\nExample:\n  longline agent uninstall --yes")
    .action(async (_own: object, self: Command) => await uninstall(terminal, self.optsWithGlobals<ServiceOptions>()));
}

function withServiceOptions(command: Command): Command {
  return command
    .option("--service <name>", "name of the service", parseServiceName, DEFAULT_SERVICE)
    .addOption(new Option("--system <system>", "kind of service (default: this machine's own)").choices(SYSTEMS))
    .option("--yes", "do not ask");
}

function parseServiceName(value: string): string {
  if (!/^[a-z0-9][a-z0-9-]{0,62}$/.test(value)) throw new InvalidArgumentError("Use lower-case letters, digits and hyphens.");
  return value;
}

async function install(terminal: Terminal, command: string[], options: InstallOptions): Promise<void> {
  const kind = serviceKind(terminal.env, options.system);
  const relay = await findRelay(terminal, options.relay);
  // Whatever is wrong with what is offered shows now and not in a log later.
  await readOffer(terminal, command, options, relay);
  const key = await keyFileFor(terminal, options, relay);
  const plan = planService(terminal, { name: options.service, relay, keyFile: key.path, options, command, self: ownCommand() });
  const path = kind.path(options.service);
  const text = kind.render(plan);
  const commands = options.start && isHere(terminal, options.system) ? kind.start(options.service) : [];
  terminal.err(`${path} (${kind.system}${kind.isTested ? "" : "; this kind was never tried on a real machine"}):\n`);
  for (const line of text.trimEnd().split("\n")) terminal.err(`  ${cleanText(line, Number.MAX_SAFE_INTEGER)}`);
  terminal.err(
    ["", ...commands.map((words) => `then: ${words.join(" ")}`), key.write === undefined ? "" : `and the key goes to ${key.path}`].join(
      "\n",
    ),
  );
  await agree(options, "Write it?");
  await key.write?.();
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, text, { encoding: kind.encoding, mode: kind.mode });
  await chmod(path, kind.mode);
  const problem = await runAll(commands);
  if (options.json === true) printJson(terminal, { service: options.service, path, started: commands.length > 0 && problem === undefined });
  if (problem !== undefined) throw notStarted(problem);
  terminal.err(`Written. ${kind.hint.replaceAll("NAME", options.service)} Remove it with: longline agent uninstall`);
}

async function uninstall(terminal: Terminal, options: ServiceOptions): Promise<void> {
  const kind = serviceKind(terminal.env, options.system);
  const path = kind.path(options.service);
  await access(path).catch(() => {
    throw new ApiError(
      "not_found",
      `There is no service ${options.service}: ${path} does not exist. Another name is given with --service.`,
    );
  });
  const here = isHere(terminal, options.system);
  terminal.err(`This ends the service ${options.service} and removes ${path}. The device key stays.`);
  await agree(options, "Remove it?");
  // A service that does not run cannot be ended, and is removed all the same.
  const problem = here ? await runAll(kind.stop(options.service)) : undefined;
  await rm(path);
  if (here) await runAll(kind.removed(options.service));
  if (problem !== undefined) terminal.err(`warning: it may still run (${problem}).`);
  if (options.json === true) printJson(terminal, { service: options.service, path, removed: true });
  else terminal.err("Removed.");
}

/** The file that holds the key; one that came from the environment is written beside the agent's state first. */
async function keyFileFor(terminal: Terminal, options: InstallOptions, relay: URL): Promise<{ path: string; write?: () => Promise<void> }> {
  const key = await knownKey(terminal, options, relay);
  if (key === undefined)
    throw new ApiError("not_authorised", "This machine has no device key yet. Start `longline agent` once to pair it, or pass --key-file.");
  if (options.keyFile !== undefined) return { path: resolve(terminal.cwd, options.keyFile) };
  if (key.keptIn !== undefined) return { path: key.keptIn };
  const directory = options.state === undefined ? defaultStateDir(terminal.env, key.deviceId) : resolve(terminal.cwd, options.state);
  const path = join(directory, "device-key");
  return {
    path,
    write: async () => {
      await mkdir(directory, { recursive: true, mode: 0o700 });
      await writePrivateFile(path, `${key.deviceKey}\n`);
    },
  };
}

/** How this program is started again: this Node, and the script it runs. */
function ownCommand(): string[] {
  return [process.execPath, resolve(process.argv[1] ?? "")];
}

function isHere(terminal: Terminal, system: System | undefined): boolean {
  return system === undefined || system === thisSystem(terminal.env);
}

async function agree(options: ServiceOptions, question: string): Promise<void> {
  if (options.yes === true) return;
  const elsewhere = "Nobody can be asked here. Look at it above, and pass --yes.";
  if (options.json === true) throw new ApiError("bad_request", elsewhere);
  if (!/^y(?:es)?$/i.test(await askLine(`${question} [y/N]`, elsewhere))) throw new ApiError("failed", "Nothing was changed.");
}

/** Runs the commands in order; the first that fails ends it, and is what comes back. */
async function runAll(commands: ReturnType<ServiceKind["start"]>): Promise<string | undefined> {
  for (const [program = "", ...args] of commands) {
    const failure = await promisify(execFile)(program, args).then(
      () => undefined,
      (error: unknown) => (error instanceof Error && "stderr" in error ? String(error.stderr) : "it could not be run"),
    );
    if (failure !== undefined) return cleanText(`${[program, ...args].join(" ")}: ${failure}`);
  }
  return undefined;
}

function notStarted(problem: string): ApiError {
  return new ApiError(
    "failed",
    `The service is written but did not start (${problem}). Start it by hand, or remove it: longline agent uninstall`,
  );
}
