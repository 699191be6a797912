/** What a client declared against what it is asked for (MCP 2026-07-28, Multi round-trip requests). Pure. */
type JsonObject = Record<string, unknown>;

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * The capabilities a client lacks for an input request, as the object that -32021 names, or null when it has them.
 * An empty `elicitation` means form mode only (MCP 2026-07-28, Elicitation).
 */
export function missingCapability(capabilities: Readonly<JsonObject>, method: string, params: unknown): JsonObject | null {
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
