/** `longline member list|remove`: the people of a relay. */
import type { Command } from "commander";
import { z } from "zod";
import { connect, withOwnerOptions, type OwnerOptions } from "../connection.ts";
import { formatTable } from "../table.ts";
import { printJson, type Terminal } from "../terminal.ts";
import { relativeTime } from "../times.ts";

const Row = z.looseObject({
  member: z.string(),
  name: z.string(),
  role: z.string(),
  createdAt: z.number(),
  grants: z.number(),
  sessions: z.number(),
});
const Removed = z.looseObject({ member: z.string(), name: z.string(), grantsRevoked: z.number() });

/** Adds the `member` commands to the program. */
export function addMemberCommands(program: Command, terminal: Terminal): void {
  const member = program.command("member").description("the people of a relay");
  withOwnerOptions(member.command("list"))
    .description("list the people, their grants and signed-in browsers")
    .addHelpText("after", "\nExample:\n  longline member list")
    .action(async (options: OwnerOptions) => await list(terminal, options));
  withOwnerOptions(member.command("remove"))
    .description("take everything back from a person: grants on all devices, sessions, tokens, invitations")
    .argument("<member>", "the person's id, from `member list`")
    .addHelpText("after", "\nExample:\n  longline member remove 5f2c…")
    .action(async (id: string, options: OwnerOptions) => await remove(terminal, id, options));
}

async function list(terminal: Terminal, options: OwnerOptions): Promise<void> {
  const answer = z.looseObject({ members: z.array(Row) });
  const { members } = await (await connect(terminal, options)).request(answer, "GET", "/api/members");
  if (options.json === true) return printJson(terminal, members);
  const now = Date.now();
  const rows = members.map((m) => [m.member, m.name, m.role, relativeTime(m.createdAt, now), String(m.grants), String(m.sessions)]);
  terminal.out(formatTable(terminal, ["MEMBER", "NAME", "ROLE", "SINCE", "GRANTS", "SESSIONS"], rows));
}

async function remove(terminal: Terminal, id: string, options: OwnerOptions): Promise<void> {
  const removed = await (await connect(terminal, options)).request(Removed, "DELETE", `/api/members/${encodeURIComponent(id)}`);
  if (options.json === true) return printJson(terminal, removed);
  terminal.err(`Removed ${removed.name}; ${removed.grantsRevoked} ${removed.grantsRevoked === 1 ? "grant" : "grants"} revoked.`);
}
