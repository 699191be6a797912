/**
 * Which protocol era a message belongs to. Pure. The order is binding: `initialize` without the full modern form is
 * legacy; a session id with a legacy version header is that session, whatever `_meta` holds; then the version key in
 * `_meta`, then the headers. `_meta` without the version key never makes a request modern.
 */
import type { McpHeaders } from "./headers.ts";
import type { RpcNotification, RpcRequest } from "./json-rpc.ts";
import { META, metaOf } from "./meta.ts";
import { isLegacyVersion, isModernVersion } from "./versions.ts";

/** Compatibility switches of a device; off by default. */
export interface Switches {
  /** A modern version header without `_meta` and without `Mcp-Method` counts as having empty capabilities. */
  headerOnlyModern?: boolean;
  /** A session may be opened at the stateless revision. */
  initializedModern?: boolean;
  /** `strict`: a session that was idle for too long is unknown from then on. */
  sessionExpiry?: "sleep" | "strict";
  /** Posted to by the object when a call comes while the device is away. */
  wakeUrl?: string | undefined;
}

export type Era = { era: "modern"; headerOnly: boolean } | { era: "legacy" };

const LEGACY: Era = { era: "legacy" };
const MODERN: Era = { era: "modern", headerOnly: false };

function hasVersionKey(params: unknown): boolean {
  const meta = metaOf(params);
  return meta !== undefined && Object.hasOwn(meta, META.version);
}

/** A session at the stateless revision: such clients send its `_meta` as well, but none of its own headers. */
function isInitializedModern({ version, sessionId, method }: McpHeaders, switches: Switches): boolean {
  const isModern = version !== undefined && isModernVersion(version);
  return switches.initializedModern === true && isModern && sessionId !== undefined && method === undefined;
}

/** The era of a request. */
export function classifyRequest(message: RpcRequest, headers: McpHeaders, switches: Switches = {}): Era {
  const versionKey = hasVersionKey(message.params);
  const { version, sessionId } = headers;
  if (message.method === "initialize") {
    const full = versionKey && headers.method !== undefined && version !== undefined && isModernVersion(version);
    return full ? MODERN : LEGACY;
  }
  if (sessionId !== undefined && version !== undefined && isLegacyVersion(version)) return LEGACY;
  if (isInitializedModern(headers, switches)) return LEGACY;
  if (versionKey) return MODERN;
  if (version !== undefined) {
    if (isLegacyVersion(version)) return LEGACY;
    const headerOnly =
      switches.headerOnlyModern === true &&
      isModernVersion(version) &&
      headers.method === undefined &&
      metaOf(message.params) === undefined;
    return { era: "modern", headerOnly };
  }
  return sessionId === undefined && headers.method !== undefined ? MODERN : LEGACY;
}

/** The era of a notification: by the version header alone, for its other headers are undefined in the modern era. */
export function classifyNotification(_message: RpcNotification, headers: McpHeaders, switches: Switches = {}): Era {
  if (headers.version === undefined || isLegacyVersion(headers.version)) return LEGACY;
  return isInitializedModern(headers, switches) ? LEGACY : MODERN;
}

/** Whether a client's response is one to a request of ours: the stateless revision has no such requests. */
export function mayRespond(headers: McpHeaders, switches: Switches = {}): boolean {
  return headers.version === undefined || isLegacyVersion(headers.version) || isInitializedModern(headers, switches);
}
