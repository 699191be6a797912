/** Console: members and invitations, for owners. */
import { type Context, Hono } from "hono";
import { audited } from "../auth/admin-audit.ts";
import { ownersOnly } from "../auth/owner.ts";
import { removeMemberEverywhere } from "../auth/remove-member.ts";
import { confirmPage } from "../console/confirm-page.tsx";
import { invitedPage, peoplePage } from "../console/people-page.tsx";
import { findInvitation, type Invitation, listInvitations, revokeInvitation } from "../db/invitations.ts";
import { listMembers } from "../db/members.ts";
import type { AppEnv } from "../env.ts";
import { ApiError } from "../errors.ts";
import { API } from "../limits.ts";
import { cleanText } from "../policy/clean-text.ts";
import { invitationState, invite, memberById, NewInvitation } from "./api-people.ts";
import { doneAt, doneText } from "./console-done.ts";
import { parseFields } from "./console-fields.ts";
import { readForm } from "./form.ts";

const PATH = "/console/people";
const BACK = { to: PATH, text: "People" };
const DAY_MS = 86_400_000;

async function show(c: Context<AppEnv>, problem?: string): Promise<Response> {
  const now = Date.now();
  const [members, invitations] = await Promise.all([listMembers(c.env.DB, now, API.listRows), listInvitations(c.env.DB, API.listRows)]);
  return peoplePage(c, {
    person: c.get("member"),
    members,
    invitations: invitations.map((invitation) => ({ invitation, state: invitationState(invitation, now) })),
    problem,
    done: doneText(c),
  });
}

async function makeInvitation(c: Context<AppEnv>): Promise<Response> {
  const form = await readForm(c);
  try {
    const days = Number(form.get("days"));
    const fields = { for: form.get("for") ?? "", role: form.get("role") ?? undefined, expiresMs: days * DAY_MS };
    const body = parseFields(NewInvitation, fields);
    const made = await audited(c, { name: "invitation.create", target: body.for }, () => invite(c.env, body, c.get("member").id));
    return await invitedPage(c, { person: c.get("member"), label: body.for, ...made });
  } catch (error) {
    if (error instanceof ApiError && error.code === "bad_request") return await show(c, error.message);
    throw error;
  }
}

async function invitationIn(c: Context<AppEnv>): Promise<Invitation> {
  const invitation = await findInvitation(c.env.DB, c.req.param("id") ?? "");
  if (invitation === null) throw new ApiError("not_found", "There is no such invitation.");
  return invitation;
}

async function askRevoke(c: Context<AppEnv>): Promise<Response> {
  const { id, label } = await invitationIn(c);
  return confirmPage(c, {
    person: c.get("member"),
    here: "people",
    title: `Revoke the invitation of ${cleanText(label)}?`,
    text: "Its link opens nothing any more, and whoever took it makes no further grants from it. Grants that exist are revoked on their device's page.",
    action: `/console/invitations/${id}/revoke`,
    back: BACK,
    button: "Revoke the invitation",
    isFinal: true,
  });
}

async function askRemove(c: Context<AppEnv>): Promise<Response> {
  const { id, name } = await memberById(c.env, c.req.param("id") ?? "");
  return confirmPage(c, {
    person: c.get("member"),
    here: "people",
    title: `Remove ${cleanText(name)}?`,
    text: "They are signed out everywhere, and every grant of theirs on every device ends. This cannot be undone; you can invite them again.",
    action: `/console/people/${id}/remove`,
    back: BACK,
    button: `Remove ${cleanText(name)}`,
    isFinal: true,
  });
}

/** The routes of people. */
export function consolePeopleRoutes(): Hono<AppEnv> {
  const app = new Hono<AppEnv>();
  app.get("/people", ownersOnly, (c) => show(c));
  app.get("/people/:id/remove", ownersOnly, askRemove);
  app.post("/people/:id/remove", ownersOnly, async (c) => {
    await readForm(c);
    const member = await memberById(c.env, c.req.param("id"));
    await audited(c, { name: "member.remove", target: member.name }, () => removeMemberEverywhere(c.env, member));
    return doneAt(c, PATH, "removed");
  });
  app.post("/invitations", ownersOnly, makeInvitation);
  app.get("/invitations/:id/revoke", ownersOnly, askRevoke);
  app.post("/invitations/:id/revoke", ownersOnly, async (c) => {
    await readForm(c);
    const { id, label } = await invitationIn(c);
    await audited(c, { name: "invitation.revoke", target: label }, () => revokeInvitation(c.env.DB, id, Date.now()));
    return doneAt(c, PATH, "revoked");
  });
  return app;
}
