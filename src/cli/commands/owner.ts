/** `longline owner link|token|recover`: the ways in for owners. */
import { resolve } from "node:path";
import type { Command } from "commander";
import { z } from "zod";
import { LOCAL_DATA, connect, withOwnerOptions, type OwnerOptions } from "../connection.ts";
import { formatTable } from "../table.ts";
import { printJson, type Terminal } from "../terminal.ts";
import { isoMinute, relativeTime } from "../times.ts";

const Link = z.looseObject({ link: z.string(), expiresAt: z.number() });
const Created = z.looseObject({ ownerToken: z.string() });
const Row = z.looseObject({ id: z.string(), label: z.string(), memberName: z.string(), createdAt: z.number() });

/** Adds the `owner` commands to the program. */
export function addOwnerCommands(program: Command, terminal: Terminal): void {
  const owner = program.command("owner").description("the ways in for owners of a relay");
  withOwnerOptions(owner.command("link"))
    .description("make a link that signs a browser in, once")
    .addHelpText("after", "\nExample:\n  longline owner link")
    .action(async (options: OwnerOptions) => await link(terminal, options));
  addTokens(owner, terminal);
  owner
    .command("recover")
    .description("make a new owner token from the data of a stopped relay on this machine; all others end")
    .option("--data <dir>", "the relay's data directory", LOCAL_DATA)
    .option("--json", "print one JSON value on stdout and nothing else")
    .addHelpText("after", "\nExample:\n  longline owner recover --data /var/lib/longline")
    .action(async (options: { data: string; json?: boolean }) => await recover(terminal, options));
}

function addTokens(owner: Command, terminal: Terminal): void {
  const token = owner.command("token").description("owner tokens: what commands sign in with");
  withOwnerOptions(token.command("create"))
    .description("make another owner token, such as for another machine; prints it once")
    .requiredOption("--for <label>", "what it is for, as lists show it")
    .addHelpText("after", "\nExample:\n  longline owner token create --for laptop")
    .action(async (options: OwnerOptions & { for: string }) => await createToken(terminal, options));
  withOwnerOptions(token.command("list"))
    .description("list owner tokens; the tokens themselves are never shown again")
    .addHelpText("after", "\nExample:\n  longline owner token list")
    .action(async (options: OwnerOptions) => await listTokens(terminal, options));
  withOwnerOptions(token.command("revoke"))
    .description("revoke an owner token")
    .argument("<id>", "the token's id, from `owner token list`")
    .addHelpText("after", "\nExample:\n  longline owner token revoke 5f2c…")
    .action(async (id: string, options: OwnerOptions) => await revokeToken(terminal, id, options));
}

async function link(terminal: Terminal, options: OwnerOptions): Promise<void> {
  const made = await (await connect(terminal, options)).request(Link, "POST", "/api/setup-links");
  if (options.json === true) return printJson(terminal, { link: made.link, expiresAt: made.expiresAt });
  terminal.out(made.link);
  terminal.err(`It signs one browser in, once, until ${isoMinute(made.expiresAt)}.`);
}

async function createToken(terminal: Terminal, options: OwnerOptions & { for: string }): Promise<void> {
  const { ownerToken } = await (await connect(terminal, options)).request(Created, "POST", "/api/owner-tokens", { for: options.for });
  if (options.json === true) return printJson(terminal, { ownerToken, for: options.for });
  terminal.out(ownerToken);
  terminal.err("The token is shown only now. It opens everything: keep it in a file for its owner only.");
}

async function listTokens(terminal: Terminal, options: OwnerOptions): Promise<void> {
  const { tokens } = await (await connect(terminal, options)).request(z.looseObject({ tokens: z.array(Row) }), "GET", "/api/owner-tokens");
  if (options.json === true) return printJson(terminal, tokens);
  const now = Date.now();
  const rows = tokens.map((t) => [t.id, t.label, t.memberName, relativeTime(t.createdAt, now)]);
  terminal.out(formatTable(terminal, ["ID", "FOR", "MEMBER", "CREATED"], rows));
}

async function revokeToken(terminal: Terminal, id: string, options: OwnerOptions): Promise<void> {
  await (await connect(terminal, options)).request(z.unknown(), "DELETE", `/api/owner-tokens/${encodeURIComponent(id)}`);
  if (options.json === true) return printJson(terminal, { id, state: "revoked" });
  terminal.err(`Revoked owner token ${id}.`);
}

async function recover(terminal: Terminal, options: { data: string; json?: boolean }): Promise<void> {
  // Loaded here only: the runtime behind it is large.
  const { recoverOwner } = await import("../../serve/recover.ts");
  const { ownerToken } = await recoverOwner(resolve(terminal.cwd, options.data), (line) => terminal.err(line));
  if (options.json === true) return printJson(terminal, { ownerToken });
  terminal.out(ownerToken);
  terminal.err("Every other owner token and signed-in browser has ended. Start the relay again with `longline serve`.");
}
