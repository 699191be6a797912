/** The token endpoint (RFC 6749 §3.2): codes and refresh tokens become access tokens of ours. */
import { type Authorization, findAuthorization } from "../../db/oauth-authorizations.ts";
import { findOAuthGrant } from "../../db/oauth-grants.ts";
import { claimUse } from "../../db/oauth-uses.ts";
import { configOf, type Env } from "../../env.ts";
import { OAUTH } from "../../limits.ts";
import { log } from "../../log.ts";
import { OAuthError } from "@cloudflare/workers-oauth-provider";
import { recordAction } from "../admin-audit.ts";
import { revokeEverywhere } from "../record-and-copy.ts";
import { hashSecret, randomId } from "../secrets.ts";
import { authorizationIdOf, boundedText, oauthError } from "./answers.ts";
import { authenticateClient } from "./client-auth.ts";
import { exchange, issuableGrant, type Issued, tokenResponse } from "./exchange.ts";
import { refreshOnce } from "./refresh-once.ts";
import { readResource } from "./resources.ts";
import { revoke } from "./revocation.ts";

interface TokenRequest {
  env: Env;
  context: ExecutionContext;
  headers: Headers;
  body: string;
  form: URLSearchParams;
  /** The authorization that the code or refresh token claims to belong to. */
  authorization: Authorization | null;
  /** The resource the library is set up for: the authorization's, else the one that is asked for. */
  resource: string | undefined;
}

/** Answers a request to the token endpoint. */
export async function tokenEndpoint(env: Env, context: ExecutionContext, request: Request): Promise<Response> {
  const body = await boundedText(request);
  if (body instanceof Response) return body;
  const form = new URLSearchParams(body);
  // The library takes this for a revocation, which has an endpoint of its own here.
  if (!form.has("grant_type") && form.has("token")) return await revoke(env, context, { headers: request.headers, form });
  const isRefresh = form.get("grant_type") === "refresh_token";
  const presented = form.get(isRefresh ? "refresh_token" : "code") ?? "";
  const id = authorizationIdOf(presented);
  const authorization = id === undefined ? null : await findAuthorization(env.DB, id);
  const resource = authorization?.resource ?? readResource(configOf(env).origins, form.get("resource"))?.resource;
  const asked: TokenRequest = { env, context, headers: request.headers, body, form, authorization, resource };
  // Without an authorization there is nothing that could be used twice.
  if (authorization === null) return await plainExchange(asked);
  return isRefresh ? await refresh(asked, authorization, presented) : await redeem(asked, authorization, presented);
}

function run({ env, context, headers, body, resource }: TokenRequest): ReturnType<typeof exchange> {
  return exchange(env, context, { headers, body }, resource);
}

async function plainExchange(asked: TokenRequest): Promise<Response> {
  const done = await run(asked);
  return done.ok ? await tokenResponse(asked.env, done.issued, done.grant) : done.response;
}

/** RFC 6749 §4.1.2: a code that comes a second time ends what the first use was given. */
async function endStolen(asked: TokenRequest, authorization: Authorization, what: "code" | "refresh token"): Promise<Response> {
  log("warn", "oauth.reused", { what, grant: authorization.grantId });
  const { grant, deviceId, deviceName } = await revokeEverywhere(asked.env, authorization.grantId);
  const device = { id: deviceId, name: deviceName };
  await recordAction(
    asked.env,
    null,
    { name: "oauth.reuse", target: grant.label, device, grant: grant.id },
    "refused",
    `${what} used twice`,
  );
  return oauthError("invalid_grant", `The ${what} was used before, so the access was ended. Authorize again.`);
}

async function redeem(asked: TokenRequest, authorization: Authorization, code: string): Promise<Response> {
  const done = await run(asked);
  if (!done.ok) return done.reason === "code_replayed" ? await endStolen(asked, authorization, "code") : done.response;
  // The library's store cannot compare and set: two requests at the same moment may both pass there.
  const now = Date.now();
  const use = { hash: await hashSecret(code), claim: randomId(), at: now, expiresAt: now + OAUTH.usedMs };
  if (!(await claimUse(asked.env.DB, use))) return await endStolen(asked, authorization, "code");
  return await tokenResponse(asked.env, done.issued, done.grant);
}

async function refresh(asked: TokenRequest, authorization: Authorization, token: string): Promise<Response> {
  const outcome = await refreshOnce(asked.env, token, () => run(asked));
  if (outcome.kind === "busy") return oauthError("temporarily_unavailable", "Try again.", 503, { "Retry-After": "1" });
  if (outcome.kind === "same") return await sameAgain(asked, authorization, outcome.issued);
  const { exchange: done, reused } = outcome;
  if (done.ok) return await tokenResponse(asked.env, done.issued, done.grant);
  const isStolen = reused && done.reason === "refresh_token_mismatch";
  return isStolen ? await endStolen(asked, authorization, "refresh token") : done.response;
}

/** The answer of a parallel refresh once more. The library was not asked, so everything it checks is checked here. */
async function sameAgain(asked: TokenRequest, authorization: Authorization, issued: Omit<Issued, "expires_in">): Promise<Response> {
  const { env, context, headers, form } = asked;
  const client = await authenticateClient(env, context, { headers, form });
  if (!client.ok) return client.response;
  const owner = await findOAuthGrant(env.DB, authorization.grantId);
  if (owner === null || owner.clientId !== client.clientId) return oauthError("invalid_grant", "The refresh token is another client's.");
  const named = form.get("resource");
  if (named !== null && readResource(configOf(env).origins, named)?.resource !== issued.resource)
    return oauthError("invalid_target", "The refresh token is for another resource.");
  try {
    const { grantId, memberId } = authorization;
    const { grant, lifeSeconds } = await issuableGrant(env, { grantId, memberId, resource: issued.resource });
    return await tokenResponse(env, { ...issued, expires_in: Math.min(OAUTH.accessTokenSeconds, lifeSeconds) }, grant);
  } catch (error) {
    if (error instanceof OAuthError) return oauthError("invalid_grant", error.description);
    throw error;
  }
}
