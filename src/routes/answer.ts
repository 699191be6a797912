/** How the owner API and the app's generic handlers turn an error into bytes: `{ error: { code, message } }`. */
import type { Context } from "hono";
import type { ContentfulStatusCode } from "hono/utils/http-status";
import type { AppEnv } from "../env.ts";
import { API_ERRORS, ApiError, type ApiErrorCode } from "../errors.ts";
import { log } from "../log.ts";

/** An error answer with the status of its code. `extra` holds further public members. */
export function errorAnswer(c: Context<AppEnv>, code: ApiErrorCode, message: string, extra: Record<string, unknown> = {}): Response {
  // Codes of the command line alone have no status; reaching one here is a fault of ours.
  const status = (API_ERRORS[code].status || 500) as ContentfulStatusCode;
  // RFC 9110 §15.5.2: a 401 names a scheme; §15.5.22: a 426 names a protocol.
  if (status === 401) c.header("WWW-Authenticate", "Bearer");
  // RFC 6585 §4: windows of a minute.
  if (status === 429) c.header("Retry-After", "60");
  if (status === 426) {
    c.header("Upgrade", "websocket");
    c.header("Connection", "Upgrade");
  }
  return c.json({ error: { code, message, ...extra } }, status);
}

/** The app's onError: expected failures as they are, everything else as one constant text with the request's id. */
export function onError(error: Error, c: Context<AppEnv>): Response {
  if (error instanceof ApiError) return errorAnswer(c, error.code, error.message);
  const requestId = c.get("requestId");
  log("error", "request.failed", { id: requestId, error });
  return errorAnswer(c, "internal", "Something failed inside the relay. Its log has the details under this request id.", { requestId });
}

/** The app's notFound. */
export function notFound(c: Context<AppEnv>): Response {
  return errorAnswer(c, "not_found", "There is nothing at this path.");
}
