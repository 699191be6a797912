/** `/devices/:name/tokens` and `/tokens…`, below `/api`: access tokens and the grants behind them. */
import { type Context, Hono } from "hono";
import { z } from "zod";
import { mintAccessToken } from "../auth/access-token.ts";
import { audited } from "../auth/admin-audit.ts";
import { changeGrant, type GrantChange } from "../auth/change-grant.ts";
import { ownersOnly } from "../auth/owner.ts";
import { addGrant, revokeEverywhere } from "../auth/record-and-copy.ts";
import { randomId } from "../auth/secrets.ts";
import { type Device, findDevice } from "../db/devices.ts";
import { findGrant, type GrantRecord, listGrants } from "../db/grants.ts";
import { findMember } from "../db/members.ts";
import type { AppEnv, Env } from "../env.ts";
import { ApiError } from "../errors.ts";
import { API, DEVICE, GRANT, TUNNEL } from "../limits.ts";
import { Caps, DEFAULT_CAPS, type Grant, Rights } from "../policy/grant.ts";
import { deviceNamed, publicUrl } from "./api-devices.ts";
import { readBody } from "./body.ts";

const Label = z.string().trim().min(1).max(GRANT.labelLength);
const Life = z.int().positive().max(API.maxExpiresMs);
/** Caps as they can be asked for; what is left out has its default, or stays. */
const SomeCaps = {
  callsPerMinute: Caps.shape.callsPerMinute.optional(),
  inFlight: Caps.shape.inFlight.max(TUNNEL.maxConcurrentCalls).optional(),
  parked: Caps.shape.parked.max(TUNNEL.maxConcurrentCalls).optional(),
  listeners: Caps.shape.listeners.max(GRANT.maxListeners).optional(),
};

/** What a new token is made from. */
export const NewToken = z.strictObject({
  /** Who or what the token is for; shown in lists and to the device. */
  for: Label,
  ...Rights.shape,
  /** ms from now. */
  expiresMs: Life.optional(),
  ...SomeCaps,
  note: z.string().max(DEVICE.noteLength).optional(),
  /** Member id the grant belongs to; the owner who makes it when left out. */
  member: z.string().max(64).optional(),
});
export type NewToken = z.infer<typeof NewToken>;

/** What can be changed of a grant. */
export const TokenChange = z
  .strictObject({
    for: Label.optional(),
    /** All patterns at once: a kind that is left out of it has none. An empty object is a full grant. */
    rights: Rights.optional(),
    /** ms from now. */
    expiresMs: Life.optional(),
    ...SomeCaps,
    note: z.string().max(DEVICE.noteLength).nullable().optional(),
    paused: z.boolean().optional(),
  })
  .refine((change) => Object.keys(change).length > 0, "name something to change");
export type TokenChange = z.infer<typeof TokenChange>;

// `exp` is in seconds (RFC 7519 §2): rounded up, so that token and grant end together and neither ends early.
function expiryAfter(ms: number): number {
  return Math.ceil((Date.now() + ms) / 1000) * 1000;
}

function capsOf(base: Caps, asked: { [K in keyof Caps]?: Caps[K] | undefined }): Caps {
  return {
    callsPerMinute: asked.callsPerMinute === undefined ? base.callsPerMinute : asked.callsPerMinute,
    inFlight: asked.inFlight ?? base.inFlight,
    parked: asked.parked ?? base.parked,
    listeners: asked.listeners ?? base.listeners,
  };
}

function rightsOf({
  tools,
  resources,
  prompts,
}: {
  tools?: string[] | undefined;
  resources?: string[] | undefined;
  prompts?: string[] | undefined;
}): Rights {
  return {
    ...(tools === undefined ? {} : { tools }),
    ...(resources === undefined ? {} : { resources }),
    ...(prompts === undefined ? {} : { prompts }),
  };
}

/** The grant a new token stands for. */
export function newGrant(body: NewToken, member: string): Omit<Grant, "revision" | "pausedAt" | "revokedAt"> {
  return {
    id: randomId(),
    label: body.for,
    member,
    rights: rightsOf(body),
    caps: capsOf(DEFAULT_CAPS, body),
    expiresAt: expiryAfter(body.expiresMs ?? GRANT.expiresMs),
  };
}

/** Records a grant and mints its token, which is shown to nobody again. */
export async function createToken(env: Env, device: Device, body: NewToken, grant: Omit<Grant, "revision" | "pausedAt" | "revokedAt">) {
  const { id, expiresAt, member } = grant;
  // Signed before the grant exists: a relay that cannot sign leaves no grant without a token behind.
  const token = await mintAccessToken(env, { deviceId: device.id, deviceName: device.name, grant: id, member, expiresAt });
  await addGrant(env, device, grant, body.note ?? null);
  return { token, grant: id, mcpUrl: publicUrl(env, device.name), expiresAt };
}

/** Whose grant it becomes; `not_found` for an unknown member. */
export async function holderOf(c: Context<AppEnv>, body: NewToken): Promise<string> {
  if (body.member === undefined) return c.get("member").id;
  const member = await findMember(c.env.DB, body.member);
  if (member === null) throw new ApiError("not_found", "There is no member with this id.");
  return member.id;
}

/** How a grant is at `now` (epoch ms). */
export function grantState(grant: Grant, now: number): "active" | "paused" | "expired" | "revoked" {
  if (grant.revokedAt !== null) return "revoked";
  if (grant.expiresAt <= now) return "expired";
  return grant.pausedAt === null ? "active" : "paused";
}

function listed({ grant, deviceName, createdAt, note, memberName, clientName }: GrantRecord, now: number) {
  return {
    grant: grant.id,
    device: deviceName,
    for: grant.label,
    kind: clientName === null ? "token" : "oauth",
    client: clientName,
    member: grant.member,
    memberName,
    createdAt,
    expiresAt: grant.expiresAt,
    state: grantState(grant, now),
    rights: grant.rights,
    caps: grant.caps,
    note,
  };
}

/** A grant the signed-in person may see. SECURITY: another's grant is answered like one that does not exist. */
export async function visibleGrant(c: Context<AppEnv>, grant: string): Promise<GrantRecord> {
  const { id, role } = c.get("member");
  const record = await findGrant(c.env.DB, grant);
  if (record === null || (role !== "owner" && record.grant.member !== id))
    throw new ApiError("not_found", "There is no grant with this id.");
  return record;
}

function changeOf(record: GrantRecord, body: TokenChange): GrantChange {
  const { grant } = record;
  return {
    caps: capsOf(grant.caps, body),
    ...(body.for === undefined ? {} : { label: body.for }),
    ...(body.rights === undefined ? {} : { rights: rightsOf(body.rights) }),
    ...(body.expiresMs === undefined ? {} : { expiresAt: expiryAfter(body.expiresMs) }),
    ...(body.note === undefined ? {} : { note: body.note }),
    ...(body.paused === undefined ? {} : { pausedAt: body.paused ? (grant.pausedAt ?? Date.now()) : null }),
  };
}

/** Changes a grant in both places; a longer life gives a new token. */
export async function changeToken(env: Env, record: GrantRecord, body: TokenChange) {
  const changed = await changeGrant(env, record, changeOf(record, body));
  if (changed.grant.expiresAt <= record.grant.expiresAt) return listed(changed, Date.now());
  // The token that is out there ends when it said it would: a longer life needs a new one.
  const device = await findDevice(env.DB, record.deviceId);
  const { id, member, expiresAt } = changed.grant;
  const deviceName = device?.name ?? record.deviceName;
  const token = await mintAccessToken(env, { deviceId: record.deviceId, deviceName, grant: id, member, expiresAt });
  return { ...listed(changed, Date.now()), token, mcpUrl: publicUrl(env, deviceName) };
}

/** The token routes. Owners make and change tokens; a member lists and revokes their own. */
export function tokenRoutes(): Hono<AppEnv> {
  const app = new Hono<AppEnv>();
  app.post("/devices/:name/tokens", ownersOnly, async (c) => {
    const body = await readBody(c, NewToken);
    const device = await deviceNamed(c.env, c.req.param("name"));
    const grant = newGrant(body, await holderOf(c, body));
    const action = { name: "token.create", target: body.for, device, grant: grant.id };
    return c.json(await audited(c, action, () => createToken(c.env, device, body, grant)), 201);
  });
  app.get("/tokens", async (c) => {
    const name = c.req.query("device");
    const { id, role } = c.get("member");
    const device = name === undefined ? undefined : await deviceNamed(c.env, name);
    const records = await listGrants(c.env.DB, device?.id, API.listRows, role === "owner" ? undefined : id);
    const now = Date.now();
    return c.json({ tokens: records.map((record) => listed(record, now)) });
  });
  app.patch("/tokens/:grant", ownersOnly, async (c) => {
    const body = await readBody(c, TokenChange);
    const record = await visibleGrant(c, c.req.param("grant") ?? "");
    const action = { name: `token.${verbOf(body)}`, target: record.grant.label, device: deviceOf(record), grant: record.grant.id };
    return c.json(await audited(c, action, () => changeToken(c.env, record, body)));
  });
  app.delete("/tokens/:grant", async (c) => {
    const record = await visibleGrant(c, c.req.param("grant") ?? "");
    const action = { name: "token.revoke", target: record.grant.label, device: deviceOf(record), grant: record.grant.id };
    const { grant, deviceName } = await audited(c, action, () => revokeEverywhere(c.env, record.grant.id));
    return c.json({ grant: grant.id, device: deviceName, state: "revoked", revokedAt: grant.revokedAt });
  });
  return app;
}

/** The verb the audit has for a change. */
export function verbOf(body: TokenChange): "pause" | "resume" | "change" {
  if (body.paused === undefined) return "change";
  return body.paused ? "pause" : "resume";
}

function deviceOf(record: GrantRecord): { id: string; name: string } {
  return { id: record.deviceId, name: record.deviceName };
}
