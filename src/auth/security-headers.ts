/** Headers for every answer, each unless the route has set its own: pages and streams need others. */
import type { MiddlewareHandler } from "hono";
import type { AppEnv } from "../env.ts";

const DEFAULTS: readonly (readonly [string, string])[] = [
  ["X-Content-Type-Options", "nosniff"],
  ["Referrer-Policy", "no-referrer"],
  // No answer of the API is a document; the console sets its own policy.
  ["Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"],
  ["X-Frame-Options", "DENY"],
  ["Cache-Control", "no-store"],
];
/** s of a year. Sent over https only, where RFC 6797 §7.2 wants it. */
const STRICT_TRANSPORT = "max-age=31536000";

/** Adds the default security headers to whatever answer there is, errors included. */
export const securityHeaders: MiddlewareHandler<AppEnv> = async (c, next) => {
  await next();
  if (c.res.status === 101) return;
  for (const [name, value] of DEFAULTS) if (!c.res.headers.has(name)) c.res.headers.set(name, value);
  if (c.req.url.startsWith("https:")) c.res.headers.set("Strict-Transport-Security", STRICT_TRANSPORT);
};
