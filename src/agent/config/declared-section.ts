/** The sections `[tools.NAME]`: tools made of a command or an HTTP request. */
import { z } from "zod";
import { DECLARED } from "../../limits.ts";
import { isPointer } from "../declared/json-pointer.ts";
import { Command, Environment, Text } from "./names.ts";

const Schema = z.record(z.string(), z.unknown());
const Pointer = z.string().refine(isPointer, { error: "must be a JSON pointer, such as /data/text" });
const MEDIA_TYPE = /^image\/[a-z0-9.+-]+$/i;

const Annotations = z.strictObject({
  title: z.string().optional(),
  readOnlyHint: z.boolean().optional(),
  destructiveHint: z.boolean().optional(),
  idempotentHint: z.boolean().optional(),
  openWorldHint: z.boolean().optional(),
});

const RequestSection = z.strictObject({
  method: z.enum(["GET", "POST", "PUT", "PATCH", "DELETE"]),
  /** `{name}` may stand in path segments and query values. */
  url: Text,
  headersFile: Text.optional(),
  /** A table is the JSON body itself, with `{name}` in its texts, and `{*}` for all arguments. */
  body: z
    .unknown()
    .refine((body) => isBody(body), { error: 'must be "json", "form", "none", or a table that is the body' })
    .optional(),
});

const ResultSection = z.strictObject({
  kind: z.enum(["text", "image", "structured"]).optional(),
  path: Pointer.optional(),
  mimeType: z.string().regex(MEDIA_TYPE, { error: "must be the type of an image, such as image/png" }).optional(),
  errorPath: Pointer.optional(),
  errorTextPath: Pointer.optional(),
});

export const ToolSection = z.strictObject({
  title: Text.optional(),
  description: Text,
  inputSchema: Schema.default({ type: "object", properties: {} }),
  outputSchema: Schema.optional(),
  annotations: Annotations.optional(),
  command: Command.optional(),
  stdin: z.string().optional(),
  env: Environment.optional(),
  cwd: Text.optional(),
  request: RequestSection.optional(),
  result: ResultSection.optional(),
  timeoutSeconds: z
    .number()
    .positive()
    .max(DECLARED.maxTimeoutMs / 1_000)
    .default(DECLARED.timeoutMs / 1_000),
  maxOutputBytes: z.int().positive().max(DECLARED.maxOutputBytes).default(DECLARED.outputBytes),
});
export type ToolSection = z.infer<typeof ToolSection>;

function isBody(body: unknown): boolean {
  if (body === undefined || body === "json" || body === "form" || body === "none") return true;
  return typeof body === "object" && body !== null && !Array.isArray(body);
}
