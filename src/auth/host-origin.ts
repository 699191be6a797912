/**
 * Which hosts the relay answers for and which pages may use it, for every route. An absent Origin is a native client;
 * a foreign one is refused before anything else happens, which also ends DNS rebinding (MCP Streamable HTTP, Security).
 */
import type { Context, MiddlewareHandler } from "hono";
import { type AppEnv, configOf } from "../env.ts";
import { ApiError } from "../errors.ts";
import { EDGE } from "../limits.ts";
import { acceptedOrigins, originOf } from "./origins.ts";

const METHODS = "GET, POST, DELETE, OPTIONS";
const ALLOWED_HEADERS = [
  "Authorization",
  "Content-Type",
  "Accept",
  "MCP-Protocol-Version",
  "Mcp-Session-Id",
  "Mcp-Method",
  "Mcp-Name",
  "Last-Event-ID",
];
/** MCP 2026-07-28 §Custom headers: one per parameter that a tool marks, so they cannot be listed in advance. */
const PARAMETER_HEADER = /^mcp-param-[a-z0-9_-]{1,100}$/i;
const EXPOSED_HEADERS = "Mcp-Session-Id, WWW-Authenticate";

function allowedHeaders(requested: string): string {
  const parameters = requested
    .split(",")
    .map((name) => name.trim())
    .filter((name) => PARAMETER_HEADER.test(name));
  return [...ALLOWED_HEADERS, ...new Set(parameters)].join(", ");
}

function preflight(c: Context<AppEnv>): Response {
  return new Response(null, {
    status: 204,
    headers: {
      Allow: METHODS,
      "Access-Control-Allow-Methods": METHODS,
      "Access-Control-Allow-Headers": allowedHeaders(c.req.header("access-control-request-headers") ?? ""),
      "Access-Control-Max-Age": String(EDGE.preflightSeconds),
    },
  });
}

/**
 * Host and Origin, then CORS. Sets `origin`, the accepted origin the request was sent to. A preflight is answered here,
 * without a token, because browsers send none.
 */
export const hostAndOrigin: MiddlewareHandler<AppEnv> = async (c, next) => {
  const accepted = acceptedOrigins(configOf(c.env).origins);
  const served = originOf(c.req.url, accepted);
  if (served === undefined) throw new ApiError("misdirected", "This relay does not answer for this host. Use one of its public origins.");
  c.set("origin", served);
  const page = c.req.header("origin");
  // SECURITY: exact comparison with a list; the text `null` of sandboxed pages is never on it.
  if (page !== undefined && !accepted.includes(page)) throw new ApiError("forbidden", "Pages of this origin may not use this relay.");
  if (c.req.method === "OPTIONS") c.res = preflight(c);
  else await next();
  // A switched connection has no headers that a page could read, and they cannot be changed.
  if (c.res.status === 101) return;
  c.res.headers.append("Vary", "Origin");
  if (page === undefined) return;
  c.res.headers.set("Access-Control-Allow-Origin", page);
  c.res.headers.set("Access-Control-Expose-Headers", EXPOSED_HEADERS);
};
