/**
 * The API, `/api`: what the command line and the console drive the relay with. Owners use all of it; a member sees the
 * devices that are shared with them, and their own grants.
 */
import { Hono } from "hono";
import { membersOnly } from "../auth/owner.ts";
import type { AppEnv } from "../env.ts";
import { auditRoutes } from "./api-audit.ts";
import { deviceChangeRoutes } from "./api-device-changes.ts";
import { deviceSettingsRoutes } from "./api-device-settings.ts";
import { deviceRoutes } from "./api-devices.ts";
import { drainRoutes } from "./api-drain.ts";
import { keyRoutes } from "./api-keys.ts";
import { originRoutes } from "./api-origins.ts";
import { pairingRoutes } from "./api-pairings.ts";
import { peopleRoutes } from "./api-people.ts";
import { tokenRoutes } from "./api-tokens.ts";
import { boundedBody } from "./body.ts";

/** Everything below `/api`. The door comes first, so that a stranger's body is never read. */
export function apiRoutes(): Hono<AppEnv> {
  const app = new Hono<AppEnv>().basePath("/api");
  app.use("*", membersOnly, boundedBody);
  app.route("/", deviceRoutes());
  app.route("/", deviceSettingsRoutes());
  app.route("/", deviceChangeRoutes());
  app.route("/", tokenRoutes());
  app.route("/", auditRoutes());
  app.route("/", keyRoutes());
  app.route("/", drainRoutes());
  app.route("/", originRoutes());
  app.route("/", peopleRoutes());
  app.route("/", pairingRoutes());
  return app;
}
