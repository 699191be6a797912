/**
 * One exchange at the token endpoint: the library checks client, code, PKCE, refresh token and resource; the relay's own
 * record says whether the grant lives; and the answer carries one of our access tokens in place of the library's.
 */
import { OAuthError, type TokenExchangeCallbackOptions } from "@cloudflare/workers-oauth-provider";
import { z } from "zod";
import { findDevice } from "../../db/devices.ts";
import { findGrant, type GrantRecord } from "../../db/grants.ts";
import { configOf, type Env } from "../../env.ts";
import { OAUTH } from "../../limits.ts";
import { isNameOf } from "../../policy/device-name.ts";
import { mintAccessToken } from "../access-token.ts";
import { oauthError, oauthJson } from "./answers.ts";
import { OAUTH_PATHS } from "./availability.ts";
import { readResource } from "./resources.ts";
import { authorizationServer, type ExchangeHooks, libraryRequest } from "./server.ts";

/** What is kept with an authorization by the library, sealed with the token itself. */
const Props = z.object({ grant: z.string() });

const Issued = z.object({
  expires_in: z.number(),
  refresh_token: z.string().optional(),
  scope: z.string(),
  resource: z.string(),
});
/** The library's answer without its access token. */
export type Issued = z.infer<typeof Issued>;

/** What an exchange came to. `reason` is the library's name of a failure. */
export type Exchange = { ok: true; issued: Issued; grant: GrantRecord } | { ok: false; response: Response; reason: string | undefined };

/** Internal reason of a refresh under a paused grant. */
const PAUSED = "grant_paused";
const NO_LONGER = "This access has ended. Authorize again.";

/** Seconds a grant still lives; throws for one under which nothing may be issued. */
function lifeOf(record: GrantRecord | null, memberId: string, now: number): number {
  const gone = record === null || record.grant.revokedAt !== null || record.grant.member !== memberId;
  const life = gone ? 0 : Math.floor((record.grant.expiresAt - now) / 1000);
  // The library ends its own grant on this code, which is right: ours does not come back.
  if (gone || life < OAUTH.minLifeSeconds) throw new OAuthError("invalid_grant", { description: NO_LONGER });
  // A pause does end, so the library must not hear `invalid_grant`: its refresh token has to outlive it.
  if (record.grant.pausedAt !== null) {
    const internal = { category: "tokens", reason: PAUSED };
    throw new OAuthError("access_denied", { description: "This access is paused.", internal });
  }
  return life;
}

/** Whether the grant's device still has the name in a resource: after a rename the old one counts for a while only. */
async function isStillNamed(env: Env, record: GrantRecord, resource: string, now: number): Promise<boolean> {
  const name = readResource(configOf(env).origins, resource)?.name;
  if (name === undefined || name === record.deviceName) return name !== undefined;
  const device = await findDevice(env.DB, record.deviceId);
  return device !== null && isNameOf(device, name, now);
}

/** The grant that tokens may be issued under for a resource, and the seconds it still lives; throws `OAuthError` when there is none. */
export async function issuableGrant(
  env: Env,
  asked: { grantId: string; memberId: string; resource: string },
): Promise<{ grant: GrantRecord; lifeSeconds: number }> {
  const now = Date.now();
  const grant = await findGrant(env.DB, asked.grantId);
  const lifeSeconds = lifeOf(grant, asked.memberId, now);
  if (grant === null || !(await isStillNamed(env, grant, asked.resource, now)))
    throw new OAuthError("invalid_grant", { description: NO_LONGER });
  return { grant, lifeSeconds };
}

/** Runs one exchange for the resource it is bound to. */
export async function exchange(
  env: Env,
  context: ExecutionContext,
  request: { headers: Headers; body: string },
  resource: string | undefined,
): Promise<Exchange> {
  let grant: GrantRecord | null = null;
  let failed: string | undefined;
  const hooks: ExchangeHooks = {
    onExchange: async ({ props, userId, resource: bound }: TokenExchangeCallbackOptions<Env>) => {
      const found = await issuableGrant(env, { grantId: Props.parse(props).grant, memberId: userId, resource: bound });
      grant = found.grant;
      return found;
    },
    onFailure: (reason) => {
      failed = reason;
      return reason === PAUSED ? oauthError("invalid_grant", "This access is paused. Its owner can resume it.") : undefined;
    },
  };
  const server = authorizationServer(env, resource, hooks);
  const response = await server.fetch(libraryRequest(env, OAUTH_PATHS.token, request), env, context);
  if (!response.ok || grant === null) return { ok: false, response, reason: failed };
  return { ok: true, issued: Issued.parse(await response.json()), grant };
}

/** The token response (RFC 6749 §5.1): one of our access tokens for the grant, and the library's refresh token. */
export async function tokenResponse(env: Env, issued: Issued, { grant, deviceId, deviceName }: GrantRecord): Promise<Response> {
  // The name the client knows, which may be an older one of the device, is the one its tokens are for.
  const name = readResource(configOf(env).origins, issued.resource)?.name ?? deviceName;
  const expiresAt = Math.floor(Date.now() / 1000 + issued.expires_in) * 1000;
  const token = await mintAccessToken(env, { deviceId, deviceName: name, grant: grant.id, member: grant.member, expiresAt });
  return oauthJson({ access_token: token, token_type: "Bearer", ...issued });
}
