/** The Worker's one app: the layers every request passes, in this order, then the routes. */
import { Hono, type MiddlewareHandler } from "hono";
import { hostAndOrigin } from "./auth/host-origin.ts";
import { knownOrigins } from "./auth/known-origins.ts";
import { requestId, requestLog } from "./auth/request-log.ts";
import { restOfBody } from "./auth/rest-of-body.ts";
import { securityHeaders } from "./auth/security-headers.ts";
import type { AppEnv } from "./env.ts";
import { accountRoutes } from "./routes/account.ts";
import { notFound, onError } from "./routes/answer.ts";
import { agentFileRoutes } from "./routes/agent-file.ts";
import { apiRoutes } from "./routes/api.ts";
import { consoleRoutes } from "./routes/console.ts";
import { healthRoutes } from "./routes/health.ts";
import { joinRoutes } from "./routes/join.ts";
import { mcpRoutes } from "./routes/mcp.ts";
import { metricsRoutes } from "./routes/metrics.ts";
import { oauthRoutes } from "./routes/oauth.ts";
import { pairRoutes } from "./routes/pair.ts";
import { signInRoutes } from "./routes/sign-in.ts";
import { tunnelRoutes } from "./routes/tunnel.ts";
import { wellKnownRoutes } from "./routes/well-known.ts";

/** The layers, outermost first. The order is a promise: whatever an inner one refuses is still logged, marked and safe. */
export const LAYERS: readonly (readonly [name: string, layer: MiddlewareHandler<AppEnv>])[] = [
  ["request id", requestId],
  ["log", requestLog],
  ["rest of the body", restOfBody],
  ["security headers", securityHeaders],
  ["known origins", knownOrigins],
  ["host and origin", hostAndOrigin],
];

/** Builds the app. */
export function createApp(): Hono<AppEnv> {
  // Not strict: a trailing slash is served as it is, because a redirect loses a client's headers.
  const app = new Hono<AppEnv>({ strict: false });
  for (const [, layer] of LAYERS) app.use("*", layer);
  app.route("/", healthRoutes());
  app.route("/", metricsRoutes());
  app.route("/", agentFileRoutes());
  app.route("/", wellKnownRoutes());
  app.route("/", oauthRoutes());
  app.route("/", tunnelRoutes());
  app.route("/", signInRoutes());
  app.route("/", joinRoutes());
  app.route("/", accountRoutes());
  app.route("/", consoleRoutes());
  app.route("/", pairRoutes());
  app.route("/", apiRoutes());
  app.route("/", mcpRoutes());
  app.onError(onError);
  app.notFound(notFound);
  return app;
}
