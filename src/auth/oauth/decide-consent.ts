/** What approving or declining does: a grant in record and copy, an authorization with the library, and a way back for the client. */
import { authorizationErrorRedirect } from "@cloudflare/workers-oauth-provider";
import { insertAuthorization } from "../../db/oauth-authorizations.ts";
import { forgetDeclined, recordDeclined } from "../../db/oauth-declined.ts";
import { insertOAuthGrant } from "../../db/oauth-grants.ts";
import type { GrantRecord } from "../../db/grants.ts";
import type { Env } from "../../env.ts";
import { ApiError } from "../../errors.ts";
import { GRANT, OAUTH } from "../../limits.ts";
import { access, type Rights } from "../../policy/grant.ts";
import { recordAction } from "../admin-audit.ts";
import { changeGrant } from "../change-grant.ts";
import { addGrant, revokeEverywhere } from "../record-and-copy.ts";
import { randomId } from "../secrets.ts";
import { authorizationIdOf } from "./answers.ts";
import { type Choice, grantedScopes, rightsOf, toolScope } from "./choice.ts";
import { type Consent, declinedKey } from "./consent.ts";
import { oauthApi } from "./server.ts";

const DECLINED = "The person declined.";

/** Tools that were asked for, are not allowed yet, and were not ticked. */
function declinedNow({ offers }: Consent, rights: Rights): string[] {
  return offers.filter((offer) => offer.asked && access(rights, "tools", [offer.name]) !== "allowed").map((offer) => offer.name);
}

/** Puts a decision into the audit, and whether it reached everything. */
async function recorded<T>(env: Env, { asked, session, device, existing }: Consent, name: string, work: () => Promise<T>): Promise<T> {
  const action = { name, target: asked.client.name, device, ...(existing === null ? {} : { grant: existing.grant.id }) };
  try {
    const result = await work();
    await recordAction(env, session.memberId, action);
    return result;
  } catch (error) {
    const code = error instanceof ApiError ? error.code : "internal";
    await recordAction(env, session.memberId, action, code === "incomplete" ? "incomplete" : "failed", code);
    throw error;
  }
}

/** Whole seconds, so that tokens and grant end together. */
function endOf({ ceiling }: Consent, lifeMs: number, now: number): number {
  return Math.ceil((now + Math.min(lifeMs, ceiling.lifeMs)) / 1000) * 1000;
}

async function giveGrant(env: Env, consent: Consent, rights: Rights, expiresAt: number): Promise<{ id: string; isNew: boolean }> {
  const { existing, asked, device, session, ceiling } = consent;
  if (existing !== null) {
    if (existing.grant.pausedAt !== null) throw new ApiError("conflict", "This access is paused. Resume it before it is changed.");
    await changeGrant(env, existing, { rights, expiresAt });
    return { id: existing.grant.id, isNew: false };
  }
  const id = randomId();
  const label = asked.client.name.slice(0, GRANT.labelLength);
  await addGrant(env, device, { id, label, member: session.memberId, rights, caps: ceiling.caps, expiresAt });
  const { id: clientId, name: clientName } = asked.client;
  await insertOAuthGrant(env.DB, { grantId: id, clientId, clientName, redirect: asked.redirect.key, createdAt: Date.now() });
  return { id, isNew: true };
}

/** Lets the library make a code for the grant; gives the address that the client waits at. */
async function issueCode(env: Env, { asked, session }: Consent, grantId: string, rights: Rights): Promise<string> {
  const { request, resource } = asked;
  const { redirectTo } = await oauthApi(env, resource.resource).completeAuthorization({
    request,
    userId: session.memberId,
    metadata: {},
    scope: grantedScopes(rights, request.scope.slice(0, OAUTH.scopes)),
    props: { grant: grantId },
    // Several installations of one client share its grant; the refresh tokens of the others stay good.
    revokeExistingGrants: false,
  });
  const id = authorizationIdOf(new URL(redirectTo).searchParams.get("code") ?? "");
  if (id === undefined) throw new TypeError("the library's code has another form than expected");
  await insertAuthorization(env.DB, { id, grantId, memberId: session.memberId, resource: resource.resource, createdAt: Date.now() });
  return redirectTo;
}

/** Approves a request as far as it was ticked. Gives where the browser goes next. Throws `incomplete` as grants do. */
export async function approve(env: Env, consent: Consent, choice: Choice, lifeMs: number): Promise<string> {
  const now = Date.now();
  const { kept } = consent;
  const ticked = rightsOf(choice, consent.ceiling.rights, { declined: [], kept });
  const declined = declinedNow(consent, ticked);
  const rights = rightsOf(choice, consent.ceiling.rights, { declined, kept });
  if ((rights.tools ?? []).length > GRANT.patterns)
    throw new ApiError("bad_request", `At most ${GRANT.patterns} tools can be ticked one by one. Tick fewer, or allow everything.`);
  const key = declinedKey(consent);
  await recordDeclined(env.DB, key, declined.map(toolScope), now + OAUTH.declinedMs);
  const grant = await recorded(env, consent, "oauth.allow", () => giveGrant(env, consent, rights, endOf(consent, lifeMs, now)));
  const allowed = [...consent.declined.keys()].filter(
    (scope) => !declined.map(toolScope).includes(scope) && isAllowed(rights, scope, consent),
  );
  await forgetDeclined(env.DB, key, allowed);
  try {
    return await issueCode(env, consent, grant.id, rights);
  } catch (error) {
    if (grant.isNew) await revokeEverywhere(env, grant.id);
    throw error;
  }
}

function isAllowed(rights: Rights, scope: string, { offers }: Consent): boolean {
  return offers.some((offer) => toolScope(offer.name) === scope && access(rights, "tools", [offer.name]) === "allowed");
}

/** Declines a request: the client hears it, and what it asked for is not asked again for a while. */
export async function decline(env: Env, consent: Consent): Promise<string> {
  const wanted = consent.offers.filter((offer) => offer.asked && !offer.current).map((offer) => offer.name);
  await recordDeclined(env.DB, declinedKey(consent), wanted.map(toolScope), Date.now() + OAUTH.declinedMs);
  const { existing } = consent;
  await recorded(env, consent, "oauth.decline", async () => (existing === null ? undefined : await exclude(env, existing, wanted)));
  return declinedRedirect(consent);
}

/** Makes declined tools look absent, so that calling them leads to no further question. */
async function exclude(env: Env, existing: GrantRecord, names: readonly string[]): Promise<void> {
  const { rights } = existing.grant;
  const patterns = rights.tools ?? [];
  const added = names.map((name) => `!${name}`).filter((pattern) => !patterns.includes(pattern));
  // Patterns that only exclude would include everything else.
  if (added.length === 0 || !patterns.some((pattern) => !pattern.startsWith("!"))) return;
  if (patterns.length + added.length > GRANT.patterns) return;
  await changeGrant(env, existing, { rights: { ...rights, tools: [...patterns, ...added] } });
}

/** Where the client hears that it was declined (RFC 6749 §4.1.2.1). */
export function declinedRedirect({ asked }: Consent): string {
  return authorizationErrorRedirect(asked.request, "access_denied", DECLINED);
}

/** Where the client hears that the resource is none of the person's (RFC 8707 §2). */
export function invalidTarget(asked: Consent["asked"], message: string): string {
  return authorizationErrorRedirect(asked.request, "invalid_target", message);
}
