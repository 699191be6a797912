/** `_meta`: the reserved keys, and what of a client's `_meta` crosses to the device. Pure. */
import { isObject, type JsonObject } from "./json-rpc.ts";

/** Reserved keys of the stateless revision (MCP 2026-07-28, Overview, `_meta`). */
export const META = {
  version: "io.modelcontextprotocol/protocolVersion",
  capabilities: "io.modelcontextprotocol/clientCapabilities",
  clientInfo: "io.modelcontextprotocol/clientInfo",
  logLevel: "io.modelcontextprotocol/logLevel",
  /** The id of the listen request that a notice belongs to. */
  subscriptionId: "io.modelcontextprotocol/subscriptionId",
  serverInfo: "io.modelcontextprotocol/serverInfo",
  /** Ours: set on answers that come from the catalogue because the device is away. */
  offline: "dev.longline/offline",
} as const;

const TOKEN = "progressToken";
const LIFTED: ReadonlySet<string> = new Set([META.version, META.capabilities, META.clientInfo, META.logLevel, TOKEN]);

/** `params._meta`, or undefined when there is none that is an object. */
export function metaOf(params: unknown): JsonObject | undefined {
  if (!isObject(params)) return undefined;
  const meta = params["_meta"];
  return isObject(meta) ? meta : undefined;
}

/** A client's `_meta` without the keys that travel in the frame header by themselves; undefined when nothing is left. */
export function ownMeta(meta: JsonObject | undefined): JsonObject | undefined {
  if (meta === undefined) return undefined;
  const entries = Object.entries(meta).filter(([key]) => !LIFTED.has(key));
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}

/** `none`, `wanted`, or `bad`: whether the request asks for progress. A null token counts as none. */
export function progressWish(meta: JsonObject | undefined): "none" | "wanted" | "bad" {
  const token = meta?.[TOKEN];
  if (token === undefined || token === null) return "none";
  return typeof token === "string" || (typeof token === "number" && Number.isFinite(token)) ? "wanted" : "bad";
}

/** Log levels, least severe first (MCP 2026-07-28, Logging). */
export const LOG_LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"] as const;

/** Position of a level, or -1 for an unknown one. */
export function levelRank(level: unknown): number {
  return (LOG_LEVELS as readonly unknown[]).indexOf(level);
}
