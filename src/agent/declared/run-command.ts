/** Runs a declared tool's command. */
import { DECLARED } from "../../limits.ts";
import { cleanTail } from "../clean-text.ts";
import { ProgramError, runProgram, type ProgramEnd } from "../program.ts";
import type { BuiltinContext, BuiltinResult, DeclaredCommand, DeclaredTool } from "../types.ts";
import { ToolError } from "../upstreams/builtin.ts";
import { childEnvironment } from "../upstreams/environment.ts";
import { commandArguments } from "./command-line.ts";
import { argumentText, fill } from "./placeholders.ts";
import { mapResult } from "./result-mapping.ts";

/** The result of one run. Throws ToolError. */
export async function runCommand(
  tool: DeclaredTool,
  command: DeclaredCommand,
  values: Record<string, unknown>,
  context: BuiltinContext,
): Promise<BuiltinResult> {
  const [program = "", ...templates] = command.command;
  const { stdin } = command;
  try {
    const end = await runProgram({
      command: program,
      args: commandArguments(templates, values),
      env: childEnvironment(process.env, command.env),
      cwd: command.cwd,
      stdin: stdin === undefined ? undefined : fill(stdin, (name) => argumentText(values[name])),
      timeoutMs: tool.timeoutMs,
      maxOutputBytes: tool.maxOutputBytes,
      signal: context.signal,
      watch: context.agent.watch,
    });
    return resultOf(tool, end);
  } catch (error) {
    if (error instanceof ProgramError) throw new ToolError(error.message);
    throw error;
  }
}

function resultOf(tool: DeclaredTool, end: ProgramEnd): BuiltinResult {
  if (end.hasTimedOut) throw new ToolError(`The command took longer than ${tool.timeoutMs / 1_000} s and was ended.${tailOf(end)}`);
  if (end.exitCode !== 0) {
    const how = end.exitCode === null ? `by ${end.signal}` : `with exit code ${end.exitCode}`;
    throw new ToolError(`The command ended ${how}.${tailOf(end)}`);
  }
  if (end.stdout.length >= tool.maxOutputBytes && end.isTruncated)
    throw new ToolError(`The command gave more than ${tool.maxOutputBytes} bytes. Ask for less, or raise maxOutputBytes.`);
  return mapResult({ bytes: end.stdout, type: undefined }, tool.result);
}

/** What the command said last. */
function tailOf({ stdout, stderr }: ProgramEnd): string {
  const said = stderr.length > 0 ? stderr : stdout;
  const tail = cleanTail(said.toString("utf8"), DECLARED.errorLength);
  return tail === "" ? "" : ` ${tail}`;
}
