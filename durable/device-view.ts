/** The device as `initialize`, `server/discover` and `status` show it. */
import { CATALOGUE, TUNNEL } from "../src/limits.ts";
import { visibleCapabilities } from "../src/policy/decide.ts";
import type { Grant } from "../src/policy/grant.ts";
import type { Desk } from "./desk.ts";
import type { DeviceStatus, DeviceView } from "./rpc.ts";

const UNKNOWN_VERSION = "0";

/** The device for one grant. A device that has just come online for the first time is given a moment to say what it is. */
export async function viewDevice(desk: Desk, grant: Grant): Promise<DeviceView> {
  if (!desk.catalogue.isKnown && desk.links.current() !== null) await withLimit(desk.catalogueArrived.promise, CATALOGUE.firstWaitMs);
  const discover = desk.catalogue.discover();
  const online = desk.links.current() !== null;
  if (!online) desk.presence.correct();
  return {
    online,
    known: discover !== undefined,
    capabilities: visibleCapabilities(grant.rights, discover?.capabilities ?? {}),
    serverInfo: discover?.serverInfo ?? { name: desk.meta.get("name") ?? "", version: desk.meta.get("agentVersion") ?? UNKNOWN_VERSION },
    ...(discover?.instructions === undefined ? {} : { instructions: discover.instructions }),
  };
}

/** The device of an object that was never dialled into. */
export const UNBORN_VIEW: DeviceView = {
  online: false,
  known: false,
  capabilities: {},
  serverInfo: { name: "", version: UNKNOWN_VERSION },
};

/** How the device is now. A live link is asked, so that what it says of its upstreams is fresh and a dead one is found. */
export async function readStatus(desk: Desk): Promise<DeviceStatus> {
  const link = desk.links.current();
  if (link !== null) await link.probe();
  else desk.presence.correct();
  const live = desk.links.current();
  const { meta } = desk;
  const now = desk.now();
  const rivalAt = meta.get("rivalAt");
  const isSilent = live !== null && now - live.lastSeenAt(desk.ctx) > TUNNEL.probeAfterMs;
  return {
    online: live !== null && !isSilent,
    generation: meta.get("generation") ?? 0,
    agentVersion: meta.get("agentVersion") ?? null,
    lastSeenAt: live === null ? (meta.get("lastSeenAt") ?? null) : live.lastSeenAt(desk.ctx),
    upstreams: desk.upstreams ?? meta.get("upstreams") ?? [],
    lastCallAt: desk.lastCallAt ?? null,
    sessions: desk.sessions.countAwake(now),
    inFlight: desk.pending.size + desk.parked.count(),
    rival: rivalAt === undefined ? null : { at: rivalAt },
  };
}

/** The status of an object that was never dialled into. */
export const UNBORN_STATUS: DeviceStatus = {
  online: false,
  generation: 0,
  agentVersion: null,
  lastSeenAt: null,
  upstreams: [],
  lastCallAt: null,
  sessions: 0,
  inFlight: 0,
  rival: null,
};

async function withLimit(work: Promise<void>, ms: number): Promise<void> {
  let timer: number | null = null;
  const limit = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([work, limit]);
  clearTimeout(timer);
}
