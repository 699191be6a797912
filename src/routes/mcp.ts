/** `/mcp/:device`: what is cheap is refused first, then the caller is authenticated, then the edge takes over. */
import { type Context, Hono } from "hono";
import { authenticate, insufficientScope, unauthorised } from "../auth/authenticate.ts";
import { deviceStub } from "../auth/device-stub.ts";
import { isGrantOfRecord } from "../auth/grant-of-record.ts";
import { seal, unseal } from "../auth/sealing.ts";
import { type AppEnv, configOf, tunnelOf } from "../env.ts";
import { EDGE } from "../limits.ts";
import { log } from "../log.ts";
import type { EdgeContext } from "../mcp/context.ts";
import { DeliveredIds } from "../mcp/delivered.ts";
import { handleMcp, refuseEarly } from "../mcp/edge.ts";
import { acceptsEventStream, readMcpHeaders, type RequestHeaders } from "../mcp/headers.ts";
import { neverConnected } from "../mcp/never-connected.ts";
import type { EdgeTunnel, TunnelAccess } from "../mcp/tunnel-access.ts";
import { isNameOf } from "../policy/device-name.ts";
import type { DeviceSettings } from "../policy/device-settings.ts";
import { listenAt } from "./listen-upgrade.ts";

const delivered = new DeliveredIds();

/** The MCP endpoint of every device. */
export function mcpRoutes(): Hono<AppEnv> {
  return new Hono<AppEnv>().all("/mcp/:device", answer).all("/mcp/:device/", answer);
}

async function answer(c: Context<AppEnv>): Promise<Response> {
  const request = c.req.raw;
  const headers = readMcpHeaders(request.headers);
  const early = refuseEarly(request, headers);
  if (early !== null) return early;
  const caller = await authenticate(c);
  if (!caller.ok) return caller.response;
  const found = await deviceStub(c.env, caller.deviceId);
  // A removed device is answered like a token for another one.
  if (found === null) return unauthorised(c);
  const names = found.born ? found.names : found.device;
  // A former name whose time is over opens nothing any more.
  if (!isNameOf(names, c.req.param("device") ?? "", Date.now())) return unauthorised(c);
  // No object has a copy of the grants yet, so the record decides.
  if (!found.born && !(await isGrantOfRecord(c.env, caller.deviceId, caller.grant))) return unauthorised(c);
  const tunnel: EdgeTunnel = found.born ? found.stub : neverConnected(found.device.name);
  return handleMcp(
    contextOf(c, headers, caller, { tunnel, isBorn: found.born, settings: found.born ? found.settings : found.device.settings }),
  );
}

/** What the edge has to know of a caller who is authenticated. */
export function contextOf(
  c: Context<AppEnv>,
  headers: RequestHeaders,
  { grant, deviceId }: { grant: string; deviceId: string },
  { tunnel, isBorn, settings }: { tunnel: EdgeTunnel; isBorn: boolean; settings: DeviceSettings },
): EdgeContext {
  const { rootKey, runtime } = configOf(c.env);
  const access: TunnelAccess = {
    tunnel,
    fresh: async () => (isBorn ? tunnelOf(c.env, deviceId) : tunnel),
    listen: (facts) => listenAt(c.env, deviceId, facts),
    pause: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
    report: (error) => log("error", "mcp.object-failed", { id: c.get("requestId"), deviceId, error }),
  };
  return {
    request: c.req.raw,
    headers,
    grant,
    deviceId,
    access,
    isBorn,
    canStream: acceptsEventStream(c.req.raw.headers.get("accept")),
    keepAliveMs: runtime === "embedded" ? EDGE.embeddedKeepAliveMs : EDGE.keepAliveMs,
    switches: settings,
    delivered,
    waitUntil: (work) => c.executionCtx.waitUntil(work),
    seal: (text) => seal(rootKey, "request-state", deviceId, text),
    unseal: (sealed) => unseal(rootKey, "request-state", deviceId, sealed),
    unauthorised: () => unauthorised(c),
    insufficientScope: (scopes, body) => insufficientScope(c, scopes, body),
    now: () => Date.now(),
  };
}
