/**
 * The console, `/console`: pages that use the same operations as the API. Whoever is signed in at this browser comes in;
 * an owner sees everything, a member what is shared with them. GET changes nothing, and each change is checked for its
 * Origin where its form is read.
 */
import { type Context, Hono, type MiddlewareHandler } from "hono";
import type { ContentfulStatusCode } from "hono/utils/http-status";
import { requireWebSession } from "../auth/web-session.ts";
import { messagePage } from "../console/page.tsx";
import type { AppEnv } from "../env.ts";
import { API_ERRORS, ApiError } from "../errors.ts";
import { log } from "../log.ts";
import { consoleAuditRoutes } from "./console-audit.ts";
import { consoleDeviceRoutes } from "./console-devices.ts";
import { consoleGrantRoutes } from "./console-grants.ts";
import { consoleLiveRoutes } from "./console-live.ts";
import { consolePeopleRoutes } from "./console-people.ts";
import { consoleShareRoutes } from "./console-share.ts";
import { consoleToolRoutes } from "./console-tools.ts";

/** Lets signed-in people through and sets `member`; everybody else goes to the sign-in page and comes back. */
const signedInOnly: MiddlewareHandler<AppEnv> = async (c, next) => {
  const session = await requireWebSession(c);
  if (session instanceof Response) return session;
  c.set("member", { id: session.memberId, name: session.name, role: session.role });
  await next();
  return undefined;
};

/** An error as a page. An unknown one says nothing but the request's id, under which the log has it. */
async function onProblem(error: Error, c: Context<AppEnv>): Promise<Response> {
  if (error instanceof ApiError) {
    const status = (API_ERRORS[error.code].status || 500) as ContentfulStatusCode;
    return await messagePage(c, TITLES[error.code] ?? "That did not work", error.message, status);
  }
  const id = c.get("requestId");
  log("error", "request.failed", { id, error });
  return await messagePage(c, "Something failed", `Something failed inside the relay. Its log has the details under ${id}.`, 500);
}

const TITLES: Partial<Record<ApiError["code"], string>> = {
  not_found: "Not found",
  forbidden: "Not for you",
  incomplete: "Not finished",
};

/** Everything below `/console`. */
export function consoleRoutes(): Hono<AppEnv> {
  const app = new Hono<AppEnv>().basePath("/console");
  app.use("*", signedInOnly);
  app.route("/", consoleDeviceRoutes());
  app.route("/", consoleShareRoutes());
  app.route("/", consoleGrantRoutes());
  app.route("/", consoleToolRoutes());
  app.route("/", consoleLiveRoutes());
  app.route("/", consolePeopleRoutes());
  app.route("/", consoleAuditRoutes());
  app.onError(onProblem);
  return app;
}
