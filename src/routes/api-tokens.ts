/** Owner API: access tokens and the grants behind them. */
import { Hono } from "hono";
import { z } from "zod";
import { mintAccessToken } from "../auth/access-token.ts";
import { addGrant, revokeEverywhere } from "../auth/record-and-copy.ts";
import { randomId } from "../auth/secrets.ts";
import type { Device } from "../db/devices.ts";
import { type GrantRecord, listGrants } from "../db/grants.ts";
import type { AppEnv, Env } from "../env.ts";
import { API, GRANT, TUNNEL } from "../limits.ts";
import { Caps, DEFAULT_CAPS, type Grant, Rights } from "../policy/grant.ts";
import { deviceNamed, publicUrl } from "./api-devices.ts";
import { readBody } from "./body.ts";

const NewToken = z.strictObject({
  /** Who or what the token is for; shown in lists and to the device. */
  for: z.string().trim().min(1).max(GRANT.labelLength),
  ...Rights.shape,
  /** ms from now. */
  expiresMs: z.int().positive().max(API.maxExpiresMs).optional(),
  callsPerMinute: Caps.shape.callsPerMinute.optional(),
  inFlight: Caps.shape.inFlight.max(TUNNEL.maxConcurrentCalls).optional(),
});
type NewToken = z.infer<typeof NewToken>;

function newGrant(body: NewToken, member: string): Omit<Grant, "revision" | "pausedAt" | "revokedAt"> {
  const { tools, resources, prompts } = body;
  return {
    id: randomId(),
    label: body.for,
    member,
    rights: {
      ...(tools === undefined ? {} : { tools }),
      ...(resources === undefined ? {} : { resources }),
      ...(prompts === undefined ? {} : { prompts }),
    },
    caps: {
      ...DEFAULT_CAPS,
      callsPerMinute: body.callsPerMinute ?? DEFAULT_CAPS.callsPerMinute,
      inFlight: body.inFlight ?? DEFAULT_CAPS.inFlight,
    },
    // `exp` is in seconds (RFC 7519 §2): rounded up, so that token and grant end together and neither ends early.
    expiresAt: Math.ceil((Date.now() + (body.expiresMs ?? GRANT.expiresMs)) / 1000) * 1000,
  };
}

async function createToken(env: Env, device: Device, body: NewToken, member: string) {
  const grant = newGrant(body, member);
  const { id, expiresAt } = grant;
  // Signed before the grant exists: a relay that cannot sign leaves no grant without a token behind.
  const token = await mintAccessToken(env, { deviceId: device.id, deviceName: device.name, grant: id, member, expiresAt });
  await addGrant(env, device, grant);
  return { token, grant: id, mcpUrl: publicUrl(env, device.name), expiresAt };
}

function grantState(grant: Grant, now: number): "active" | "paused" | "expired" | "revoked" {
  if (grant.revokedAt !== null) return "revoked";
  if (grant.expiresAt <= now) return "expired";
  return grant.pausedAt === null ? "active" : "paused";
}

function listed({ grant, deviceName, createdAt }: GrantRecord, now: number) {
  return {
    grant: grant.id,
    device: deviceName,
    for: grant.label,
    createdAt,
    expiresAt: grant.expiresAt,
    state: grantState(grant, now),
    rights: grant.rights,
    caps: grant.caps,
  };
}

/** `/devices/:name/tokens` and `/tokens…`, below `/api` and behind the owner's door. */
export function tokenRoutes(): Hono<AppEnv> {
  const app = new Hono<AppEnv>();
  app.post("/devices/:name/tokens", async (c) => {
    const body = await readBody(c, NewToken);
    const device = await deviceNamed(c.env, c.req.param("name"));
    return c.json(await createToken(c.env, device, body, c.get("member").id), 201);
  });
  app.get("/tokens", async (c) => {
    const name = c.req.query("device");
    const device = name === undefined ? undefined : await deviceNamed(c.env, name);
    const records = await listGrants(c.env.DB, device?.id, API.listRows);
    const now = Date.now();
    return c.json({ tokens: records.map((record) => listed(record, now)) });
  });
  app.delete("/tokens/:grant", async (c) => {
    const { grant, deviceName } = await revokeEverywhere(c.env, c.req.param("grant"));
    return c.json({ grant: grant.id, device: deviceName, state: "revoked", revokedAt: grant.revokedAt });
  });
  return app;
}
