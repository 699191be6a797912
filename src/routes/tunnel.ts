/**
 * `GET /tunnel`: where an agent dials in. The device key is checked in D1 before any object is touched, and the object
 * gets a request made here: nothing the agent sent passes, except that it wants this protocol.
 */
import { type Context, Hono } from "hono";
import { bearerToken } from "../auth/bearer.ts";
import { deviceStub } from "../auth/device-stub.ts";
import { statusOf } from "../auth/device-status.ts";
import { mcpUrl } from "../auth/origins.ts";
import { DialGate } from "../auth/dial-gate.ts";
import { countFailure, refuseAfterFailures } from "../auth/rate-limit.ts";
import { constantTimeEqual, hashSecret, parseDeviceKey } from "../auth/secrets.ts";
import { endOlderKeys, findKeyHolder, type KeyHolder } from "../db/device-keys.ts";
import { findDevice, markBorn } from "../db/devices.ts";
import { type AppEnv, configOf, type Env } from "../env.ts";
import { ApiError } from "../errors.ts";
import { AGENT, TUNNEL } from "../limits.ts";
import { SUBPROTOCOL } from "../tunnel/frames.ts";

function offers(header: string | undefined, protocol: string): boolean {
  return (header ?? "").split(",").some((offered) => offered.trim() === protocol);
}

/** One answer for every key that opens nothing, without a reason. */
function refusedKey(): ApiError {
  return new ApiError("not_authorised", "A valid device key is needed, as `Authorization: Bearer <device key>`.");
}

/** The device that the key in `Authorization` opens. */
async function keyHolder(c: Context<AppEnv>): Promise<KeyHolder> {
  const { env } = c;
  refuseAfterFailures(c, "failures");
  const key = bearerToken(c.req.raw.headers);
  const claimed = key === undefined ? undefined : parseDeviceKey(key);
  if (key !== undefined && claimed !== undefined) {
    const hash = await hashSecret(key);
    const holder = await findKeyHolder(env.DB, hash, Date.now());
    if (holder !== null && constantTimeEqual(holder.deviceId, claimed.deviceId)) {
      if (holder.hasOlderKeys) await endOlderKeys(env.DB, hash, Date.now());
      return holder;
    }
  }
  countFailure(c, "failures");
  throw refusedKey();
}

function upgradeRequest(env: Env, holder: KeyHolder): Request {
  const facts = { deviceId: holder.deviceId, name: holder.name, mcpUrl: mcpUrl(configOf(env).origins[0] ?? "", holder.name) };
  return new Request("https://object/tunnel", {
    headers: { Upgrade: "websocket", "Sec-WebSocket-Protocol": SUBPROTOCOL, "longline-facts": JSON.stringify(facts) },
  });
}

/** What an agent's key opens, for `longline doctor`: nothing that the key's holder could not learn by dialling in. */
async function keyState(c: Context<AppEnv>): Promise<Response> {
  const holder = await keyHolder(c);
  const device = await findDevice(c.env.DB, holder.deviceId);
  if (device === null) throw refusedKey();
  const { state, lastSeenAt, rivalAt, agentVersion } = await statusOf(c.env, device);
  return c.json({
    device: device.name,
    mcpUrl: mcpUrl(configOf(c.env).origins[0] ?? "", device.name),
    state,
    lastSeenAt,
    rivalAt,
    agentVersion,
  });
}

/** The tunnel route, and the one that says what a key is good for. */
export function tunnelRoutes(): Hono<AppEnv> {
  const gate = new DialGate(TUNNEL.dialsAtOnce, AGENT.dialMs);
  return new Hono<AppEnv>().get("/tunnel/state", keyState).get("/tunnel", async (c) => {
    if (c.req.header("upgrade")?.toLowerCase() !== "websocket")
      throw new ApiError("upgrade_required", "This is where agents dial in with a WebSocket: `longline agent --relay URL`.");
    if (!offers(c.req.header("sec-websocket-protocol"), SUBPROTOCOL))
      throw new ApiError("bad_request", `The WebSocket must offer the subprotocol ${SUBPROTOCOL}.`);
    const leave = gate.enter(Date.now());
    if (leave === null) throw new ApiError("too_many", "Too many agents dial in at once. The agent comes again by itself.");
    try {
      return await upgrade(c);
    } finally {
      leave();
    }
  });
}

async function upgrade(c: Context<AppEnv>): Promise<Response> {
  const holder = await keyHolder(c);
  // The one place where a device is born: its object comes into being near the agent that dials.
  if (holder.bornAt === null) await markBorn(c.env.DB, holder.deviceId, Date.now());
  const found = await deviceStub(c.env, holder.deviceId);
  if (found === null || !found.born) throw refusedKey();
  const { webSocket, status, headers } = await found.stub.fetch(upgradeRequest(c.env, holder));
  if (webSocket === null) throw new Error(`the object refused the upgrade with ${status}`);
  return new Response(null, { status: 101, webSocket, headers });
}
