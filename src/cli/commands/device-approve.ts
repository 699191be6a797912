/** `longline device approve CODE`: gives a device that shows a code its key. */
import type { Command } from "commander";
import { z } from "zod";
import { cleanText } from "../../policy/clean-text.ts";
import { connect, withOwnerOptions, type OwnerOptions } from "../connection.ts";
import { askLine } from "../prompt.ts";
import { printJson, type Terminal } from "../terminal.ts";

interface ApproveOptions extends OwnerOptions {
  name?: string;
  screen?: string;
  replace?: boolean;
  deny?: boolean;
}

const Facts = z.looseObject({
  host: z.string(),
  system: z.string(),
  agentVersion: z.string(),
  name: z.string(),
  address: z.string().nullable(),
});
const Approved = z.looseObject({ device: z.string() });

/** Adds the subcommand to `device`. */
export function addDeviceApprove(device: Command, terminal: Terminal): void {
  withOwnerOptions(device.command("approve"))
    .description("give a device that shows a code its key; shows what the device says of itself first")
    .argument("<code>", "the code on the device's screen")
    .option("--screen <characters>", "the two characters beside the code (asked for when left out)")
    .option("--name <name>", "another name than the device asks for")
    .option("--replace", "a device of that name exists: give it a new key")
    .option("--deny", "refuse it")
    .addHelpText("after", "\nExample:\n  longline device approve BCDF-GHJK --screen XZ")
    .action(async (code: string, options: ApproveOptions) => await approve(terminal, code, options));
}

async function approve(terminal: Terminal, code: string, options: ApproveOptions): Promise<void> {
  const api = await connect(terminal, options);
  if (options.deny === true) {
    await api.request(z.unknown(), "POST", "/api/pairings/deny", { code });
    if (options.json === true) return printJson(terminal, { denied: true });
    return terminal.err("Refused. The device gets no key.");
  }
  const facts = await api.request(Facts, "POST", "/api/pairings/look", { code });
  const lines = [
    ["host", facts.host],
    ["system", facts.system],
    ["address", facts.address ?? "not known"],
    ["agent", facts.agentVersion],
    ["name", options.name ?? facts.name],
  ];
  for (const [name = "", value = ""] of lines) terminal.err(`${name.padEnd(8)} ${cleanText(value)}`);
  const screen = options.screen ?? (await ask());
  const body = { code, screen, name: options.name ?? facts.name, replace: options.replace === true };
  const { device } = await api.request(Approved, "POST", "/api/pairings/approve", body);
  if (options.json === true) return printJson(terminal, { device, approved: true });
  terminal.err(`Approved. ${device} gets its key within a few seconds.`);
}

async function ask(): Promise<string> {
  return await askLine("The two characters on its screen:", "Pass the two characters on the device's screen with --screen.");
}
