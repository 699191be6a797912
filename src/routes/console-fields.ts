/** The fields of a form as the body of the API's operation, checked by the same schema. */
import type { z } from "zod";
import { ApiError } from "../errors.ts";
import { TEXT } from "../limits.ts";

/** What the schema makes of the fields, or `bad_request` with the first field that is wrong. Absent fields are left out. */
export function parseFields<T>(schema: z.ZodType<T>, fields: Record<string, unknown>): T {
  const parsed = schema.safeParse(Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)));
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new ApiError("bad_request", `${issue?.path.join(".") || "form"}: ${issue?.message ?? "is not valid"}`.slice(0, TEXT.message));
}
