/**
 * Web sign-in sessions: a random secret in a cookie, its hash in D1. The cookie is `HttpOnly` and `SameSite=Lax`; a
 * state change also needs the Origin header of this relay, which another site cannot forge. On https the cookie has the
 * `__Host-` prefix (RFC 6265bis §4.1.3.2); on plain http, where browsers refuse the prefix, its name carries the port,
 * because cookies do not tell the ports of one machine apart.
 */
import type { Context } from "hono";
import { deleteCookie, getCookie, setCookie } from "hono/cookie";
import { findWebSession, insertWebSession, revokeWebSession, type SignInWay, type WebSession } from "../db/web-sessions.ts";
import type { AppEnv } from "../env.ts";
import { ApiError } from "../errors.ts";
import { WEB } from "../limits.ts";
import { localPath } from "./local-path.ts";
import { hashSecret, randomId, randomSecret } from "./secrets.ts";

export type { WebSession } from "../db/web-sessions.ts";

const SESSION = /^lls_[A-Za-z0-9_-]{43}$/;
/** Where somebody who is not signed in is sent. */
export const SIGN_IN_PATH = "/sign-in";
/** Where a person lands who asked for no page in particular. */
export const HOME_PATH = "/console";

function cookieOf(c: Context<AppEnv>): { name: string; secure: boolean } {
  // The public origin decides, not the socket: behind a proxy that ends TLS the relay itself sees http.
  const url = new URL(c.get("origin"));
  return url.protocol === "https:"
    ? { name: "__Host-longline", secure: true }
    : { name: `longline-${url.port === "" ? "80" : url.port}`, secure: false };
}

/** The session of a request, or null. Reads D1 only when the cookie has the form of a session. */
export async function webSession(c: Context<AppEnv>): Promise<WebSession | null> {
  const value = getCookie(c, cookieOf(c).name);
  if (value === undefined || !SESSION.test(value)) return null;
  return findWebSession(c.env.DB, await hashSecret(value), Date.now());
}

/** The session of a request, or the redirect to the sign-in page that comes back to this URL afterwards. */
export async function requireWebSession(c: Context<AppEnv>): Promise<WebSession | Response> {
  const session = await webSession(c);
  return session ?? c.redirect(signInUrl(currentPath(c)), 303);
}

/** Path and query of the request, as something to come back to; a state change is not. */
function currentPath(c: Context<AppEnv>): string {
  if (c.req.method !== "GET" && c.req.method !== "HEAD") return HOME_PATH;
  const { pathname, search } = new URL(c.req.url);
  return localPath(`${pathname}${search}`, HOME_PATH);
}

/** The sign-in page that continues at `next`, a local path. */
export function signInUrl(next: string): string {
  return `${SIGN_IN_PATH}?${new URLSearchParams({ next: localPath(next, HOME_PATH) }).toString()}`;
}

/**
 * Refuses a state change that does not come from a page of this origin. SECURITY: to be called before anything is read
 * or changed for a cookie's sake. An absent Origin is refused too: every browser sends one with such a request.
 */
export function requireSameOrigin(c: Context<AppEnv>): void {
  if (c.req.header("origin") !== c.get("origin"))
    throw new ApiError("forbidden", "This request did not come from a page of this relay. Open the page again and repeat it there.");
}

/** Signs a person in at this browser: the session's hash is stored, its secret goes into the cookie. */
export async function openWebSession(c: Context<AppEnv>, memberId: string, via: SignInWay): Promise<void> {
  const secret = `lls_${randomSecret()}`;
  const createdAt = Date.now();
  await insertWebSession(c.env.DB, {
    hash: await hashSecret(secret),
    id: randomId(),
    memberId,
    via,
    createdAt,
    expiresAt: createdAt + WEB.sessionMs,
  });
  const { name, secure } = cookieOf(c);
  setCookie(c, name, secret, { path: "/", httpOnly: true, sameSite: "Lax", secure, maxAge: WEB.sessionMs / 1000 });
}

/** Signs the person out: the session is ended in D1 and the cookie taken away. */
export async function closeWebSession(c: Context<AppEnv>): Promise<void> {
  const session = await webSession(c);
  if (session !== null) await revokeWebSession(c.env.DB, session.sessionId, Date.now());
  const { name, secure } = cookieOf(c);
  deleteCookie(c, name, { path: "/", secure });
}
