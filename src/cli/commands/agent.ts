/** `longline agent`: offers MCP tools on this machine through a relay. */
import { dirname, resolve } from "node:path";
import { Option, type Command, type CommandOptions } from "commander";
import type { LoadedConfig } from "../../agent/config/load-config.ts";
import type { AgentEvent, DoneCode, Isolation, UpstreamConfig } from "../../agent/types.ts";
import { ApiError } from "../../errors.ts";
import { AgentScreen } from "../agent-screen.ts";
import { listenToTerminal } from "../agent-terminal.ts";
import { caFileOption, useCaFile } from "../ca-file.ts";
import { findRelay, relayOption } from "../connection.ts";
import { deviceKeyFor, readKey } from "../device-key.ts";
import { parseHeaders, readSecretText } from "../headers-file.ts";
import { defaultStateDir, pairedKeyPath } from "../state-dir.ts";
import { listenForStop } from "../stop-signals.ts";
import { printJson, type Terminal } from "../terminal.ts";
import { packageVersion } from "../version.ts";
import { stopCalls } from "./stop-calls.ts";

/** The one upstream of a command line has no name of its own. */
export const ALIAS = "default";

/** Options of `longline agent`, as far as other commands share them. */
export interface AgentCommandOptions {
  relay?: string;
  keyFile?: string;
  config?: string;
  pairAs?: string;
  upstream?: string;
  upstreamHeaders?: string;
  demo?: boolean;
  isolation?: Isolation;
  state?: string;
  caFile?: string;
  takeover?: boolean;
  json?: boolean;
  stopAll?: boolean;
  resume?: boolean;
}

/** Adds the `agent` command to the program. */
export function addAgentCommand(program: Command, terminal: Terminal, as: CommandOptions = {}): Command {
  return withAgentOptions(program.command("agent", as))
    .description("offer an MCP server on this machine through a relay; needs no open port")
    .argument("[command...]", "a stdio MCP server and its arguments, after --")
    .passThroughOptions()
    .addHelpText(
      "after",
      "\nExamples:\n  longline agent --relay https://relay.example --key-file device-key -- npx -y @modelcontextprotocol/server-everything stdio" +
        "\n  longline agent --relay https://relay.example --key-file device-key --upstream http://127.0.0.1:3000/mcp",
    )
    .action(async (command: string[], options: AgentCommandOptions) => await agent(terminal, command, options));
}

/** The options that say which device this is and what it offers. */
export function withAgentOptions(command: Command): Command {
  return command
    .addOption(relayOption())
    .option("--key-file <file>", "file that holds the device key (or LONGLINE_DEVICE_KEY)")
    .option("--pair-as <name>", "without a key: the name to be paired under (default: this machine's)")
    .option("--config <file>", "what to offer and what to allow (default: longline.toml beside the key); read again when it changes")
    .option("--upstream <url>", "offer a Streamable HTTP server instead of a command")
    .option("--upstream-headers <file>", "headers for it, such as its own credentials: `Name: value` lines, or a JSON object")
    .option("--demo", "offer a few harmless tools instead of a server of your own")
    .addOption(
      new Option("--isolation <how>", "one server per grant, or one for all (default: grant for a command, shared for a URL)").choices([
        "grant",
        "shared",
      ]),
    )
    .option("--state <dir>", "directory for the installation id and the journal of calls")
    .option("--stop-all", "end all calls of the agents on this machine and refuse new ones, also after a restart, until --resume")
    .option("--resume", "let calls run again")
    .addOption(caFileOption())
    .option("--takeover", "take the device over from another machine that has the same key")
    .option("--json", "print state, device and mcpUrl as one JSON value when the device is online");
}

async function agent(terminal: Terminal, command: string[], options: AgentCommandOptions): Promise<void> {
  if (options.stopAll === true || options.resume === true)
    return stopCalls(terminal, options.stopAll === true ? "stop" : "resume", options.state);
  using stop = listenForStop(terminal.env);
  const relay = await findRelay(terminal, options.relay);
  await useCaFile(terminal, options.caFile);
  const { upstreams, beside, config, configPath } = await readOffer(terminal, command, options, relay);
  const key = await deviceKeyFor(terminal, options, relay, stop.signal).catch((error: unknown) => {
    // Asked to stop while it waited to be paired.
    if (stop.signal.aborted) return undefined;
    throw error;
  });
  if (key === undefined) return;
  const { deviceKey, deviceId } = key;
  const { runAgent } = await import("../../agent/run-agent.ts");
  const stateDir = stateDirOf(terminal, options, deviceId);
  const screen = new AgentScreen(terminal);
  const asker = listenToTerminal(screen, stateDir);
  const handle = await runAgent({
    relay,
    deviceKey,
    stateDir,
    ...(asker === undefined ? {} : { asker }),
    upstreams,
    ...(config === undefined ? {} : { policy: config.policy }),
    takeover: options.takeover === true,
    version: packageVersion(),
    log: reporter(terminal, screen, options.json === true),
  });
  const { followAgentConfig } = await import("../agent-config.ts");
  const follower =
    config && configPath !== undefined ? followAgentConfig(terminal, configPath, { first: config, beside, handle }) : undefined;
  stop.onReload = follower && (() => follower.reload());
  // A program that started this agent over IPC, and ended, has no more use for it.
  process.once("disconnect", () => void handle.stop("parent_ended"));
  void stop.stopped.then(async () => await handle.stop("signal"));
  const { code, message } = await handle.done;
  follower?.close();
  asker?.close();
  screen.close();
  const failure = failureOf(code);
  if (failure === undefined) return;
  const hint = failure === "not_authorised" && key.keptIn !== undefined ? ` To pair this machine again, remove ${key.keptIn} first.` : "";
  throw new ApiError(failure, `${message}${hint}`);
}

/** What an end of the agent means for the exit code; undefined when it was asked to stop. */
function failureOf(code: DoneCode): "not_authorised" | "failed" | undefined {
  if (code === "stopped") return undefined;
  return code === "not_authorised" || code === "revoked" ? "not_authorised" : "failed";
}

/** What happens, for a person; with `--json`, one value on stdout when the device is online for the first time. */
function reporter(terminal: Terminal, screen: AgentScreen, json: boolean): (event: AgentEvent) => void {
  let announced = false;
  return (event) => {
    screen.event(event);
    if (event.type !== "online" || announced) return;
    announced = true;
    if (json) printJson(terminal, { state: "online", device: event.device, mcpUrl: event.mcpUrl });
  };
}

/** What an agent offers: the configuration file's part, if there is one, and the command line's. */
export interface Offer {
  upstreams: UpstreamConfig[];
  beside: UpstreamConfig[];
  config: LoadedConfig | undefined;
  configPath: string | undefined;
}

/** Reads what the agent is to offer. An `ApiError` says what is wrong with it, or that it is nothing. */
export async function readOffer(terminal: Terminal, command: string[], options: AgentCommandOptions, relay: URL): Promise<Offer> {
  const beside = await besideConfig(terminal, command, options);
  // Loaded when needed: the other commands start faster without it.
  const { checkAliases, readAgentConfig } = await import("../agent-config.ts");
  const configPath = await findConfig(terminal, options, relay);
  const config = configPath === undefined ? undefined : await readAgentConfig(terminal, configPath);
  const upstreams = [...(config?.upstreams ?? []), ...beside];
  if (upstreams.length === 0)
    throw usage(`Say what to offer: a command after --, or --upstream URL, or --demo, or a configuration file (docs/agent.md).`);
  if (configPath !== undefined) checkAliases(upstreams, configPath);
  return { upstreams, beside, config, configPath };
}

/** The server of the command line, if it names one. */
async function besideConfig(terminal: Terminal, command: string[], options: AgentCommandOptions): Promise<UpstreamConfig[]> {
  if (command.length > 0 || options.upstream !== undefined || options.demo === true)
    return [await readUpstream(terminal, command, options)];
  if (options.upstreamHeaders !== undefined) throw usage("--upstream-headers needs --upstream.");
  if (options.isolation !== undefined)
    throw usage("--isolation is about the server of the command line; in a configuration file it is a key.");
  return [];
}

/** The file that was named, else the one beside the key; a key that is in no file has the state directory. */
export async function findConfig(terminal: Terminal, options: AgentCommandOptions, relay: URL): Promise<string | undefined> {
  if (options.config !== undefined) return resolve(terminal.cwd, options.config);
  const { configIn } = await import("../agent-config.ts");
  if (options.keyFile !== undefined) return await configIn(dirname(resolve(terminal.cwd, options.keyFile)));
  const key = terminal.env["LONGLINE_DEVICE_KEY"]?.trim() ?? "";
  if (key === "") return await configIn(dirname(pairedKeyPath(terminal.env, relay, options.pairAs)));
  return await configIn(stateDirOf(terminal, options, readKey(key).deviceId));
}

function stateDirOf(terminal: Terminal, options: AgentCommandOptions, deviceId: string): string {
  return options.state === undefined ? defaultStateDir(terminal.env, deviceId) : resolve(terminal.cwd, options.state);
}

async function readUpstream(terminal: Terminal, command: string[], options: AgentCommandOptions): Promise<UpstreamConfig> {
  const [program, ...args] = command;
  const given = [program, options.upstream, options.demo].filter((way) => way !== undefined).length;
  if (given !== 1) throw usage("Say what to offer: a command after --, or --upstream URL, or --demo; exactly one of them.");
  if (options.upstreamHeaders !== undefined && options.upstream === undefined) throw usage("--upstream-headers needs --upstream.");
  const isolation = options.isolation === undefined ? {} : { isolation: options.isolation };
  if (program !== undefined) return { kind: "stdio", alias: ALIAS, command: program, args, ...isolation };
  if (options.upstream === undefined) return await demoUpstream();
  const url = URL.canParse(options.upstream) ? new URL(options.upstream) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) throw usage("--upstream must look like http://127.0.0.1:3000/mcp.");
  if (url.username !== "" || url.password !== "")
    throw usage("Put the upstream's credentials into a file and pass it with --upstream-headers.");
  const file = options.upstreamHeaders;
  const headers = file === undefined ? {} : { headers: parseHeaders(await readSecretText(resolve(terminal.cwd, file), warnOn(terminal))) };
  return { kind: "http", alias: ALIAS, url, ...headers, ...isolation };
}

async function demoUpstream(): Promise<UpstreamConfig> {
  const { demoTools } = await import("../../agent/tools/demo.ts");
  return { kind: "builtin", alias: ALIAS, tools: demoTools() };
}

function warnOn(terminal: Terminal): (text: string) => void {
  return (text) => terminal.err(`warning: ${text}`);
}

function usage(message: string): ApiError {
  return new ApiError("bad_request", message);
}
