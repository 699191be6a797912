/** Runs a helper program of a built-in tool, such as one that captures the screen. */
import { TOOLS } from "../../limits.ts";
import { cleanTail } from "../clean-text.ts";
import { ProgramError, runProgram } from "../program.ts";
import type { BuiltinContext } from "../types.ts";
import { ToolError } from "../upstreams/builtin.ts";
import { desktopEnvironment } from "../upstreams/environment.ts";

export interface Helper {
  command: string;
  args: readonly string[];
  stdin?: string;
  /** What it leaves running stays, as the owner of a clipboard does. */
  leaves?: boolean;
}

/** What the helper printed. A ToolError says why it failed. */
export async function runHelper(helper: Helper, context: BuiltinContext, maxOutputBytes: number): Promise<Buffer> {
  const { signal, agent } = context;
  const end = await start(helper, {
    env: desktopEnvironment(process.env),
    timeoutMs: TOOLS.helperMs,
    maxOutputBytes,
    signal,
    watch: agent.watch,
  });
  if (end.hasTimedOut) throw new ToolError(`${helper.command} did not end within ${TOOLS.helperMs / 1_000} s.`);
  if (end.exitCode !== 0) throw new ToolError(`${helper.command} failed${reason(end.stderr)}.`);
  if (end.isTruncated) throw new ToolError(`${helper.command} gave more than ${maxOutputBytes} bytes.`);
  return end.stdout;
}

type Around = Pick<Parameters<typeof runProgram>[0], "env" | "timeoutMs" | "maxOutputBytes" | "signal" | "watch">;

async function start(helper: Helper, around: Around): ReturnType<typeof runProgram> {
  try {
    return await runProgram({ ...helper, ...around });
  } catch (error) {
    if (error instanceof ProgramError) throw new ToolError(error.message);
    throw error;
  }
}

function reason(stderr: Buffer): string {
  const text = cleanTail(stderr.toString("utf8"));
  return text === "" ? "" : `: ${text.replace(/\.$/, "")}`;
}
