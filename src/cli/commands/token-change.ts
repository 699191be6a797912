/** `longline token update|pause|resume`: changes of a grant, with effect on its next call. */
import type { Command } from "commander";
import { z } from "zod";
import { ApiError } from "../../errors.ts";
import { connect, withOwnerOptions, type OwnerOptions } from "../connection.ts";
import { parseCount } from "../numbers.ts";
import { collect, collectNames } from "../patterns.ts";
import { printJson, type Terminal } from "../terminal.ts";
import { isoMinute, parseDuration } from "../times.ts";

interface UpdateOptions extends OwnerOptions {
  for?: string;
  tools?: string[];
  resources?: string[];
  prompts?: string[];
  everything?: boolean;
  expires?: number;
  callsPerMinute?: number | "none";
  inFlight?: number;
  parked?: number;
  listeners?: number;
  note?: string;
}

const Changed = z.looseObject({ grant: z.string(), state: z.string(), expiresAt: z.number(), token: z.string().optional() });

/** Adds the subcommands to `token`. */
export function addTokenChanges(token: Command, terminal: Terminal): void {
  withOwnerOptions(token.command("update"))
    .description("change what a grant may do, from its next call on")
    .argument("<grant>", "the grant's id, from `token list`")
    .option("--for <label>", "another label")
    .option("--tools <patterns>", "tools it may call; all patterns given here replace all it had", collectNames)
    .option("--resources <pattern>", "resources it may read, likewise", collect)
    .option("--prompts <patterns>", "prompts it may get, likewise", collectNames)
    .option("--everything", "it may use everything the device offers")
    .option("--expires <duration>", "how long it is valid from now; longer than before prints a new token", parseDuration)
    .option("--calls-per-minute <n>", "most calls in a minute, or `none` for no limit", (text) =>
      text === "none" ? "none" : parseCount(text),
    )
    .option("--in-flight <n>", "most calls at the same time", parseCount)
    .option("--parked <n>", "most calls that wait for a person's answer", parseCount)
    .option("--listeners <n>", "most open notice streams", parseCount)
    .option("--note <text>", "a note for yourself; empty removes it")
    .addHelpText("after", "\nExample:\n  longline token update 5f2c… --tools 'camera_*,!camera_delete' --expires 24h")
    .action(async (grant: string, options: UpdateOptions) => await update(terminal, grant, options));
  for (const verb of ["pause", "resume"] as const) {
    withOwnerOptions(token.command(verb))
      .description(
        verb === "pause" ? "refuse a grant's calls until it is resumed; what runs under it ends" : "let a paused grant call again",
      )
      .argument("<grant>", "the grant's id, from `token list`")
      .addHelpText("after", `\nExample:\n  longline token ${verb} 5f2c…`)
      .action(async (grant: string, options: OwnerOptions) => await change(terminal, grant, options, { paused: verb === "pause" }));
  }
}

async function update(terminal: Terminal, grant: string, options: UpdateOptions): Promise<void> {
  const { tools, resources, prompts, everything } = options;
  const hasPatterns = tools !== undefined || resources !== undefined || prompts !== undefined;
  if (hasPatterns && everything === true) throw new ApiError("bad_request", "--everything and patterns contradict each other.");
  const body = {
    for: options.for,
    rights: everything === true ? {} : hasPatterns ? { tools, resources, prompts } : undefined,
    expiresMs: options.expires,
    callsPerMinute: options.callsPerMinute === "none" ? null : options.callsPerMinute,
    inFlight: options.inFlight,
    parked: options.parked,
    listeners: options.listeners,
    note: options.note === "" ? null : options.note,
  };
  if (Object.values(body).every((value) => value === undefined))
    throw new ApiError("bad_request", "Say what to change, for example --tools or --expires.");
  await change(terminal, grant, options, body);
}

async function change(terminal: Terminal, grant: string, options: OwnerOptions, body: object): Promise<void> {
  const api = await connect(terminal, options);
  const changed = await api.request(Changed, "PATCH", `/api/tokens/${encodeURIComponent(grant)}`, body);
  if (options.json === true) return printJson(terminal, changed);
  if (changed.token !== undefined) terminal.out(`token    ${changed.token}`);
  terminal.err(`Grant ${grant} is ${changed.state} and expires ${isoMinute(changed.expiresAt)}.`);
  if (changed.token !== undefined)
    terminal.err("The old token ends when it said it would; this one lives as long as the grant. It is shown only now.");
}
