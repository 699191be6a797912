/** `longline origin add|list|remove`: the public addresses a relay answers at. */
import type { Command } from "commander";
import { z } from "zod";
import { connect, parseRelay, withOwnerOptions, type OwnerOptions } from "../connection.ts";
import { formatTable } from "../table.ts";
import { printJson, type Terminal } from "../terminal.ts";

const Answer = z.looseObject({
  origins: z.array(z.looseObject({ origin: z.string(), canonical: z.boolean(), configured: z.boolean() })),
});
type Answer = z.infer<typeof Answer>;

/** Adds the `origin` commands to the program. */
export function addOriginCommands(program: Command, terminal: Terminal): void {
  const origin = program.command("origin").description("the public addresses a relay answers at; the first is canonical");
  withOwnerOptions(origin.command("add"))
    .description("let the relay answer at another address")
    .argument("<url>", "the address, such as https://tools.example")
    .option("--first", "in front of all others: new tokens and links name it")
    .addHelpText("after", "\nExample:\n  longline origin add https://tools.example --first")
    .action(async (url: string, options: OwnerOptions & { first?: boolean }) => {
      const body = { origin: parseRelay(url).origin, first: options.first === true };
      show(terminal, options, await (await connect(terminal, options)).request(Answer, "POST", "/api/origins", body));
    });
  withOwnerOptions(origin.command("list"))
    .description("list the addresses in their order")
    .addHelpText("after", "\nExample:\n  longline origin list")
    .action(async (options: OwnerOptions) =>
      show(terminal, options, await (await connect(terminal, options)).request(Answer, "GET", "/api/origins")),
    );
  withOwnerOptions(origin.command("remove"))
    .description("stop answering at an address; tokens that name it stop working there")
    .argument("<url>", "the address")
    .addHelpText("after", "\nExample:\n  longline origin remove https://tools.example")
    .action(async (url: string, options: OwnerOptions) => {
      const body = { origin: parseRelay(url).origin };
      show(terminal, options, await (await connect(terminal, options)).request(Answer, "POST", "/api/origins/remove", body));
    });
}

function show(terminal: Terminal, options: OwnerOptions, { origins }: Answer): void {
  if (options.json === true) return printJson(terminal, origins);
  const rows = origins.map((o) => [o.origin, o.canonical ? "canonical" : "", o.configured ? "configured" : "added"]);
  terminal.out(formatTable(terminal, ["ORIGIN", "", "FROM"], rows));
}
