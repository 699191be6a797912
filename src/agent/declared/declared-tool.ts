/** A tool of the configuration as one that the agent runs: arguments checked first, output mapped and checked after. */
import { ASKS_FIRST } from "../local-policy.ts";
import type { BuiltinResult, BuiltinTool, DeclaredTool } from "../types.ts";
import { ToolError } from "../upstreams/builtin.ts";
import { runCommand } from "./run-command.ts";
import { runRequest } from "./run-request.ts";
import { schemaCheck, withDefaults, type SchemaCheck } from "./schema-check.ts";

/** Makes the tool. Its schemas were checked with the configuration. */
export function declaredTool(tool: DeclaredTool): BuiltinTool {
  const { name, title, description, inputSchema, outputSchema, annotations, run } = tool;
  const fits = schemaCheck(inputSchema);
  const outputFits = outputSchema && schemaCheck(outputSchema);
  return {
    name,
    description,
    inputSchema,
    ...(title === undefined ? {} : { title }),
    ...(outputSchema === undefined ? {} : { outputSchema }),
    ...(annotations === undefined ? {} : { annotations }),
    ...(run.kind === "command" ? { _meta: { [ASKS_FIRST]: true } } : {}),
    run: async (args, context) => {
      const values = withDefaults(inputSchema, args);
      const problem = fits(values);
      if (problem !== undefined) throw new ToolError(`The arguments do not fit the tool's inputSchema: ${problem}`);
      const result = await (run.kind === "command" ? runCommand(tool, run, values, context) : runRequest(tool, run, values, context));
      return checked(result, outputFits);
    },
  };
}

/** MCP, Tools: structured results fit the tool's output schema. */
function checked(result: BuiltinResult, fits: SchemaCheck | undefined): BuiltinResult {
  if (!fits || result.isError === true) return result;
  const problem = fits(result.structuredContent);
  if (problem !== undefined) throw new ToolError(`The answer does not fit the tool's outputSchema: ${problem}`);
  return result;
}
