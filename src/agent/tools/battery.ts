/** The state of the battery, by system. Reading of what the systems say is pure; macOS, Windows and Termux are untested on real machines. */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { TOOLS } from "../../limits.ts";
import type { BuiltinContext } from "../types.ts";
import type { ToolHost } from "./find-program.ts";
import { runHelper, type Helper } from "./helper.ts";
import { powershellArgs } from "./powershell.ts";

export interface Battery {
  percent: number;
  /** Of the charger: true when the battery is charged or full. Absent when unknown. */
  isPlugged?: boolean;
}

const LINUX = "/sys/class/power_supply";

/** The first battery; undefined when there is none, or nothing can be learned of it. Never rejects. */
export async function readBattery(host: ToolHost, context: BuiltinContext): Promise<Battery | undefined> {
  const source = batterySource(host);
  try {
    if (source !== undefined) return source.parse((await runHelper(source.helper, context, TOOLS.helperMessageBytes)).toString("utf8"));
    return host.platform === "linux" ? await fromSysfs(LINUX) : undefined;
  } catch {
    return undefined; // A status without its battery is still one.
  }
}

/** The program that tells, and how its answer is read; undefined where files do. */
export function batterySource({ platform, has }: ToolHost): { helper: Helper; parse: (text: string) => Battery | undefined } | undefined {
  if (platform === "darwin") return { helper: { command: "pmset", args: ["-g", "batt"] }, parse: parsePmset };
  if (platform === "win32") {
    const script =
      "Get-CimInstance Win32_Battery | Select-Object -First 1 EstimatedChargeRemaining, BatteryStatus | ConvertTo-Json -Compress";
    return { helper: { command: "powershell.exe", args: powershellArgs(script) }, parse: parseCim };
  }
  if (has("termux-battery-status")) return { helper: { command: "termux-battery-status", args: [] }, parse: parseTermux };
  return undefined;
}

/** Batteries that Linux lists under a directory. */
export async function fromSysfs(directory: string): Promise<Battery | undefined> {
  for (const name of (await readdir(directory)).toSorted()) {
    const read = async (file: string) => (await readFile(join(directory, name, file), "utf8").catch(() => "")).trim();
    // A mouse has a battery too; its scope is Device.
    if ((await read("type")) !== "Battery" || (await read("scope")) === "Device") continue;
    const percent = Number.parseInt(await read("capacity"), 10);
    const status = await read("status");
    if (Number.isNaN(percent)) continue;
    return { percent, ...(status === "" || status === "Unknown" ? {} : { isPlugged: status !== "Discharging" }) };
  }
  return undefined;
}

/** ` -InternalBattery-0 (id=…)	95%; discharging; 4:28 remaining present: true` */
export function parsePmset(text: string): Battery | undefined {
  const percent = /\t(\d{1,3})%;/.exec(text)?.[1];
  return percent === undefined ? undefined : { percent: Number(percent), isPlugged: text.includes("'AC Power'") };
}

/** Win32_Battery: BatteryStatus 1 is discharging, 2 is on mains. */
export function parseCim(text: string): Battery | undefined {
  const value: unknown = text.trim() === "" ? null : JSON.parse(text);
  if (typeof value !== "object" || value === null) return undefined;
  const { EstimatedChargeRemaining: percent, BatteryStatus: status } = value as Record<string, unknown>;
  return typeof percent === "number" ? { percent, isPlugged: status !== 1 } : undefined;
}

/** Termux:API. */
export function parseTermux(text: string): Battery | undefined {
  const { percentage, plugged } = JSON.parse(text) as Record<string, unknown>;
  return typeof percentage === "number" ? { percent: percentage, isPlugged: plugged !== "UNPLUGGED" } : undefined;
}
