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
import { limitRequests } from "../auth/rate-limit.ts";
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

async function register(c: Context<AppEnv>): Promise<Response> {
  limitRequests(c, "registrations");
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
  app.post(OAUTH_PATHS.token, async (c) => await tokenEndpoint(c.env, c.executionCtx as ExecutionContext, c.req.raw));
  app.post(OAUTH_PATHS.revoke, async (c) => await revocationEndpoint(c.env, c.executionCtx as ExecutionContext, c.req.raw));
  app.post(OAUTH_PATHS.register, register);
  app.route("/", authorizeRoutes());
  for (const path of [OAUTH_PATHS.token, OAUTH_PATHS.revoke, OAUTH_PATHS.register])
    app.all(path, () => oauthError("invalid_request", "This endpoint takes POST.", 405, { Allow: "POST, OPTIONS" }));
  return app;
}
