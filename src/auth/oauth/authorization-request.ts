/**
 * The authorization request (RFC 6749 §4.1.1, OAuth 2.1 §4.1.1): checked by the library, and where it is laxer than this
 * relay, here. Nothing about devices is looked up, so a stranger learns nothing about them.
 */
import { AuthorizationError, authorizationErrorRedirect, type AuthRequest, CimdFetchError } from "@cloudflare/workers-oauth-provider";
import { configOf, type Env } from "../../env.ts";
import { OAUTH, WEB } from "../../limits.ts";
import { cleanText } from "../../policy/clean-text.ts";
import { OAUTH_PATHS } from "./availability.ts";
import { type Redirect, readRedirect } from "./redirects.ts";
import { readResource, type Resource } from "./resources.ts";
import { oauthApi } from "./server.ts";

/** Who asks, as a person should see it. Everything but `domain` is the client's own claim. */
export interface ClientView {
  id: string;
  name: string;
  /** The host that published the client's metadata document; absent for one that registered itself. */
  domain: string | undefined;
}

/** A request that may be shown to the person it is about. */
export interface Asked {
  request: AuthRequest;
  resource: Resource;
  client: ClientView;
  redirect: Redirect;
}

/**
 * What an authorization request is. `broken`: nobody to tell but the person; `refused`: `to` is where the client would
 * hear it, which a page must not go to by itself unless the client is known to the person (RFC 9700 §4.11.2).
 */
export type ReadRequest =
  | { kind: "asked"; asked: Asked }
  | { kind: "broken"; message: string }
  | { kind: "refused"; message: string; to: string; redirect: Redirect };

const SINGLE = [
  "response_type",
  "client_id",
  "redirect_uri",
  "scope",
  "state",
  "code_challenge",
  "code_challenge_method",
  "resource",
  "response_mode",
];
/** RFC 7636 §4.2: base64url of a SHA-256. */
const S256_CHALLENGE = /^[A-Za-z0-9_-]{43}$/;

function broken(message: string): ReadRequest {
  return { kind: "broken", message };
}

/** RFC 6749 §3.1: no parameter more than once. */
function shapeProblem(query: string, params: URLSearchParams): string | undefined {
  if (query.length > WEB.nextLength) return "The request is too long.";
  const repeated = SINGLE.find((name) => params.getAll(name).length > 1);
  if (repeated !== undefined) return `The parameter ${repeated} is there more than once.`;
  if ((params.get("state") ?? "").length > OAUTH.stateLength) return "The state is too long.";
  return undefined;
}

function laxer(
  request: AuthRequest,
  params: URLSearchParams,
): { error: "invalid_request" | "invalid_target"; message: string } | undefined {
  if (request.codeChallenge === undefined || request.codeChallengeMethod !== "S256" || !S256_CHALLENGE.test(request.codeChallenge))
    return { error: "invalid_request", message: "PKCE with S256 is required." };
  if ((params.get("response_mode") ?? "query") !== "query")
    return { error: "invalid_request", message: "Only the response mode query is supported." };
  return undefined;
}

function targetProblem(params: URLSearchParams): string {
  return params.has("resource")
    ? "The parameter resource must be the exact MCP URL of a device of this relay."
    : "The parameter resource is required: the MCP URL of the device.";
}

function refusedBy(error: unknown): ReadRequest {
  if (error instanceof CimdFetchError)
    return broken("The client's metadata document could not be read, or it does not describe this client. Its publisher has to mend it.");
  if (!(error instanceof AuthorizationError)) throw error;
  const redirect = error.redirectUri === undefined ? undefined : readRedirect(error.redirectUri);
  const message = cleanText(error.description);
  if (error.redirectTo === undefined || redirect === undefined) return broken(message);
  return { kind: "refused", message, to: error.redirectTo, redirect };
}

/** Reads the query of an authorization request. */
export async function readAuthorizationRequest(env: Env, query: string): Promise<ReadRequest> {
  const params = new URLSearchParams(query);
  const malformed = shapeProblem(query, params);
  if (malformed !== undefined) return broken(malformed);
  const redirect = readRedirect(params.get("redirect_uri") ?? "");
  if (redirect === undefined) return broken("The redirect URI is missing, or this relay sends no codes to such an address.");
  const { origins } = configOf(env);
  const resource = readResource(origins, params.get("resource"));
  try {
    const api = oauthApi(env, resource?.resource);
    const request = await api.parseAuthRequest(libraryUrl(origins[0] ?? "", params, resource));
    const problem = resource === undefined ? { error: "invalid_target" as const, message: targetProblem(params) } : laxer(request, params);
    if (problem !== undefined)
      return {
        kind: "refused",
        message: problem.message,
        to: authorizationErrorRedirect(request, problem.error, problem.message),
        redirect,
      };
    const { clientName, clientDomain } = await api.describeConsent(request);
    const name = cleanText(clientName, OAUTH.clientNameLength);
    const client = { id: request.clientId, name: name === "" ? "A client without a name" : name, domain: clientDomain };
    // Without a resource there was a problem.
    return resource === undefined ? broken("There is no resource.") : { kind: "asked", asked: { request, resource, client, redirect } };
  } catch (error) {
    return refusedBy(error);
  }
}

/** The request on the canonical origin, where the library expects it. A resource that is none of ours is for us to refuse. */
function libraryUrl(canonical: string, params: URLSearchParams, resource: Resource | undefined): Request {
  const url = new URL(OAUTH_PATHS.authorize, canonical);
  for (const [name, value] of params) if (name !== "resource") url.searchParams.append(name, value);
  if (resource !== undefined) url.searchParams.set("resource", resource.resource);
  return new Request(url);
}
