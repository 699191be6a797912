/** Reading an HTML form: bounded, from a page of this relay only, each field a text. */
import type { Context } from "hono";
import { type AppEnv } from "../env.ts";
import { ApiError } from "../errors.ts";
import { requireSameOrigin } from "../auth/web-session.ts";
import { WEB } from "../limits.ts";

const FORM_TYPE = "application/x-www-form-urlencoded";

async function boundedText(body: ReadableStream<Uint8Array> | null, maxBytes: number): Promise<string> {
  if (body === null) return "";
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of body) {
    size += part.length;
    if (size > maxBytes) throw new ApiError("too_large", `The form is larger than ${maxBytes} bytes.`);
    parts.push(part);
  }
  return new Blob(parts).text();
}

/** The fields of a posted form; the last of several with one name is not ours and the first counts. Checks the Origin first. */
export async function readForm(c: Context<AppEnv>, maxBytes: number = WEB.maxFormBytes): Promise<URLSearchParams> {
  requireSameOrigin(c);
  const type = (c.req.header("content-type") ?? "").split(";")[0]?.trim().toLowerCase();
  if (type !== FORM_TYPE) throw new ApiError("bad_request", "A form of this relay's pages is expected.");
  return new URLSearchParams(await boundedText(c.req.raw.body, maxBytes));
}
