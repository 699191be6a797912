/** The two outermost layers: an id for each request, and one log line about it. */
import type { MiddlewareHandler } from "hono";
import type { AppEnv } from "../env.ts";
import { log } from "../log.ts";
import { countRequest } from "../metrics.ts";

/** Mints the request's id. It is in the log, in the answer's header and in an internal error's body. */
export const requestId: MiddlewareHandler<AppEnv> = async (c, next) => {
  const id = crypto.randomUUID();
  c.set("requestId", id);
  await next();
  if (c.res.status !== 101) c.res.headers.set("X-Request-Id", id);
};

/**
 * One line per answer; on the embedded relay, whose log is a person's terminal, only for failures of ours. The path without its query: nothing of ours is there, and whatever else is was not
 * meant for a log.
 */
export const requestLog: MiddlewareHandler<AppEnv> = async (c, next) => {
  const startedAt = Date.now();
  await next();
  const { status } = c.res;
  countRequest(status);
  const isFailure = status >= 500;
  if (!isFailure && c.env.LONGLINE_RUNTIME === "embedded") return;
  log(isFailure ? "error" : "info", "request", {
    id: c.get("requestId"),
    method: c.req.method,
    path: c.req.path,
    status,
    ms: Date.now() - startedAt,
  });
};
