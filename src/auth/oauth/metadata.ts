/** Authorization-server metadata (RFC 8414). The library's list of protected resources is left out: it would name devices. */
import type { Env } from "../../env.ts";
import { configOf } from "../../env.ts";
import { authorizationServer } from "./server.ts";
import { OAUTH_PATHS } from "./availability.ts";

/** The metadata document. Nothing in it depends on which devices exist. */
export async function serverMetadata(env: Env, context: ExecutionContext): Promise<Record<string, unknown>> {
  const [canonical = ""] = configOf(env).origins;
  const response = await authorizationServer(env, undefined).fetch(new Request(`${canonical}${OAUTH_PATHS.metadata}`), env, context);
  const document = await response.json<Record<string, unknown>>();
  // SECURITY: the one resource given to the library stands in for none, but the member itself must not come back.
  delete document["protected_resources"];
  return { ...document, revocation_endpoint: `${canonical}${OAUTH_PATHS.revoke}` };
}
