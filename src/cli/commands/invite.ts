/** `longline invite create|list|revoke`: links by which people come in. */
import { type Command, Option } from "commander";
import { z } from "zod";
import { connect, withOwnerOptions, type OwnerOptions } from "../connection.ts";
import { collect, collectNames } from "../patterns.ts";
import { formatTable } from "../table.ts";
import { printJson, type Terminal } from "../terminal.ts";
import { isoMinute, parseDuration, relativeTime } from "../times.ts";

interface CreateOptions extends OwnerOptions {
  for: string;
  role?: string;
  device?: string;
  tools?: string[];
  resources?: string[];
  prompts?: string[];
  grantExpires?: number;
  expires?: number;
}

const Created = z.looseObject({ invitation: z.string(), link: z.string(), expiresAt: z.number() });
const Row = z.looseObject({
  invitation: z.string(),
  for: z.string(),
  role: z.string(),
  device: z.string().nullable(),
  state: z.string(),
  expiresAt: z.number(),
  takenAt: z.number().nullable(),
  takenName: z.string().nullable(),
});
type Row = z.infer<typeof Row>;

/** Adds the `invite` commands to the program. */
export function addInviteCommands(program: Command, terminal: Terminal): void {
  const invite = program.command("invite").description("invitations: links by which people come in, each good once");
  withOwnerOptions(invite.command("create"))
    .description("make an invitation; prints its link once")
    .requiredOption("--for <label>", "whom it is for, as lists show it")
    .option("--device <name>", "a device they may use")
    .option("--tools <patterns>", "tools they may call there, such as 'screenshot,touch_*,!shell' (default: everything)", collectNames)
    .option("--resources <pattern>", "resources they may read there, by URI; may be repeated", collect)
    .option("--prompts <patterns>", "prompts they may get there; may be repeated", collectNames)
    .option("--grant-expires <duration>", "how long the access they make from it lasts (default: 90 days)", parseDuration)
    .option("--expires <duration>", "how long the link can be taken (default: 7 days)", parseDuration)
    .addOption(new Option("--role <role>", "owners administer the whole relay").choices(["member", "owner"]).default("member"))
    .addHelpText("after", "\nExample:\n  longline invite create --for alice --device workshop-pi --tools 'camera_*'")
    .action(async (options: CreateOptions) => await create(terminal, options));
  withOwnerOptions(invite.command("list"))
    .description("list invitations, and who took them")
    .addHelpText("after", "\nExample:\n  longline invite list")
    .action(async (options: OwnerOptions) => await list(terminal, options));
  withOwnerOptions(invite.command("revoke"))
    .description("revoke an invitation; access that was made from it stays until it is revoked itself")
    .argument("<invitation>", "the invitation's id, from `invite list`")
    .addHelpText("after", "\nExample:\n  longline invite revoke 5f2c…")
    .action(async (id: string, options: OwnerOptions) => await revoke(terminal, id, options));
}

async function create(terminal: Terminal, options: CreateOptions): Promise<void> {
  const made = await (
    await connect(terminal, options)
  ).request(Created, "POST", "/api/invitations", {
    for: options.for,
    role: options.role,
    device: options.device,
    tools: options.tools,
    resources: options.resources,
    prompts: options.prompts,
    grantMs: options.grantExpires,
    expiresMs: options.expires,
  });
  if (options.json === true) return printJson(terminal, { invitation: made.invitation, link: made.link, expiresAt: made.expiresAt });
  terminal.out(`link  ${made.link}`);
  terminal.err(`Send it to ${options.for} alone: it works once, until ${isoMinute(made.expiresAt)}, and is shown only now.`);
}

async function list(terminal: Terminal, options: OwnerOptions): Promise<void> {
  const answer = z.looseObject({ invitations: z.array(Row) });
  const { invitations } = await (await connect(terminal, options)).request(answer, "GET", "/api/invitations");
  if (options.json === true) return printJson(terminal, invitations);
  if (invitations.length === 0) return terminal.err("No invitations yet. Make one with `longline invite create --for LABEL`.");
  const now = Date.now();
  const rows = invitations.map((i) => [i.invitation, i.for, i.role, i.device ?? "-", stateOf(i, now)]);
  terminal.out(formatTable(terminal, ["INVITATION", "FOR", "ROLE", "DEVICE", "STATE"], rows));
}

function stateOf(row: Row, now: number): string {
  if (row.state === "taken") return `taken by ${row.takenName ?? "-"} ${relativeTime(row.takenAt, now)}`;
  return row.state === "open" ? `open, expires ${relativeTime(row.expiresAt, now)}` : row.state;
}

async function revoke(terminal: Terminal, id: string, options: OwnerOptions): Promise<void> {
  await (await connect(terminal, options)).request(z.unknown(), "DELETE", `/api/invitations/${encodeURIComponent(id)}`);
  if (options.json === true) return printJson(terminal, { invitation: id, state: "revoked" });
  terminal.err(`Revoked invitation ${id}.`);
}
