/** `/members`, `/invitations`, `/owner-tokens`, `/setup-links` and `/me`, below `/api`. */
import { Hono } from "hono";
import { z } from "zod";
import { audited } from "../auth/admin-audit.ts";
import { linkOf, makeSetupLink, mintCode } from "../auth/codes.ts";
import { ownersOnly } from "../auth/owner.ts";
import { removeMemberEverywhere } from "../auth/remove-member.ts";
import { hashSecret, mintOwnerToken, randomId } from "../auth/secrets.ts";
import { findInvitation, insertInvitation, type Invitation, listInvitations, revokeInvitation } from "../db/invitations.ts";
import { findAnyMember, listMembers, type Member, Role } from "../db/members.ts";
import { insertOwnerToken, listOwnerTokens, revokeOwnerTokenById } from "../db/owner-tokens.ts";
import type { AppEnv, Env } from "../env.ts";
import { ApiError } from "../errors.ts";
import { API, GRANT, WEB } from "../limits.ts";
import { Rights } from "../policy/grant.ts";
import { deviceNamed } from "./api-devices.ts";
import { readBody } from "./body.ts";

/** What an invitation is made from. */
export const NewInvitation = z
  .strictObject({
    /** Whom it is for, as lists show it. */
    for: z.string().trim().min(1).max(GRANT.labelLength),
    role: Role.default("member"),
    device: z.string().optional(),
    ...Rights.shape,
    /** ms of life of the grants made from it. */
    grantMs: z.int().positive().max(API.maxExpiresMs).optional(),
    /** ms from now in which it can be taken. */
    expiresMs: z.int().positive().max(WEB.maxInviteMs).default(WEB.inviteMs),
  })
  .refine((body) => body.device !== undefined || (body.tools ?? body.resources ?? body.prompts ?? body.grantMs) === undefined, {
    message: "rights need the device they are on",
    path: ["device"],
  });

const NewOwnerToken = z.strictObject({ for: z.string().trim().min(1).max(GRANT.labelLength) });

/** How an invitation is at `now` (epoch ms). */
export function invitationState(invitation: Invitation, now: number): "open" | "taken" | "revoked" | "expired" {
  if (invitation.revokedAt !== null) return "revoked";
  if (invitation.takenAt !== null) return "taken";
  return invitation.expiresAt > now ? "open" : "expired";
}

function listed(invitation: Invitation, now: number) {
  const { id, label, role, device, rights, grantMs, createdAt, expiresAt, takenAt, takenBy, takenName } = invitation;
  return {
    invitation: id,
    for: label,
    role,
    device: device?.name ?? null,
    rights,
    grantMs,
    createdAt,
    expiresAt,
    state: invitationState(invitation, now),
    takenAt,
    takenBy,
    takenName,
  };
}

/** Records an invitation; its link holds the code, which is shown to nobody again. */
export async function invite(env: Env, body: z.output<typeof NewInvitation>, createdBy: string) {
  const device = body.device === undefined ? null : await deviceNamed(env, body.device);
  const code = mintCode();
  const id = randomId();
  const createdAt = Date.now();
  const { tools, resources, prompts } = body;
  const rights: Rights = {
    ...(tools === undefined ? {} : { tools }),
    ...(resources === undefined ? {} : { resources }),
    ...(prompts === undefined ? {} : { prompts }),
  };
  const expiresAt = createdAt + body.expiresMs;
  await insertInvitation(env.DB, {
    id,
    hash: await hashSecret(code),
    label: body.for,
    role: body.role,
    deviceId: device?.id ?? null,
    rights: device === null ? null : rights,
    caps: null,
    grantMs: body.grantMs ?? null,
    createdBy,
    createdAt,
    expiresAt,
  });
  return { invitation: id, link: linkOf(env, code), code, expiresAt };
}

/** A person, removed or not, or `not_found`. */
export async function memberById(env: Env, id: string): Promise<Member> {
  // A removed one too: repeating the command finishes a removal that did not reach everything.
  const member = await findAnyMember(env.DB, id);
  if (member === null) throw new ApiError("not_found", "There is no member with this id.");
  return member;
}

/** The routes about people. All but `/me` are for owners. */
export function peopleRoutes(): Hono<AppEnv> {
  const app = new Hono<AppEnv>();
  app.get("/me", (c) => {
    const { id, name, role } = c.get("member");
    return c.json({ member: id, name, role });
  });
  app.get("/members", ownersOnly, async (c) => {
    const members = await listMembers(c.env.DB, Date.now(), API.listRows);
    return c.json({ members: members.map(({ id, ...rest }) => ({ member: id, ...rest })) });
  });
  app.delete("/members/:id", ownersOnly, async (c) => {
    const member = await memberById(c.env, c.req.param("id"));
    const { grants } = await audited(c, { name: "member.remove", target: member.name }, () => removeMemberEverywhere(c.env, member));
    return c.json({ member: member.id, name: member.name, removed: true, grantsRevoked: grants });
  });
  app.route("/", invitationRoutes());
  app.route("/", ownerTokenRoutes());
  return app;
}

function invitationRoutes(): Hono<AppEnv> {
  const app = new Hono<AppEnv>();
  app.post("/invitations", ownersOnly, async (c) => {
    const body = await readBody(c, NewInvitation);
    const made = await audited(c, { name: "invitation.create", target: body.for }, () => invite(c.env, body, c.get("member").id));
    return c.json(made, 201);
  });
  app.get("/invitations", ownersOnly, async (c) => {
    const invitations = await listInvitations(c.env.DB, API.listRows);
    const now = Date.now();
    return c.json({ invitations: invitations.map((invitation) => listed(invitation, now)) });
  });
  app.delete("/invitations/:id", ownersOnly, async (c) => {
    const invitation = await findInvitation(c.env.DB, c.req.param("id"));
    if (invitation === null) throw new ApiError("not_found", "There is no invitation with this id.");
    const { id, label } = invitation;
    await audited(c, { name: "invitation.revoke", target: label }, () => revokeInvitation(c.env.DB, id, Date.now()));
    return c.json({ invitation: id, state: "revoked" });
  });
  return app;
}

function ownerTokenRoutes(): Hono<AppEnv> {
  const app = new Hono<AppEnv>();
  app.get("/owner-tokens", ownersOnly, async (c) => c.json({ tokens: await listOwnerTokens(c.env.DB, API.listRows) }));
  app.post("/owner-tokens", ownersOnly, async (c) => {
    const { for: label } = await readBody(c, NewOwnerToken);
    const ownerToken = mintOwnerToken();
    const hash = await hashSecret(ownerToken);
    await audited(c, { name: "owner-token.create", target: label }, () =>
      insertOwnerToken(c.env.DB, { hash, memberId: c.get("member").id, label, createdAt: Date.now() }),
    );
    return c.json({ ownerToken, for: label }, 201);
  });
  app.delete("/owner-tokens/:id", ownersOnly, async (c) => {
    const id = c.req.param("id");
    const isRevoked = await audited(c, { name: "owner-token.revoke", target: id }, () => revokeOwnerTokenById(c.env.DB, id, Date.now()));
    if (!isRevoked) throw new ApiError("not_found", "There is no owner token with this id.");
    return c.json({ id, state: "revoked" });
  });
  app.post("/setup-links", ownersOnly, async (c) =>
    c.json(await audited(c, { name: "setup-link.create" }, () => makeSetupLink(c.env, c.get("member").id)), 201),
  );
  return app;
}
