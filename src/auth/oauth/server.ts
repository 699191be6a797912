/**
 * The provider library's authorization-server half, made for one request and one resource. It keeps clients, codes and
 * refresh tokens; whether a grant lives and what it allows is decided by the relay's own record.
 */
import { OAuthAuthorizationServer, type OAuthHelpers, type TokenExchangeCallbackOptions } from "@cloudflare/workers-oauth-provider";
import { configOf, type Env } from "../../env.ts";
import { OAUTH } from "../../limits.ts";
import { log } from "../../log.ts";
import { OAUTH_PATHS } from "./availability.ts";
import { registrationProblem } from "./redirects.ts";
import { noResource } from "./resources.ts";

/** Scopes that are listed; `tool:NAME` comes with the challenge of the tool that needs it. */
export const LISTED_SCOPES = ["device:read", "device:call"];

/** What the token endpoint hears of an exchange, and may refuse. */
export interface ExchangeHooks {
  onExchange: (options: TokenExchangeCallbackOptions<Env>) => Promise<{ lifeSeconds: number }>;
  /** The library's own name of what failed; never shown to the client. An answer replaces the library's. */
  onFailure: (reason: string) => Response | undefined;
}

function options(
  env: Env,
  resource: string,
  hooks: ExchangeHooks | undefined,
): ConstructorParameters<typeof OAuthAuthorizationServer<Env>>[0] {
  const [issuer = ""] = configOf(env).origins;
  return {
    issuer,
    resources: [resource],
    authorizeEndpoint: OAUTH_PATHS.authorize,
    tokenEndpoint: OAUTH_PATHS.token,
    clientRegistrationEndpoint: OAUTH_PATHS.register,
    scopesSupported: [...LISTED_SCOPES],
    accessTokenTTL: OAUTH.accessTokenSeconds,
    clientRegistrationTTL: OAUTH.registrationSeconds,
    clientIdMetadataDocumentEnabled: true,
    // The library lets any scheme through with this; `readRedirect` decides which.
    allowPrivateUseRedirectUris: true,
    clientRegistrationCallback: ({ clientMetadata }) => {
      const problem = registrationProblem(clientMetadata["redirect_uris"]);
      return problem === undefined ? undefined : { code: "invalid_redirect_uri", description: problem };
    },
    ...(hooks === undefined
      ? {}
      : {
          tokenExchangeCallback: async (exchange: TokenExchangeCallbackOptions<Env>) => {
            const { lifeSeconds } = await hooks.onExchange(exchange);
            // The library's refresh token ends with our grant, whichever way that end was moved since.
            return {
              accessTokenTTL: Math.min(OAUTH.accessTokenSeconds, lifeSeconds),
              refreshTokenTTL: lifeSeconds,
              refreshTokenIdleTTL: lifeSeconds,
            };
          },
        }),
    onError: ({ code, status, internal }) => {
      log("info", "oauth.refused", { code, status, category: internal.category, reason: internal.reason });
      return hooks?.onFailure(internal.reason);
    },
  };
}

/** An authorization server for one request. `resource` is the one device it is about, or undefined for none. */
export function authorizationServer(env: Env, resource: string | undefined, hooks?: ExchangeHooks): OAuthAuthorizationServer<Env> {
  const [canonical = ""] = configOf(env).origins;
  return new OAuthAuthorizationServer(options(env, resource ?? noResource(canonical), hooks));
}

/** The helpers of a server for one request. */
export function oauthApi(env: Env, resource: string | undefined): OAuthHelpers {
  return authorizationServer(env, resource).getOAuthApi(env);
}

/** A request as the library expects it: on the canonical origin, with nothing of the caller's but what it has to see. */
export function libraryRequest(env: Env, path: string, init: { headers: Headers; body: string }): Request {
  const [canonical = ""] = configOf(env).origins;
  const headers = new Headers();
  for (const name of ["authorization", "content-type"]) {
    const value = init.headers.get(name);
    if (value !== null) headers.set(name, value);
  }
  return new Request(`${canonical}${path}`, { method: "POST", headers, body: init.body });
}
