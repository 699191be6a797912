/** `/account`: a signed-in person's own page. */
import { type Context, Hono } from "hono";
import { recordAction } from "../auth/admin-audit.ts";
import { mcpUrl } from "../auth/origins.ts";
import { revokeEverywhere } from "../auth/record-and-copy.ts";
import { requireWebSession } from "../auth/web-session.ts";
import { accountPage } from "../console/account-page.tsx";
import { messagePage } from "../console/page.tsx";
import { findGrant, liveGrantsOf } from "../db/grants.ts";
import { listInvitationsOf } from "../db/invitations.ts";
import { type AppEnv, configOf } from "../env.ts";
import { ApiError } from "../errors.ts";
import { API } from "../limits.ts";
import { readForm } from "./form.ts";

async function show(c: Context<AppEnv>): Promise<Response> {
  const session = await requireWebSession(c);
  if (session instanceof Response) return session;
  const [grants, invitations] = await Promise.all([
    liveGrantsOf(c.env.DB, session.memberId),
    listInvitationsOf(c.env.DB, session.memberId, API.listRows),
  ]);
  const origin = configOf(c.env).origins[0] ?? "";
  return accountPage(c, { session, grants, invitations, urlOf: (name) => mcpUrl(origin, name) });
}

async function revoke(c: Context<AppEnv>): Promise<Response> {
  const form = await readForm(c);
  const session = await requireWebSession(c);
  if (session instanceof Response) return session;
  const record = await findGrant(c.env.DB, form.get("grant") ?? "");
  // SECURITY: here a person revokes their own grants only, whatever their role.
  if (record === null || record.grant.member !== session.memberId) return messagePage(c, "Not found", "You have no such grant.", 404);
  const action = { name: "token.revoke", target: record.grant.label, device: { id: record.deviceId, name: record.deviceName } };
  try {
    await revokeEverywhere(c.env, record.grant.id);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    await recordAction(c.env, session.memberId, { ...action, grant: record.grant.id }, "incomplete", error.code);
    return messagePage(c, "Not finished", error.message, 502);
  }
  await recordAction(c.env, session.memberId, { ...action, grant: record.grant.id });
  return c.redirect("/account", 303);
}

/** The account routes. */
export function accountRoutes(): Hono<AppEnv> {
  return new Hono<AppEnv>().get("/account", show).post("/account/revoke", revoke);
}
