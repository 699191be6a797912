/**
 * The tool `shell`: runs a command line. It can do what the agent's user can do, so its calls start as questions to a
 * person. Output is told as it comes; when the call ends or is cancelled, everything it started ends with it.
 */
import { homedir } from "node:os";
import { StringDecoder } from "node:string_decoder";
import { z } from "zod";
import { ASKS_FIRST } from "../local-policy.ts";
import { ProgramError, runProgram, type ProgramEnd, type ProgramRun } from "../program.ts";
import type { BuiltinContext, BuiltinResult, BuiltinTool } from "../types.ts";
import { ToolError } from "../upstreams/builtin.ts";
import { childEnvironment } from "../upstreams/environment.ts";
import { DOES_ANYTHING } from "./annotations.ts";
import { inputSchema, readArguments } from "./arguments.ts";
import { OutputStream } from "./output-stream.ts";

export interface ShellSettings {
  /** Working directory; the user's home when absent. */
  cwd?: string | undefined;
  timeoutSeconds: number;
  /** Of each of stdout and stderr. */
  maxOutputBytes: number;
  /** Added to the allow-listed environment. */
  env?: Readonly<Record<string, string>> | undefined;
}

const OUTPUT = {
  type: "object",
  properties: {
    exitCode: { type: ["integer", "null"], description: "null when a signal or the time limit ended the command" },
    signal: { type: ["string", "null"] },
    stdout: { type: "string" },
    stderr: { type: "string" },
    truncated: { type: "boolean", description: "more was printed than is kept" },
    timedOut: { type: "boolean" },
    durationMs: { type: "integer" },
  },
  required: ["exitCode", "signal", "stdout", "stderr", "truncated", "timedOut", "durationMs"],
};

/** The tool, with what the config says of it. */
export function shellTool(settings: ShellSettings): BuiltinTool {
  const Arguments = z.strictObject({
    command: z.string().min(1).describe("Command line for the shell"),
    stdin: z.string().optional().describe("Text for the command's standard input"),
    timeoutSeconds: z
      .number()
      .positive()
      .max(settings.timeoutSeconds)
      .optional()
      .describe("Ends the command earlier than the device would"),
  });
  return {
    name: "shell",
    title: "Shell",
    description:
      `Runs a command line on the device, in ${isWindows() ? "cmd.exe" : "/bin/sh"}. ` +
      `It ends after ${settings.timeoutSeconds} s, together with everything it started. A person at the device may be asked first.`,
    inputSchema: inputSchema(Arguments),
    outputSchema: OUTPUT,
    annotations: DOES_ANYTHING,
    _meta: { [ASKS_FIRST]: true },
    run: async (args, context) => {
      const { command, stdin, timeoutSeconds } = readArguments(Arguments, args);
      return await runShell(command, stdin, { ...settings, timeoutSeconds: timeoutSeconds ?? settings.timeoutSeconds }, context);
    },
  };
}

async function runShell(
  command: string,
  stdin: string | undefined,
  settings: ShellSettings,
  context: BuiltinContext,
): Promise<BuiltinResult> {
  const startedAt = performance.now();
  const stream = context.wants.progress || context.wants.log ? new OutputStream(context) : undefined;
  try {
    const end = await runProgram({
      ...commandLine(command),
      cwd: settings.cwd ?? homedir(),
      env: childEnvironment(process.env, settings.env),
      stdin,
      timeoutMs: settings.timeoutSeconds * 1_000,
      maxOutputBytes: settings.maxOutputBytes,
      signal: context.signal,
      watch: context.agent.watch,
      onOutput: (name, chunk) => stream?.add(name, chunk),
    });
    stream?.end();
    return resultOf(end, Math.round(performance.now() - startedAt), settings.timeoutSeconds);
  } catch (error) {
    if (error instanceof ProgramError) throw new ToolError(error.message);
    throw error;
  } finally {
    stream?.close();
  }
}

function resultOf(end: ProgramEnd, durationMs: number, timeoutSeconds: number): BuiltinResult {
  const { exitCode, signal, isTruncated, hasTimedOut } = end;
  const stdout = text(end.stdout);
  const stderr = text(end.stderr);
  const how = hasTimedOut ? `ended after its ${timeoutSeconds} s` : exitCode === null ? `ended by ${signal}` : `exit code ${exitCode}`;
  const parts = [
    stdout,
    stderr === "" ? "" : `stderr:\n${stderr}`,
    exitCode === 0 && !isTruncated ? "" : `[${how}${isTruncated ? "; output cut" : ""}]`,
  ];
  return {
    content: [{ type: "text", text: parts.filter((part) => part !== "").join("\n") }],
    structuredContent: {
      exitCode: hasTimedOut ? null : exitCode,
      signal,
      stdout,
      stderr,
      truncated: isTruncated,
      timedOut: hasTimedOut,
      durationMs,
    },
    ...(exitCode === 0 && !hasTimedOut ? {} : { isError: true }),
  };
}

/** Without half a character where the output was cut. */
function text(bytes: Buffer): string {
  return new StringDecoder("utf8").write(bytes);
}

/** The shell with a command line. cmd.exe takes off the outermost quotes (/s) and skips AutoRun (/d). */
export function commandLine(
  command: string,
  platform: NodeJS.Platform = process.platform,
): Pick<ProgramRun, "command" | "args" | "isVerbatim"> {
  if (platform === "win32")
    return { command: process.env["ComSpec"] ?? "cmd.exe", args: ["/d", "/s", "/c", `"${command}"`], isVerbatim: true };
  // Android has no /bin.
  return { command: platform === "android" ? "sh" : "/bin/sh", args: ["-c", command] };
}

function isWindows(): boolean {
  return process.platform === "win32";
}
