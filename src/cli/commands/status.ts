/** `longline status [NAME]`: the truthful state of one device or of all. */
import type { Command } from "commander";
import { connect, withOwnerOptions, type OwnerOptions } from "../connection.ts";
import type { DeviceStatus } from "../owner-api.ts";
import { cleanText } from "../../agent/clean-text.ts";
import { type DeviceSettings, SWITCH_NAMES } from "../../policy/device-settings.ts";
import { formatTable } from "../table.ts";
import { printJson, type Terminal } from "../terminal.ts";
import { relativeTime } from "../times.ts";

/** Adds the `status` command to the program. */
export function addStatusCommand(program: Command, terminal: Terminal): void {
  withOwnerOptions(program.command("status"))
    .description("show the state of a device, or of all devices")
    .argument("[name]", "the device's name")
    .addHelpText("after", "\nExample:\n  longline status workshop-pi --json")
    .action(async (name: string | undefined, options: OwnerOptions) => await status(terminal, name, options));
}

async function status(terminal: Terminal, name: string | undefined, options: OwnerOptions): Promise<void> {
  const api = await connect(terminal, options);
  if (name === undefined) return showAll(terminal, await api.status(), options);
  const device = await api.deviceStatus(name);
  if (options.json === true) return printJson(terminal, device);
  showOne(terminal, device);
}

function showAll(terminal: Terminal, devices: DeviceStatus[], options: OwnerOptions): void {
  if (options.json === true) return printJson(terminal, devices);
  if (devices.length === 0) return terminal.err("No devices yet. Add one with `longline device add NAME`.");
  const now = Date.now();
  const rows = devices.map((d) => [
    d.device,
    d.state,
    relativeTime(d.lastSeenAt, now),
    relativeTime(d.lastCallAt, now),
    String(d.inFlight),
  ]);
  terminal.out(formatTable(terminal, ["DEVICE", "STATE", "LAST SEEN", "LAST CALL", "IN FLIGHT"], rows));
}

function showOne(terminal: Terminal, device: DeviceStatus): void {
  const now = Date.now();
  const facts: [string, string][] = [
    ["device", device.device],
    ["state", device.state],
    ["agent", device.agentVersion ?? "unknown"],
    ["last seen", relativeTime(device.lastSeenAt, now)],
    ["last good call", relativeTime(device.lastCallAt, now)],
    ["sessions", String(device.sessions)],
    ["in flight", String(device.inFlight)],
    ...rivalFact(device.rivalAt, now),
    ...settingFacts(device.settings),
  ];
  const width = Math.max(...facts.map(([name]) => name.length));
  terminal.out(facts.map(([name, value]) => `${name.padEnd(width)}  ${cleanText(value)}`).join("\n"));
  if (device.upstreams.length === 0) return;
  const rows = device.upstreams.map((u) => [
    u.alias,
    u.state,
    u.era ?? "-",
    typeof u.lastRoundTripMs === "number" ? `${u.lastRoundTripMs} ms` : "-",
    relativeTime(u.lastRoundTripAt ?? null, now),
    u.problem ?? "-",
  ]);
  terminal.out(`\n${formatTable(terminal, ["UPSTREAM", "STATE", "ERA", "ROUND TRIP", "ANSWERED", "PROBLEM"], rows)}`);
}

/** A second agent with the same key is refused for good; the owner may want to know why one of them is idle. */
function rivalFact(rivalAt: number | null | undefined, now: number): [string, string][] {
  return typeof rivalAt === "number" ? [["refused", `another agent with this key, ${relativeTime(rivalAt, now)}`]] : [];
}

/** Settings that are not their default, which is what a person has to know of when a client is answered oddly. */
function settingFacts(settings: DeviceSettings | undefined): [string, string][] {
  if (settings === undefined) return [];
  const switches = SWITCH_NAMES.filter((name) => settings[name]);
  return [
    ...(switches.length === 0 ? [] : [["switches", switches.join(", ")] as [string, string]]),
    ...(settings.wakeUrl === undefined ? [] : [["wakes by", settings.wakeUrl] as [string, string]]),
    ...(settings.sessionExpiry === "sleep" ? [] : [["sessions end", settings.sessionExpiry] as [string, string]]),
  ];
}
