/** `longline device pause|resume|rename|rotate-key|revoke-key`. */
import type { Command } from "commander";
import { z } from "zod";
import { connect, withOwnerOptions, type OwnerOptions } from "../connection.ts";
import { printJson, type Terminal } from "../terminal.ts";
import { isoMinute } from "../times.ts";

const Changed = z.looseObject({ device: z.string() });
const Renamed = z.looseObject({ device: z.string(), formerName: z.string(), formerNameUntil: z.number(), mcpUrl: z.string() });
const Rotated = z.looseObject({ device: z.string(), deviceKey: z.string(), olderKeysUntil: z.number() });

/** Adds the subcommands to `device`. */
export function addDeviceChanges(device: Command, terminal: Terminal): void {
  for (const verb of ["pause", "resume"] as const) {
    withOwnerOptions(device.command(verb))
      .description(
        verb === "pause" ? "refuse every call until the device is resumed; its link stays" : "let a paused device be called again",
      )
      .argument("<name>", "the device's name")
      .addHelpText("after", `\nExample:\n  longline device ${verb} workshop-pi`)
      .action(async (name: string, options: OwnerOptions) => await pause(terminal, name, options, verb));
  }
  withOwnerOptions(device.command("rename"))
    .description("give a device another name; its old URL works for 30 days")
    .argument("<name>", "the device's name")
    .argument("<new-name>", "its name from now on")
    .addHelpText("after", "\nExample:\n  longline device rename workshop-pi garage-pi")
    .action(async (name: string, to: string, options: OwnerOptions) => await rename(terminal, name, to, options));
  withOwnerOptions(device.command("rotate-key"))
    .description("make a new device key; the old one works until the new one is used, for 24 hours at most")
    .argument("<name>", "the device's name")
    .addHelpText("after", "\nExample:\n  longline device rotate-key workshop-pi")
    .action(async (name: string, options: OwnerOptions) => await rotate(terminal, name, options));
  withOwnerOptions(device.command("revoke-key"))
    .description("revoke a device's keys: its link closes for good, until it gets a new key")
    .argument("<name>", "the device's name")
    .addHelpText("after", "\nExample:\n  longline device revoke-key workshop-pi")
    .action(async (name: string, options: OwnerOptions) => await revoke(terminal, name, options));
}

function pathOf(name: string, what: string): string {
  return `/api/devices/${encodeURIComponent(name)}/${what}`;
}

async function pause(terminal: Terminal, name: string, options: OwnerOptions, verb: "pause" | "resume"): Promise<void> {
  await (await connect(terminal, options)).request(Changed, "POST", pathOf(name, verb));
  if (options.json === true) return printJson(terminal, { device: name, paused: verb === "pause" });
  terminal.err(verb === "pause" ? `Paused ${name}.` : `Resumed ${name}.`);
}

async function rename(terminal: Terminal, name: string, to: string, options: OwnerOptions): Promise<void> {
  const renamed = await (await connect(terminal, options)).request(Renamed, "POST", pathOf(name, "rename"), { name: to });
  if (options.json === true) return printJson(terminal, renamed);
  terminal.out(`mcp url  ${renamed.mcpUrl}`);
  terminal.err(`Renamed ${name} to ${to}. The old URL works until ${isoMinute(renamed.formerNameUntil)}.`);
}

async function rotate(terminal: Terminal, name: string, options: OwnerOptions): Promise<void> {
  const { device, deviceKey, olderKeysUntil } = await (await connect(terminal, options)).request(Rotated, "POST", pathOf(name, "keys"));
  if (options.json === true) return printJson(terminal, { device, deviceKey, olderKeysUntil });
  terminal.out(`device key  ${deviceKey}`);
  terminal.err(
    `The new key is shown only now. The old one works until the new one is used, at the latest until ${isoMinute(olderKeysUntil)}.`,
  );
}

async function revoke(terminal: Terminal, name: string, options: OwnerOptions): Promise<void> {
  await (await connect(terminal, options)).request(Changed, "DELETE", pathOf(name, "keys"));
  if (options.json === true) return printJson(terminal, { device: name, state: "revoked" });
  terminal.err(`Revoked the keys of ${name}. \`longline device rotate-key ${name}\` makes a new one.`);
}
