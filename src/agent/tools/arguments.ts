/** Reads the arguments of a built-in tool. What does not fit is a tool error that says what does. */
import { z } from "zod";
import { ToolError } from "../upstreams/builtin.ts";

/** The arguments as a schema wants them, or a ToolError that names the first mistake. */
export function readArguments<T>(schema: z.ZodType<T>, args: Record<string, unknown>): T {
  const read = schema.safeParse(args);
  if (read.success) return read.data;
  const [issue] = read.error.issues;
  if (issue?.code === "unrecognized_keys") throw new ToolError(`There is no argument ${issue.keys.join(", ")}.`);
  throw new ToolError(`The argument ${issue?.path.join(".") ?? ""} is missing or not what the tool's inputSchema says.`);
}

/** A tool's inputSchema, from the schema that reads its arguments, so that both say the same. */
export function inputSchema(schema: z.ZodType): Record<string, unknown> {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: "input" });
  return rest;
}
