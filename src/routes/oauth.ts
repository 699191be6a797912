/**
 * The authorization server's routes (OAuth 2.1, RFC 8414, RFC 7591, RFC 7009). None of them is on the path of a call.
 * Where the relay has no secure origin they say why there is no OAuth.
 */
import { type Context, Hono, type MiddlewareHandler } from "hono";
import { boundedText, oauthError } from "../auth/oauth/answers.ts";
import { OAUTH_PATHS, oauthOff } from "../auth/oauth/availability.ts";
import { serverMetadata } from "../auth/oauth/metadata.ts";
import { forgetAuthorizations, revocationEndpoint } from "../auth/oauth/revocation.ts";
import { authorizationServer, libraryRequest } from "../auth/oauth/server.ts";
import { tokenEndpoint } from "../auth/oauth/token-endpoint.ts";
import { hasFailedTooOften, isOneTooMany, noteFailure } from "../auth/rate-limit.ts";
import { onMemberRemoved } from "../auth/remove-member.ts";
import { type AppEnv, configOf } from "../env.ts";
import { errorAnswer } from "./answer.ts";
import { authorizeRoutes } from "./oauth-authorize.ts";

onMemberRemoved(forgetAuthorizations);

const secureOnly: MiddlewareHandler<AppEnv> = async (c, next) => {
  const off = oauthOff(configOf(c.env).origins, c.get("origin"));
  if (off === undefined) return await next();
  return errorAnswer(c, "not_found", off);
};

async function metadata(c: Context<AppEnv>): Promise<Response> {
  return c.json(await serverMetadata(c.env, c.executionCtx as ExecutionContext));
}

function tooMany(): Response {
  // RFC 6585 §4; the library's clients read the body as RFC 6749 §5.2 has it.
  return oauthError("temporarily_unavailable", "Too many requests. Wait a minute, then try again.", 429, { "Retry-After": "60" });
}

/** RFC 6749 §5.2: what a code, token or client that opens nothing is answered with. */
const REFUSED: ReadonlySet<number> = new Set([400, 401]);

/** Runs an endpoint that takes credentials: an address that failed too often is not looked at, and each failure is counted. */
async function counted(c: Context<AppEnv>, endpoint: () => Promise<Response>): Promise<Response> {
  if (hasFailedTooOften(c, "exchanges")) return tooMany();
  const response = await endpoint();
  if (!REFUSED.has(response.status)) return response;
  noteFailure(c);
  return isOneTooMany(c, "exchanges") ? tooMany() : response;
}

async function register(c: Context<AppEnv>): Promise<Response> {
  if (isOneTooMany(c, "registrations")) return tooMany();
  const body = await boundedText(c.req.raw);
  if (body instanceof Response) return body;
  const request = libraryRequest(c.env, OAUTH_PATHS.register, { headers: c.req.raw.headers, body });
  return await authorizationServer(c.env, undefined).fetch(request, c.env, c.executionCtx as ExecutionContext);
}

/** The OAuth routes. */
export function oauthRoutes(): Hono<AppEnv> {
  const app = new Hono<AppEnv>();
  for (const path of Object.values(OAUTH_PATHS)) app.use(path, secureOnly);
  app.get(OAUTH_PATHS.metadata, metadata);
  // Clients of MCP 2025-11-25 and later look here too when they find nothing there (Authorization Server Discovery).
  app.get(OAUTH_PATHS.openid, metadata);
  for (const [path, endpoint] of [
    [OAUTH_PATHS.token, tokenEndpoint],
    [OAUTH_PATHS.revoke, revocationEndpoint],
  ] as const)
    app.post(path, async (c) => await counted(c, () => endpoint(c.env, c.executionCtx as ExecutionContext, c.req.raw)));
  app.post(OAUTH_PATHS.register, register);
  app.route("/", authorizeRoutes());
  for (const path of [OAUTH_PATHS.token, OAUTH_PATHS.revoke, OAUTH_PATHS.register])
    app.all(path, () => oauthError("invalid_request", "This endpoint takes POST.", 405, { Allow: "POST, OPTIONS" }));
  return app;
}
