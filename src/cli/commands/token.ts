/** `longline token create|list|revoke`: what people may do on a device, each as a token of their own. */
import type { Command } from "commander";
import { connect, withOwnerOptions, type OwnerOptions } from "../connection.ts";
import { parseCount } from "../numbers.ts";
import type { TokenRow } from "../owner-api.ts";
import { collect, collectNames } from "../patterns.ts";
import { formatTable } from "../table.ts";
import { printJson, type Terminal } from "../terminal.ts";
import { isoMinute, parseDuration, relativeTime } from "../times.ts";
import { addTokenChanges } from "./token-change.ts";

interface CreateOptions extends OwnerOptions {
  device: string;
  for: string;
  tools?: string[];
  resources?: string[];
  prompts?: string[];
  expires?: number;
  callsPerMinute?: number;
  inFlight?: number;
  parked?: number;
  listeners?: number;
  note?: string;
  member?: string;
}

/** Adds the `token` commands to the program. */
export function addTokenCommands(program: Command, terminal: Terminal): void {
  const token = program.command("token").description("tokens: who may call what on a device");
  withOwnerOptions(token.command("create"))
    .description("create a token for one person or program; prints it once")
    .requiredOption("--device <name>", "the device it is for")
    .requiredOption("--for <label>", "whom it is for, as lists and records show it")
    .option(
      "--tools <patterns>",
      "tools it may call, such as 'screenshot,touch_*,!shell'; may be repeated (default: everything)",
      collectNames,
    )
    .option("--resources <pattern>", "resources it may read, by URI; may be repeated", collect)
    .option("--prompts <patterns>", "prompts it may get; may be repeated", collectNames)
    .option("--expires <duration>", "how long it is valid, such as 12h or 7d (default: 90 days)", parseDuration)
    .option("--calls-per-minute <n>", "most calls in a minute (default: no limit)", parseCount)
    .option("--in-flight <n>", "most calls at the same time", parseCount)
    .option("--parked <n>", "most calls that wait for a person's answer", parseCount)
    .option("--listeners <n>", "most open notice streams", parseCount)
    .option("--note <text>", "a note for yourself; it never reaches the device")
    .option("--member <id>", "whose token it is, from `member list` (default: yours)")
    .addHelpText("after", "\nExample:\n  longline token create --device workshop-pi --for alice --tools 'camera_*' --expires 7d")
    .action(async (options: CreateOptions) => await create(terminal, options));
  withOwnerOptions(token.command("list"))
    .description("list grants; the tokens themselves are never shown again")
    .option("--device <name>", "only those of this device")
    .addHelpText("after", "\nExample:\n  longline token list --device workshop-pi")
    .action(async (options: OwnerOptions & { device?: string }) => await list(terminal, options));
  addTokenChanges(token, terminal);
  withOwnerOptions(token.command("revoke"))
    .description("revoke a grant: its next call is refused, its streams and sessions end")
    .argument("<grant>", "the grant's id, from `token create` or `token list`")
    .addHelpText("after", "\nExample:\n  longline token revoke 5f2c…")
    .action(async (grant: string, options: OwnerOptions) => await revoke(terminal, grant, options));
}

async function create(terminal: Terminal, options: CreateOptions): Promise<void> {
  const api = await connect(terminal, options);
  const { token, grant, mcpUrl, expiresAt } = await api.createToken(options.device, {
    for: options.for,
    tools: options.tools,
    resources: options.resources,
    prompts: options.prompts,
    expiresMs: options.expires,
    callsPerMinute: options.callsPerMinute,
    inFlight: options.inFlight,
    parked: options.parked,
    listeners: options.listeners,
    note: options.note,
    member: options.member,
  });
  if (options.json === true) return printJson(terminal, { token, grant, mcpUrl, expiresAt });
  terminal.out(`grant    ${grant}\nmcp url  ${mcpUrl}\nexpires  ${isoMinute(expiresAt)}\ntoken    ${token}`);
  terminal.err("The token is shown only now. A client sends it as `Authorization: Bearer TOKEN`.");
}

async function list(terminal: Terminal, options: OwnerOptions & { device?: string }): Promise<void> {
  const tokens = await (await connect(terminal, options)).listTokens(options.device);
  if (options.json === true) return printJson(terminal, tokens);
  if (tokens.length === 0) return terminal.err("No tokens yet. Create one with `longline token create --device NAME --for LABEL`.");
  const now = Date.now();
  const rows = tokens.map((t) => [t.grant, t.device, t.for, describeRights(t), stateOf(t, now)]);
  terminal.out(formatTable(terminal, ["GRANT", "DEVICE", "FOR", "RIGHTS", "STATE"], rows));
}

async function revoke(terminal: Terminal, grant: string, options: OwnerOptions): Promise<void> {
  await (await connect(terminal, options)).revokeToken(grant);
  if (options.json === true) return printJson(terminal, { grant, revoked: true });
  terminal.err(`Revoked ${grant}.`);
}

function describeRights({ rights }: TokenRow): string {
  const kinds = [rights.tools, rights.resources, rights.prompts];
  if (kinds.every((patterns) => patterns === undefined)) return "everything";
  const named = ["tools", "resources", "prompts"] as const;
  return named.flatMap((kind) => (rights[kind] === undefined ? [] : [`${kind}: ${rights[kind].join(",") || "none"}`])).join("; ");
}

function stateOf(token: TokenRow, now: number): string {
  return token.state === "active" ? `expires ${relativeTime(token.expiresAt, now)}` : token.state;
}
