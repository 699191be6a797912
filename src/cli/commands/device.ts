/** `longline device add|list|remove`: the devices of a relay. */
import type { Command } from "commander";
import { connect, withOwnerOptions, type OwnerOptions } from "../connection.ts";
import { formatTable } from "../table.ts";
import { printJson, type Terminal } from "../terminal.ts";
import { relativeTime } from "../times.ts";
import { addDeviceApprove } from "./device-approve.ts";
import { addDeviceChanges } from "./device-change.ts";
import { addDeviceSet } from "./device-set.ts";

/** Adds the `device` commands to the program. */
export function addDeviceCommands(program: Command, terminal: Terminal): void {
  const device = program.command("device").description("the devices of a relay");
  withOwnerOptions(device.command("add"))
    .description("register a device; prints its MCP URL, and its device key once")
    .argument("<name>", "lower-case letters, digits and hyphens; the last part of the MCP URL")
    .addHelpText(
      "after",
      "\nExample:\n  longline device add workshop-pi\n  LONGLINE_DEVICE_KEY=… longline agent --relay https://relay.example -- my-mcp-server",
    )
    .action(async (name: string, options: OwnerOptions) => await add(terminal, name, options));
  withOwnerOptions(device.command("list"))
    .description("list the devices and whether they are online")
    .addHelpText("after", "\nExample:\n  longline device list --json")
    .action(async (options: OwnerOptions) => await list(terminal, options));
  addDeviceSet(device, terminal);
  addDeviceApprove(device, terminal);
  addDeviceChanges(device, terminal);
  withOwnerOptions(device.command("remove"))
    .description("remove a device: its key, its tokens and its link end at once")
    .argument("<name>", "the device's name")
    .addHelpText("after", "\nExample:\n  longline device remove workshop-pi")
    .action(async (name: string, options: OwnerOptions) => await remove(terminal, name, options));
}

async function add(terminal: Terminal, name: string, options: OwnerOptions): Promise<void> {
  const api = await connect(terminal, options);
  const { device, deviceKey, mcpUrl } = await api.addDevice(name);
  if (options.json === true) return printJson(terminal, { device, deviceKey, mcpUrl });
  terminal.out(`device      ${device}\nmcp url     ${mcpUrl}\ndevice key  ${deviceKey}`);
  terminal.err("The device key is shown only now. On the device, put it into a file for its owner only, then run:");
  terminal.err(`  longline agent --relay ${api.relay.origin} --key-file device-key -- COMMAND ARGS`);
}

async function list(terminal: Terminal, options: OwnerOptions): Promise<void> {
  const devices = await (await connect(terminal, options)).listDevices();
  if (options.json === true) return printJson(terminal, devices);
  if (devices.length === 0) return terminal.err("No devices yet. Add one with `longline device add NAME`.");
  const now = Date.now();
  const rows = devices.map((d) => [d.device, d.state, relativeTime(d.lastSeenAt, now), d.mcpUrl]);
  terminal.out(formatTable(terminal, ["DEVICE", "STATE", "LAST SEEN", "MCP URL"], rows));
}

async function remove(terminal: Terminal, name: string, options: OwnerOptions): Promise<void> {
  await (await connect(terminal, options)).removeDevice(name);
  if (options.json === true) return printJson(terminal, { device: name, removed: true });
  terminal.err(`Removed ${name}.`);
}
