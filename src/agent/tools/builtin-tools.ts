/** The built-in tools: which work on this machine, and those that the configuration names. */
import { ToolsSection, type ToolName } from "../config/tools-section.ts";
import type { BuiltinTool } from "../types.ts";
import { missing, ready, type Ready } from "./availability.ts";
import { findCapture } from "./capture.ts";
import { clipboardTools, findClipboard } from "./clipboard.ts";
import { deviceStatusTool } from "./device-status.ts";
import { thisHost, type ToolHost } from "./find-program.ts";
import { findOpener, openUrlTool } from "./open-url.ts";
import { screenshotTool } from "./screenshot.ts";
import { shellTool } from "./shell.ts";
import { supportBundleTool } from "./support-bundle.ts";

/** Whether one section's tools work here; for `doctor`. */
export interface ToolAvailability {
  tool: ToolName;
  available: boolean;
  /** Why not, and what to do; empty when it works. */
  reason: string;
  advice: string;
}

type Makers = { [Name in ToolName]: (host: ToolHost, settings: NonNullable<ToolsSection[Name]>) => Ready<BuiltinTool[]> };

const MAKERS: Makers = {
  shell: (host, settings) => (hasShell(host) ? ready([shellTool(settings)]) : missing("/bin/sh is missing", "install a shell")),
  screenshot: (host, settings) => map(findCapture(host), (capture) => [screenshotTool(capture, settings)]),
  clipboard: (host) => map(findClipboard(host), clipboardTools),
  open_url: (host) => map(findOpener(host), (opener) => [openUrlTool(opener)]),
  device_status: () => ready([deviceStatusTool()]),
  support_bundle: (host) => ready([supportBundleTool(() => builtinAvailability(host))]),
};
const NAMES = Object.keys(MAKERS) as ToolName[];

/** What the configuration names: the tools that work here, and those that do not, which are not listed. */
export function builtinTools(
  section: ToolsSection,
  host: ToolHost = thisHost(),
): { tools: BuiltinTool[]; unavailable: ToolAvailability[] } {
  const made = NAMES.filter((name) => section[name] !== undefined).map((name) => ({ name, result: make(name, section, host) }));
  return {
    tools: made.flatMap(({ result }) => (result.ok ? result.use : [])),
    unavailable: made.filter(({ result }) => !result.ok).map(({ name, result }) => availabilityOf(name, result)),
  };
}

/** Every built-in tool, and whether it works on this machine. */
export function builtinAvailability(host: ToolHost = thisHost()): ToolAvailability[] {
  const all = ToolsSection.parse(Object.fromEntries(NAMES.map((name) => [name, {}])));
  return NAMES.map((name) => availabilityOf(name, make(name, all, host)));
}

function make(name: ToolName, section: ToolsSection, host: ToolHost): Ready<BuiltinTool[]> {
  const settings = section[name];
  if (settings === undefined) return missing("it is not named", "name it in the configuration");
  // SAFETY: each maker takes the settings of its own name.
  return (MAKERS[name] as (host: ToolHost, settings: unknown) => Ready<BuiltinTool[]>)(host, settings);
}

function availabilityOf(tool: ToolName, result: Ready<unknown>): ToolAvailability {
  return result.ok
    ? { tool, available: true, reason: "", advice: "" }
    : { tool, available: false, reason: result.reason, advice: result.advice };
}

function map<From, To>(from: Ready<From>, use: (value: From) => To): Ready<To> {
  return from.ok ? ready(use(from.use)) : from;
}

function hasShell({ platform, has }: ToolHost): boolean {
  return platform === "win32" || has("sh");
}
