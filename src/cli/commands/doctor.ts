/** `longline doctor`: finds out what keeps this machine's agent from working, and says what to do about it. */
import { resolve } from "node:path";
import type { Command } from "commander";
import { ApiError } from "../../errors.ts";
import { cleanText } from "../../policy/clean-text.ts";
import { caFileOption, useCaFile } from "../ca-file.ts";
import { findRelay, relayOption } from "../connection.ts";
import { knownKey, type KnownKey } from "../device-key.ts";
import { failed, ok, warning, type Finding } from "../doctor/finding.ts";
import { checkNodeVersion, checkProgram, checkStateDir } from "../doctor/local-checks.ts";
import { checkRelay } from "../doctor/relay-checks.ts";
import { checkUpstreams } from "../doctor/upstream-checks.ts";
import { defaultStateDir } from "../state-dir.ts";
import { printJson, type Terminal } from "../terminal.ts";
import { packageVersion } from "../version.ts";
import { ALIAS, findConfig, readOffer, type AgentCommandOptions, type Offer } from "./agent.ts";

/** Adds the `doctor` command to the program. */
export function addDoctorCommand(program: Command, terminal: Terminal): void {
  program
    .command("doctor")
    .description("check what an agent on this machine needs, and say what to do; takes the agent's own options")
    .addOption(relayOption())
    .option("--key-file <file>", "file that holds the device key (or LONGLINE_DEVICE_KEY); without a key only the relay is checked")
    .option("--pair-as <name>", "the name this machine was paired under")
    .option("--config <file>", "check what this file offers (default: longline.toml beside the key)")
    .option("--upstream <url>", "check this Streamable HTTP server too")
    .option("--upstream-headers <file>", "headers for it")
    .option("--demo", "check the harmless tools")
    .option("--state <dir>", "the agent's state directory")
    .addOption(caFileOption())
    .option("--json", "print one JSON value on stdout and nothing else")
    .argument("[command...]", "a stdio MCP server to check too, after --")
    .passThroughOptions()
    .addHelpText(
      "after",
      "\nExamples:\n  longline doctor --relay https://relay.example --key-file device-key" +
        "\n  longline doctor --relay https://relay.example -- npx -y @modelcontextprotocol/server-everything stdio",
    )
    .action(async (words: string[], options: AgentCommandOptions) => await doctor(terminal, words, options));
}

async function doctor(terminal: Terminal, words: string[], options: AgentCommandOptions): Promise<void> {
  await useCaFile(terminal, options.caFile);
  const relay = await findRelay(terminal, options.relay);
  const findings = [checkNodeVersion(process.versions.node), ...(await checkRelay(relay))];
  const key = await keyOf(terminal, options, relay, findings);
  if (key !== undefined) {
    const stateDir = options.state === undefined ? defaultStateDir(terminal.env, key.deviceId) : resolve(terminal.cwd, options.state);
    findings.push(await checkStateDir(stateDir));
    if (findings.some(({ check, state }) => check === "health" && state === "ok")) {
      const { checkKey } = await import("../doctor/key-checks.ts");
      findings.push(...(await checkKey(relay, key.deviceKey, stateDir)));
    }
  }
  findings.push(...(await offered(terminal, words, options, relay)));
  report(terminal, findings, options.json === true);
}

/** The key, unless there is none; one that cannot be used is a finding. */
async function keyOf(terminal: Terminal, options: AgentCommandOptions, relay: URL, findings: Finding[]): Promise<KnownKey | undefined> {
  try {
    return await knownKey(terminal, options, relay);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    findings.push(failed("key", error.message, "`longline device add NAME` makes a device and its key."));
    return undefined;
  }
}

/** What the agent would offer: the configuration can be read, the program is there, and each server answers. */
async function offered(terminal: Terminal, words: string[], options: AgentCommandOptions, relay: URL): Promise<Finding[]> {
  const [program] = words;
  const offer = await offerOf(terminal, words, options, relay);
  if (offer === undefined) return [];
  if ("check" in offer) return [offer];
  const { config, configPath, upstreams } = offer;
  const read = configPath === undefined ? [] : [ok("config", configPath)];
  const warnings = (config?.warnings ?? []).map((text) => warning("config", text, "docs/agent.md says what belongs there."));
  const found = program === undefined ? undefined : await checkProgram(terminal.env, program);
  const tried = found?.state === "failed" ? upstreams.filter(({ alias }) => alias !== ALIAS) : upstreams;
  return [
    ...read,
    ...warnings,
    ...(found === undefined ? [] : [found]),
    ...(await checkUpstreams(tried, packageVersion())),
    ...(config === undefined ? [] : await toolFindings()),
  ];
}

/** Undefined when nothing is offered, which a machine that only has a relay does. */
async function offerOf(
  terminal: Terminal,
  words: string[],
  options: AgentCommandOptions,
  relay: URL,
): Promise<Offer | Finding | undefined> {
  const isNamed = words.length > 0 || options.upstream !== undefined || options.demo === true || options.config !== undefined;
  try {
    return isNamed || (await findConfig(terminal, options, relay)) !== undefined
      ? await readOffer(terminal, words, options, relay)
      : undefined;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    // A key that is none is a finding already, and a configuration beside it cannot be found.
    if (error.code === "not_authorised") return undefined;
    // A mistake of this command line is not one of the machine's.
    if (options.config === undefined) throw error;
    return failed("config", error.message, "The lines above say where; docs/agent.md shows each key.");
  }
}

/** Built-in tools that this machine lacks something for. Whether they are wanted is nobody's to say here. */
async function toolFindings(): Promise<Finding[]> {
  const { builtinAvailability } = await import("../../agent/tools/builtin-tools.ts");
  const missing = builtinAvailability().filter(({ available }) => !available);
  return missing.map(({ tool, reason, advice }) => ({ check: "tool", state: "skipped", message: `${tool}: ${reason}`, advice }));
}

const MARKS = { ok: "ok     ", warning: "warning", failed: "FAILED ", skipped: "skipped" } as const;

function report(terminal: Terminal, findings: readonly Finding[], asJson: boolean): void {
  const broken = findings.filter(({ state }) => state === "failed").length;
  if (asJson) printJson(terminal, { ok: broken === 0, findings });
  else for (const finding of findings) terminal.out(lineOf(finding));
  if (broken > 0) throw new ApiError("failed", `${broken} ${broken === 1 ? "thing keeps" : "things keep"} this from working.`);
}

function lineOf({ check, state, message, advice }: Finding): string {
  const line = `${MARKS[state]}  ${check.padEnd(9)}  ${cleanText(message)}`;
  return advice === undefined ? line : `${line}\n${" ".repeat(20)}-> ${cleanText(advice)}`;
}
