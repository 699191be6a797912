/** The tool `open_url`: opens a web address in the device's browser. Only http and https: other schemes start programs. */
import { spawn, type ChildProcess } from "node:child_process";
import { z } from "zod";
import { TOOLS } from "../../limits.ts";
import type { BuiltinTool } from "../types.ts";
import { ToolError } from "../upstreams/builtin.ts";
import { desktopEnvironment } from "../upstreams/environment.ts";
import { planProgram, startProblem } from "../upstreams/process-group.ts";
import { CHANGES } from "./annotations.ts";
import { inputSchema, readArguments } from "./arguments.ts";
import { missing, ready, type Ready } from "./availability.ts";
import type { ToolHost } from "./find-program.ts";

/** A program and what comes before the address. */
export interface Opener {
  command: string;
  args: readonly string[];
}

const Arguments = z.strictObject({ url: z.string().max(TOOLS.urlLength).describe("An http or https address") });
const OUTPUT = { type: "object", properties: { opened: { type: "string" } }, required: ["opened"] };

/** What opens addresses on this machine. */
export function findOpener({ platform, env, has }: ToolHost): Ready<Opener> {
  if (platform === "darwin") return ready({ command: "open", args: [] });
  // Not `start`, which is a part of cmd.exe and reads `&` in an address.
  if (platform === "win32") return ready({ command: "rundll32.exe", args: ["url.dll,FileProtocolHandler"] });
  if (has("termux-open-url")) return ready({ command: "termux-open-url", args: [] });
  if (!env["DISPLAY"] && !env["WAYLAND_DISPLAY"]) return missing("there is no desktop", "start the agent inside the desktop session");
  if (has("xdg-open")) return ready({ command: "xdg-open", args: [] });
  return missing("xdg-open is not installed", "install xdg-utils");
}

/** The tool, with what opens addresses here. */
export function openUrlTool(opener: Opener): BuiltinTool {
  return {
    name: "open_url",
    title: "Open a web address",
    description: "Opens an http or https address in the browser of the device.",
    inputSchema: inputSchema(Arguments),
    outputSchema: OUTPUT,
    annotations: { ...CHANGES, openWorldHint: true },
    run: async (args, { signal }) => {
      const url = webAddress(readArguments(Arguments, args).url);
      await open(opener, url, signal);
      return { content: [{ type: "text", text: `Opened ${url}` }], structuredContent: { opened: url } };
    },
  };
}

/** The address as it is opened: normalised, so that nothing in it is read as an option or a command. Throws ToolError. */
export function webAddress(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) throw new ToolError("Only http and https addresses are opened.");
  return url.href;
}

/** A browser that the opener becomes runs on: one that did not fail in a moment counts as opened, and is left alone. */
async function open(opener: Opener, url: string, signal: AbortSignal): Promise<void> {
  const problem = await new Promise<string | undefined>((resolve) => {
    const child = start(opener, url);
    const timer = setTimeout(() => resolve(undefined), TOOLS.openMs);
    const end = (text: string | undefined) => {
      clearTimeout(timer);
      resolve(text);
    };
    child.on("error", (error) => end(startProblem(opener.command, error)));
    child.on("exit", (code) => end(code === 0 ? undefined : `${opener.command} could not open it (exit code ${code}).`));
    signal.addEventListener("abort", () => end(undefined), { once: true });
    child.unref();
  });
  if (problem !== undefined) throw new ToolError(problem);
}

function start(opener: Opener, url: string): ChildProcess {
  try {
    const plan = planProgram(opener.command, [...opener.args, url], { env: desktopEnvironment(process.env) });
    return spawn(plan.file, plan.args, { ...plan.options, stdio: "ignore" });
  } catch (error) {
    throw new ToolError(startProblem(opener.command, error));
  }
}
