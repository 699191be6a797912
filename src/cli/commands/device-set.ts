/** `longline device set NAME`: how callers of one device are answered. */
import type { Command } from "commander";
import { ApiError } from "../../errors.ts";
import { type DeviceSettingsChange, SWITCH_NAMES } from "../../policy/device-settings.ts";
import { connect, withOwnerOptions, type OwnerOptions } from "../connection.ts";
import { printJson, type Terminal } from "../terminal.ts";

interface SetOptions extends OwnerOptions {
  switch?: string[];
  sessionExpiry?: string;
  wakeUrl?: string;
}

/** Adds `set` to the `device` commands. */
export function addDeviceSet(device: Command, terminal: Terminal): void {
  withOwnerOptions(device.command("set"))
    .description("change how callers of a device are answered; docs/protocol.md says what each setting does")
    .argument("<name>", "the device's name")
    .option("--switch <name=on|off>", `a compatibility switch: ${SWITCH_NAMES.join(", ")}; may be repeated`, collect)
    .option("--session-expiry <how>", "what becomes of an idle session: sleep (its next request wakes it) or strict (404)")
    .option("--wake-url <url>", "post there when a call comes while the device is away, and wait for it; off takes it away")
    .addHelpText("after", "\nExample:\n  longline device set workshop-pi --switch headerOnlyModern=on --session-expiry strict")
    .action(async (name: string, options: SetOptions) => await set(terminal, name, options));
}

function collect(value: string, before: string[] = []): string[] {
  return [...before, value];
}

async function set(terminal: Terminal, name: string, options: SetOptions): Promise<void> {
  const change = readChange(options);
  const { device, settings } = await (await connect(terminal, options)).changeDevice(name, change);
  if (options.json === true) return printJson(terminal, { device, settings });
  const on = SWITCH_NAMES.filter((known) => settings[known]);
  terminal.out(
    `switches       ${on.length === 0 ? "none" : on.join(", ")}\nsession expiry ${settings.sessionExpiry}\nwake URL       ${settings.wakeUrl ?? "none"}`,
  );
}

function readChange(options: SetOptions): DeviceSettingsChange {
  const change: DeviceSettingsChange = {};
  for (const text of options.switch ?? []) {
    const [name, value] = text.split("=");
    const known = SWITCH_NAMES.find((candidate) => candidate === name);
    if (known === undefined || (value !== "on" && value !== "off")) {
      throw new ApiError("bad_request", `--switch takes NAME=on or NAME=off, with NAME one of ${SWITCH_NAMES.join(", ")}.`);
    }
    change[known] = value === "on";
  }
  const { sessionExpiry } = options;
  if (sessionExpiry !== undefined) {
    if (sessionExpiry !== "sleep" && sessionExpiry !== "strict") {
      throw new ApiError("bad_request", "--session-expiry takes sleep or strict.");
    }
    change.sessionExpiry = sessionExpiry;
  }
  if (options.wakeUrl !== undefined) change.wakeUrl = options.wakeUrl === "off" ? null : options.wakeUrl;
  if (Object.keys(change).length === 0) throw new ApiError("bad_request", "Name a setting: --switch, --session-expiry or --wake-url.");
  return change;
}
