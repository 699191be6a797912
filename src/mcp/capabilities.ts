/** What a client declares and a device offers against what the edge carries. Pure. */
import { isObject, type JsonObject } from "./json-rpc.ts";

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
