/** What the edge itself says about a device: the results of `initialize` and `server/discover`. Pure. */
import type { DeviceView } from "../../durable/rpc.ts";
import { CATALOGUE } from "../limits.ts";
import { offeredCapabilities } from "./capabilities.ts";
import type { JsonObject } from "./json-rpc.ts";
import { META } from "./meta.ts";
import { isModernVersion, SUPPORTED_VERSIONS, type SessionVersion } from "./versions.ts";

/** Result of `server/discover`; may be kept for a short time while the device is there, and not at all while it is away. */
export function discoverResult(view: DeviceView): JsonObject {
  return {
    resultType: "complete",
    supportedVersions: SUPPORTED_VERSIONS,
    capabilities: offeredCapabilities(view.capabilities, "modern"),
    ...instructionsOf(view),
    ttlMs: view.online ? CATALOGUE.discoverTtlMs : 0,
    cacheScope: "private",
    _meta: { ...offlineMark(view), [META.serverInfo]: view.serverInfo },
  };
}

/** Result of `initialize`. */
export function initializeResult(view: DeviceView, version: SessionVersion): JsonObject {
  const mark = offlineMark(view);
  return {
    ...(isModernVersion(version) ? { resultType: "complete" } : {}),
    protocolVersion: version,
    capabilities: offeredCapabilities(view.capabilities, "legacy"),
    serverInfo: view.serverInfo,
    ...instructionsOf(view),
    ...(Object.keys(mark).length === 0 ? {} : { _meta: mark }),
  };
}

function offlineMark(view: DeviceView): JsonObject {
  return view.online ? {} : { [META.offline]: true };
}

function instructionsOf(view: DeviceView): JsonObject {
  if (view.instructions !== undefined) return { instructions: view.instructions };
  return view.known ? {} : { instructions: "This device has not told yet what it offers. Start `longline agent` on it." };
}
