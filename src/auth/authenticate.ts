/** Who is calling `/mcp/:device`: a bearer token of ours for exactly this URL, or the one 401 there is. */
import type { Context } from "hono";
import { type AppEnv, configOf, type Env } from "../env.ts";
import { verifyAccessToken } from "./access-token.ts";
import { bearerToken } from "./bearer.ts";
import { unauthorised } from "./challenge.ts";
import { deviceStub } from "./device-stub.ts";
import { isNameOf } from "../policy/device-name.ts";
import { acceptedOrigins, mcpUrl } from "./origins.ts";
import { countFailure, limitRequests } from "./rate-limit.ts";

export { insufficientScope, unauthorised } from "./challenge.ts";

/** An authenticated caller, or the response to send instead. Ids are those of the token; the object still checks the grant. */
export type Authentication = { ok: true; grant: string; member: string; deviceId: string } | { ok: false; response: Response };

/** The device name of an audience that is an MCP URL on one of the relay's origins (RFC 8707), or undefined. */
function audienceName(audience: string, origins: readonly string[]): string | undefined {
  const name = audience.slice(audience.lastIndexOf("/") + 1);
  return acceptedOrigins(origins).some((origin) => audience === mcpUrl(origin, name)) ? name : undefined;
}

/** After a rename a token made for one name may come to the URL of another: both have to be names of its device. */
async function isRenamed(env: Env, deviceId: string, names: readonly string[]): Promise<boolean> {
  const found = await deviceStub(env, deviceId);
  if (found === null) return false;
  const device = found.born ? found.names : found.device;
  return names.every((name) => isNameOf(device, name, Date.now()));
}

/**
 * Authenticates a request to `/mcp/:device`. No storage is read for a token this isolate knows the key of, and the
 * device is not looked up unless token and URL differ, so an unknown device and a wrong token cannot be told apart.
 */
export async function authenticate(c: Context<AppEnv>): Promise<Authentication> {
  const refused = (): Authentication => {
    // Checking a signature is cheap and reads nothing, so that an address is answered 429 only after it failed again.
    // A request without one is how every client begins, and is nothing to put on record.
    if (c.req.raw.headers.has("authorization")) countFailure(c, "failures");
    else limitRequests(c, "unauthenticated");
    return { ok: false, response: unauthorised(c) };
  };
  const token = bearerToken(c.req.raw.headers);
  const name = c.req.param("device");
  if (token === undefined || name === undefined) return refused();
  const claims = await verifyAccessToken(c.env, token);
  const audience = claims === undefined ? undefined : audienceName(claims.aud, configOf(c.env).origins);
  if (claims === undefined || audience === undefined) return refused();
  if (audience !== name && !(await isRenamed(c.env, claims.device, [audience, name]))) return refused();
  return { ok: true, grant: claims.grant, member: claims.sub, deviceId: claims.device };
}
