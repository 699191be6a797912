/**
 * The API's door: whoever is behind an owner token or a signed-in browser, and what their role lets them do. A token
 * is sent on purpose; a cookie is sent by any page, so a change made with one needs the Origin of this relay.
 */
import type { Context, MiddlewareHandler } from "hono";
import type { AppEnv } from "../env.ts";
import { findTokenHolder, type TokenHolder } from "../db/owner-tokens.ts";
import { ApiError } from "../errors.ts";
import { bearerToken } from "./bearer.ts";
import { countFailure, limitRequests, refuseAfterFailures } from "./rate-limit.ts";
import { hashSecret, isOwnerToken } from "./secrets.ts";
import { requireSameOrigin, webSession } from "./web-session.ts";

const NEEDS_TOKEN = "A valid owner token is needed: --owner-token or LONGLINE_OWNER_TOKEN.";
const SAFE_METHODS: ReadonlySet<string> = new Set(["GET", "HEAD"]);

async function tokenHolder(c: Context<AppEnv>): Promise<TokenHolder | null> {
  const token = bearerToken(c.req.raw.headers);
  // Looked up by hash: how long the look-up takes says nothing about the token.
  return token === undefined || !isOwnerToken(token) ? null : findTokenHolder(c.env.DB, await hashSecret(token));
}

async function cookieHolder(c: Context<AppEnv>): Promise<TokenHolder | null> {
  const session = await webSession(c);
  if (session === null) return null;
  // SECURITY: before anything is changed for the cookie's sake.
  if (!SAFE_METHODS.has(c.req.method)) requireSameOrigin(c);
  return { id: session.memberId, name: session.name, role: session.role };
}

/** Without one there was no attempt at anything: a page whose session is over, or a command that was given no token. */
function hasCredential(c: Context<AppEnv>): boolean {
  return c.req.header("authorization") !== undefined || c.req.header("cookie") !== undefined;
}

/** Lets people through and sets `member`; 401 for everybody else. An Authorization header decides alone when there is one. */
export const membersOnly: MiddlewareHandler<AppEnv> = async (c, next) => {
  refuseAfterFailures(c, "failures");
  const holder = c.req.header("authorization") === undefined ? await cookieHolder(c) : await tokenHolder(c);
  if (holder === null) {
    if (hasCredential(c)) countFailure(c, "failures");
    else limitRequests(c, "unauthenticated");
    throw new ApiError("not_authorised", NEEDS_TOKEN);
  }
  c.set("member", holder);
  await next();
};

/** Behind `membersOnly`: 403 for somebody who is not an owner. */
export const ownersOnly: MiddlewareHandler<AppEnv> = async (c, next) => {
  if (c.get("member").role !== "owner") throw new ApiError("forbidden", "Only an owner of this relay may do this.");
  await next();
};
