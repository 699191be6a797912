/** Who is calling `/mcp/:device`: a bearer token of ours for exactly this URL, or the one 401 there is. */
import type { Context } from "hono";
import { type AppEnv, configOf } from "../env.ts";
import { verifyAccessToken } from "./access-token.ts";
import { bearerToken } from "./bearer.ts";
import { unauthorised } from "./challenge.ts";
import { acceptedOrigins, mcpUrl } from "./origins.ts";

export { insufficientScope, unauthorised } from "./challenge.ts";

/** An authenticated caller, or the response to send instead. Ids are those of the token; the object still checks the grant. */
export type Authentication = { ok: true; grant: string; member: string; deviceId: string } | { ok: false; response: Response };

/** True when an audience is the MCP URL of a device name on one of the relay's origins (RFC 8707). */
function isAudience(audience: string, name: string, origins: readonly string[]): boolean {
  return acceptedOrigins(origins).some((origin) => audience === mcpUrl(origin, name));
}

/**
 * Authenticates a request to `/mcp/:device`. No storage is read for a token this isolate knows the key of, and the
 * device is not looked up, so an unknown device and a wrong token cannot be told apart.
 */
export async function authenticate(c: Context<AppEnv>): Promise<Authentication> {
  const token = bearerToken(c.req.raw.headers);
  const name = c.req.param("device");
  if (token === undefined || name === undefined) return { ok: false, response: unauthorised(c) };
  const claims = await verifyAccessToken(c.env, token);
  if (claims === undefined || !isAudience(claims.aud, name, configOf(c.env).origins)) return { ok: false, response: unauthorised(c) };
  return { ok: true, grant: claims.grant, member: claims.sub, deviceId: claims.device };
}
