/** `/oauth/authorize`: a person decides. GET shows the request and changes nothing; POST is the form of that page. */
import { type Context, Hono } from "hono";
import { OAUTH_PATHS } from "../auth/oauth/availability.ts";
import { type Asked, readAuthorizationRequest, type ReadRequest } from "../auth/oauth/authorization-request.ts";
import type { Choice } from "../auth/oauth/choice.ts";
import { type Consent, consentFor, isDeclinedAlready, sealConsent, unsealConsent } from "../auth/oauth/consent.ts";
import { approve, decline, declinedRedirect, invalidTarget } from "../auth/oauth/decide-consent.ts";
import { limitRequests } from "../auth/rate-limit.ts";
import { requireWebSession, webSession, type WebSession } from "../auth/web-session.ts";
import { authorizationProblemPage, consentPage } from "../console/consent-page.tsx";
import type { AppEnv } from "../env.ts";
import { ApiError } from "../errors.ts";
import { OAUTH } from "../limits.ts";
import { readForm } from "./form.ts";

const DAY_MS = 24 * 3_600 * 1000;
const NOT_YOURS = "There is no such device here that you may use. Ask the owner of this relay for an invitation.";

/** RFC 9700 §4.11.2: a client that anybody can register is no place to send a browser to unasked; this machine is. */
function refuse(c: Context<AppEnv>, read: Exclude<ReadRequest, { kind: "asked" }>): Promise<Response> | Response {
  if (read.kind === "broken") return authorizationProblemPage(c, { message: read.message });
  if (read.redirect.kind === "loopback") return c.redirect(read.to, 302);
  return authorizationProblemPage(c, { message: read.message, back: { to: read.to, shown: read.redirect.shown } });
}

function notYours(c: Context<AppEnv>, asked: Asked): Promise<Response> | Response {
  return refuse(c, { kind: "refused", message: NOT_YOURS, to: invalidTarget(asked, NOT_YOURS), redirect: asked.redirect });
}

function queryOf(c: Context<AppEnv>): string {
  return new URL(c.req.url).search.slice(1);
}

async function show(c: Context<AppEnv>): Promise<Response> {
  if ((await webSession(c)) === null) limitRequests(c, "authorizations");
  const query = queryOf(c);
  const read = await readAuthorizationRequest(c.env, query);
  if (read.kind !== "asked") return await refuse(c, read);
  const session = await requireWebSession(c);
  if (session instanceof Response) return session;
  const consent = await consentFor(c.env, read.asked, session);
  if (consent === null) return await notYours(c, read.asked);
  // The person knows this client: it has a grant of theirs.
  if (isDeclinedAlready(consent, Date.now())) return c.redirect(declinedRedirect(consent), 302);
  const sealed = await sealConsent(c.env, session, query, Date.now());
  return await consentPage(c, consent, { action: OAUTH_PATHS.authorize, sealed });
}

function choiceOf(form: URLSearchParams): Choice {
  return {
    all: form.get("scope") === "all",
    tools: form.getAll("tool"),
    resources: form.get("resources") === "yes",
    prompts: form.get("prompts") === "yes",
  };
}

function lifeOf(form: URLSearchParams): number {
  const days = Number(form.get("days"));
  const longest = Math.max(...OAUTH.lifeDays);
  if (!Number.isFinite(days) || days <= 0 || days > longest) throw new ApiError("bad_request", "Choose until when the access lasts.");
  return days * DAY_MS;
}

async function decide(c: Context<AppEnv>, consent: Consent, form: URLSearchParams): Promise<Response> {
  const decision = form.get("decision");
  try {
    if (decision === "deny") return c.redirect(await decline(c.env, consent), 303);
    if (decision === "allow") return c.redirect(await approve(c.env, consent, choiceOf(form), lifeOf(form)), 303);
  } catch (error) {
    if (error instanceof ApiError) return await authorizationProblemPage(c, { message: error.message });
    throw error;
  }
  return await authorizationProblemPage(c, { message: "Press one of the two buttons of the page." });
}

/** SECURITY: the Origin is checked first, then that the form was made for this session; the request is read anew from what was sealed. */
async function answer(c: Context<AppEnv>): Promise<Response> {
  const form = await readForm(c);
  const session: WebSession | null = await webSession(c);
  const query = session === null ? undefined : await unsealConsent(c.env, session, form.get("consent") ?? "", Date.now());
  if (session === null || query === undefined)
    return await authorizationProblemPage(c, {
      message: "This page is too old, or was made for another sign-in. Start again at the client.",
    });
  const read = await readAuthorizationRequest(c.env, query);
  if (read.kind !== "asked") return await refuse(c, read);
  const consent = await consentFor(c.env, read.asked, session);
  return consent === null ? await notYours(c, read.asked) : await decide(c, consent, form);
}

/** The authorization endpoint. */
export function authorizeRoutes(): Hono<AppEnv> {
  return new Hono<AppEnv>().get(OAUTH_PATHS.authorize, show).post(OAUTH_PATHS.authorize, answer);
}
