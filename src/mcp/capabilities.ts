/** What a client declared against what it is asked for, and what a device offers against what the edge carries. Pure. */
import { isObject, type JsonObject } from "./json-rpc.ts";

/**
 * The capabilities a client lacks for an input request, as the object that -32021 names, or null when it has them.
 * An empty `elicitation` means form mode only (MCP 2026-07-28, Elicitation).
 */
export function missingCapability(capabilities: JsonObject, method: string, params: unknown): JsonObject | null {
  if (method === "roots/list") return isObject(capabilities["roots"]) ? null : { roots: {} };
  if (method === "sampling/createMessage") {
    const sampling = capabilities["sampling"];
    const wantsTools = isObject(params) && params["tools"] !== undefined;
    if (!isObject(sampling)) return { sampling: wantsTools ? { tools: {} } : {} };
    return wantsTools && !isObject(sampling["tools"]) ? { sampling: { tools: {} } } : null;
  }
  const mode = isObject(params) && params["mode"] === "url" ? "url" : "form";
  const elicitation = capabilities["elicitation"];
  const has = isObject(elicitation) && (isObject(elicitation[mode]) || (mode === "form" && elicitation["url"] === undefined));
  return has ? null : { elicitation: { [mode]: {} } };
}

/** Puts one requirement into another, one level deep, which is as deep as they go. */
export function joinCapabilities(a: JsonObject, b: JsonObject): JsonObject {
  const joined: JsonObject = { ...a };
  for (const [key, value] of Object.entries(b)) {
    const known = joined[key];
    joined[key] = isObject(known) && isObject(value) ? { ...known, ...value } : value;
  }
  return joined;
}

/** Extensions whose methods and result types the edge does not carry, so that no side may believe in them. */
const NOT_CARRIED: ReadonlySet<string> = new Set(["io.modelcontextprotocol/tasks"]);

/** A client's capabilities as the device may see them. */
export function carriedClientCapabilities(capabilities: JsonObject): JsonObject {
  const { extensions } = capabilities;
  if (!isObject(extensions) || !Object.keys(extensions).some((name) => NOT_CARRIED.has(name))) return capabilities;
  return { ...capabilities, extensions: withoutExtensions(extensions) };
}

function withoutExtensions(extensions: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(extensions).filter(([name]) => !NOT_CARRIED.has(name)));
}

/**
 * A device's capabilities as a caller may rely on them: nothing is advertised that the edge does not carry. Legacy tasks
 * are left out, and towards legacy callers extensions too; notices of changes are carried to whoever listens.
 */
export function offeredCapabilities(capabilities: JsonObject, era: "modern" | "legacy"): JsonObject {
  const offered: JsonObject = {};
  for (const [name, value] of Object.entries(capabilities)) {
    if (name === "tasks" || (name === "extensions" && era === "legacy")) continue;
    if (name === "extensions" && isObject(value)) offered[name] = withoutExtensions(value);
    else offered[name] = value;
  }
  return offered;
}
