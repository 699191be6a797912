/**
 * `/sign-in` and `/sign-out`: an owner token, Cloudflare Access or an OIDC issuer becomes a session of this browser. A GET
 * changes nothing by itself: it signs in only whom Access or the issuer has just vouched for.
 */
import { type Context, Hono } from "hono";
import { accessIdentity } from "../auth/cloudflare-access.ts";
import { localPath } from "../auth/local-path.ts";
import { beginOidc, CALLBACK_PATH, endOidc } from "../auth/oidc.ts";
import { memberOf } from "../auth/outside-identity.ts";
import { countFailure, limitRequests, refuseAfterFailures } from "../auth/rate-limit.ts";
import { hashSecret, isOwnerToken } from "../auth/secrets.ts";
import { closeWebSession, HOME_PATH, openWebSession, webSession } from "../auth/web-session.ts";
import { messagePage } from "../console/page.tsx";
import { signInPage } from "../console/sign-in-page.tsx";
import { findTokenHolder } from "../db/owner-tokens.ts";
import { type AppEnv, configOf } from "../env.ts";
import { ApiError } from "../errors.ts";
import { readForm } from "./form.ts";

function show(c: Context<AppEnv>, next: string, problem?: string): Promise<Response> {
  const { oidc } = configOf(c.env).signIn;
  return signInPage(c, { next, issuer: oidc === undefined ? undefined : new URL(oidc.issuer).host, problem });
}

async function page(c: Context<AppEnv>): Promise<Response> {
  const next = localPath(c.req.query("next"), HOME_PATH);
  if ((await webSession(c)) !== null) return c.redirect(next, 303);
  const { signIn } = configOf(c.env);
  // Anybody can send an assertion, and each makes the relay fetch the keys of Access.
  if (signIn.access !== undefined) limitRequests(c, "codes");
  const person = signIn.access === undefined ? null : await accessIdentity(c, signIn.access);
  if (person === null) return show(c, next);
  return await outside(c, async () => {
    await openWebSession(c, await memberOf(c.env, signIn, person), "access");
    return next;
  });
}

async function withToken(c: Context<AppEnv>): Promise<Response> {
  const form = await readForm(c);
  const next = localPath(form.get("next") ?? undefined, HOME_PATH);
  const token = (form.get("token") ?? "").trim();
  refuseAfterFailures(c, "failures");
  // Looked up by hash: how long the look-up takes says nothing about the token.
  const holder = isOwnerToken(token) ? await findTokenHolder(c.env.DB, await hashSecret(token)) : null;
  if (holder === null) {
    countFailure(c, "failures");
    return show(c, next, "This token does not open this relay. Copy it again, the whole text that starts with llo_.");
  }
  await openWebSession(c, holder.id, "token");
  return c.redirect(next, 303);
}

/** Runs a sign-in through somebody else; what goes wrong there is said on a page. */
async function outside(c: Context<AppEnv>, work: () => Promise<string>): Promise<Response> {
  try {
    return c.redirect(await work(), 303);
  } catch (error) {
    if (error instanceof ApiError) return await messagePage(c, "Not signed in", error.message, error.code === "forbidden" ? 403 : 502);
    throw error;
  }
}

function oidcOf(c: Context<AppEnv>) {
  const { oidc } = configOf(c.env).signIn;
  if (oidc === undefined) throw new ApiError("not_found", "This relay has no sign-in service. Use a link or an owner token.");
  limitRequests(c, "codes");
  return oidc;
}

/** The sign-in routes. */
export function signInRoutes(): Hono<AppEnv> {
  const app = new Hono<AppEnv>();
  app.get("/sign-in", page);
  app.post("/sign-in", withToken);
  app.get("/sign-in/oidc", async (c) => {
    const oidc = oidcOf(c);
    return await outside(c, () => beginOidc(c, oidc, localPath(c.req.query("next"), HOME_PATH)));
  });
  app.get(CALLBACK_PATH, async (c) => {
    const oidc = oidcOf(c);
    return await outside(c, async () => {
      const { person, next } = await endOidc(c, oidc);
      await openWebSession(c, await memberOf(c.env, configOf(c.env).signIn, person), "oidc");
      return localPath(next, HOME_PATH);
    });
  });
  app.post("/sign-out", async (c) => {
    await readForm(c);
    await closeWebSession(c);
    return c.redirect("/sign-in", 303);
  });
  return app;
}
