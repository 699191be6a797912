/**
 * The revocation endpoint (RFC 7009). One of our access tokens or a refresh token, from the client it was issued to, ends
 * the grant behind it; anything else is answered alike and changes nothing.
 */
import { findGrant } from "../../db/grants.ts";
import { findAuthorization, listAuthorizationIds } from "../../db/oauth-authorizations.ts";
import { findOAuthGrant } from "../../db/oauth-grants.ts";
import { configOf, type Env } from "../../env.ts";
import { ApiError } from "../../errors.ts";
import { API } from "../../limits.ts";
import { verifyAccessToken } from "../access-token.ts";
import { recordAction } from "../admin-audit.ts";
import { revokeEverywhere } from "../record-and-copy.ts";
import { authorizationIdOf, boundedText, oauthError } from "./answers.ts";
import { OAUTH_PATHS, oauthOff } from "./availability.ts";
import { authenticateClient } from "./client-auth.ts";
import { authorizationServer, libraryRequest, oauthApi } from "./server.ts";

interface RevocationRequest {
  headers: Headers;
  form: URLSearchParams;
}

/** Answers a request to the revocation endpoint. */
export async function revocationEndpoint(env: Env, context: ExecutionContext, request: Request): Promise<Response> {
  const body = await boundedText(request);
  if (body instanceof Response) return body;
  return await revoke(env, context, { headers: request.headers, form: new URLSearchParams(body) });
}

/** Revokes what the form names. */
export async function revoke(env: Env, context: ExecutionContext, request: RevocationRequest): Promise<Response> {
  const token = request.form.get("token") ?? "";
  // A JWT has two dots; the library's own tokens have none.
  return token.split(".").length === 3
    ? await revokeAccess(env, context, request, token)
    : await revokeRefresh(env, context, request, token);
}

async function revokeAccess(env: Env, context: ExecutionContext, request: RevocationRequest, token: string): Promise<Response> {
  const client = await authenticateClient(env, context, request);
  if (!client.ok) return client.response;
  const claims = await verifyAccessToken(env, token);
  const owner = claims === undefined ? null : await findOAuthGrant(env.DB, claims.grant);
  // RFC 7009 §2.1: only the client a token was issued to revokes it; §2.2: everybody else hears the same.
  if (owner === null || owner.clientId !== client.clientId) return done();
  return await endGrant(env, owner.grantId);
}

async function revokeRefresh(env: Env, context: ExecutionContext, { headers, form }: RevocationRequest, token: string): Promise<Response> {
  const id = authorizationIdOf(token);
  const authorization = id === undefined ? null : await findAuthorization(env.DB, id);
  const body = new URLSearchParams(form);
  body.delete("grant_type");
  const ended = new EndedGrants(env.OAUTH_KV);
  const server = authorizationServer(env, authorization?.resource);
  const asked = libraryRequest(env, OAUTH_PATHS.token, { headers, body: body.toString() });
  const response = await server.fetch(asked, { ...env, OAUTH_KV: ended.watched }, context);
  if (!response.ok) return response;
  if (authorization === null) return done();
  const isOver = ended.has(authorization.memberId, authorization.id) || (await isRevoked(env, authorization.grantId));
  return isOver ? await endGrant(env, authorization.grantId) : done();
}

/** A repeated request after a 503: the library has nothing left to end, but the object may still have to hear of it. */
async function isRevoked(env: Env, grantId: string): Promise<boolean> {
  const record = await findGrant(env.DB, grantId);
  return record !== null && record.grant.revokedAt !== null;
}

/** The library says 200 whether or not it revoked; what it deletes says which. */
class EndedGrants {
  readonly watched: KVNamespace;
  readonly #deleted = new Set<string>();

  constructor(kv: KVNamespace) {
    this.watched = new Proxy(kv, {
      get: (target, name) => {
        if (name === "delete") return (key: string) => this.#note(target, key);
        const member: unknown = Reflect.get(target, name, target);
        return typeof member === "function" ? member.bind(target) : member;
      },
    });
  }

  has(memberId: string, id: string): boolean {
    return this.#deleted.has(`grant:${memberId}:${id}`);
  }

  async #note(kv: KVNamespace, key: string): Promise<void> {
    await kv.delete(key);
    this.#deleted.add(key);
  }
}

function done(): Response {
  return new Response(null, { status: 200, headers: { "Cache-Control": "no-store" } });
}

async function endGrant(env: Env, grantId: string): Promise<Response> {
  try {
    const { grant, deviceId, deviceName } = await revokeEverywhere(env, grantId);
    const device = { id: deviceId, name: deviceName };
    await recordAction(env, grant.member, { name: "oauth.revoke", target: grant.label, device, grant: grant.id });
    return done();
  } catch (error) {
    // RFC 7009 §2.2.1: 503 tells the client that the token still counts and to try again.
    if (error instanceof ApiError && error.code === "incomplete")
      return oauthError("temporarily_unavailable", "The device did not confirm. Try again.", 503, { "Retry-After": "5" });
    // A grant of a removed device is gone already.
    if (error instanceof ApiError && error.code === "not_found") return done();
    throw error;
  }
}

/** Removes what the library keeps for a person who was removed. Their grants are what counts; this only tidies up. */
export async function forgetAuthorizations(env: Env, memberId: string): Promise<void> {
  const { origins } = configOf(env);
  // Without OAuth there is nothing a token could be asked for with, and what is stored runs out by itself.
  if (oauthOff(origins, origins[0] ?? "") !== undefined) return;
  const api = oauthApi(env, undefined);
  for (const id of await listAuthorizationIds(env.DB, memberId, API.listRows)) await api.revokeGrant(id, memberId);
}
