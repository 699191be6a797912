/** The owner API, `/api`: what the command line and the console drive the relay with. Owner tokens only. */
import { Hono } from "hono";
import { ownerOnly } from "../auth/owner.ts";
import type { AppEnv } from "../env.ts";
import { deviceRoutes } from "./api-devices.ts";
import { tokenRoutes } from "./api-tokens.ts";
import { boundedBody } from "./body.ts";

/** Everything below `/api`. The owner's door comes first, so that a stranger's body is never read. */
export function apiRoutes(): Hono<AppEnv> {
  const app = new Hono<AppEnv>().basePath("/api");
  app.use("*", ownerOnly, boundedBody);
  app.route("/", deviceRoutes());
  app.route("/", tokenRoutes());
  return app;
}
