/** Reading a JSON body of the owner API: bounded by the middleware before, parsed here, checked with zod. */
import type { Context } from "hono";
import { bodyLimit } from "hono/body-limit";
import type { z } from "zod";
import type { AppEnv } from "../env.ts";
import { ApiError } from "../errors.ts";
import { API, TEXT } from "../limits.ts";

/** Refuses a body over API.maxBodyBytes before it is read whole, with or without a declared length. */
export const boundedBody = bodyLimit({
  maxSize: API.maxBodyBytes,
  onError: () => {
    throw new ApiError("too_large", `The body is larger than ${API.maxBodyBytes} bytes.`);
  },
});

/** The body as `schema` says, or `bad_request` with the path of the first thing that is wrong. */
export async function readBody<T>(c: Context<AppEnv>, schema: z.ZodType<T>): Promise<T> {
  let value: unknown;
  try {
    value = JSON.parse(await c.req.text());
  } catch {
    // The parser's own message quotes the body.
    throw new ApiError("bad_request", "The body is not JSON.");
  }
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw notValid(parsed.error, "body");
}

/** The query as `schema` says, or `bad_request` with the parameter that is wrong. Of several with one name the last counts. */
export function readQuery<T>(c: Context<AppEnv>, schema: z.ZodType<T>): T {
  const parsed = schema.safeParse(Object.fromEntries(new URL(c.req.url).searchParams));
  if (parsed.success) return parsed.data;
  throw notValid(parsed.error, "query");
}

function notValid(error: z.ZodError, whole: string): ApiError {
  const [issue] = error.issues;
  const path = issue === undefined || issue.path.length === 0 ? whole : issue.path.join(".");
  return new ApiError("bad_request", `${path}: ${issue?.message ?? "is not valid"}`.slice(0, TEXT.message));
}
