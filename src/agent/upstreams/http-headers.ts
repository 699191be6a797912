/** Mirrored headers of a raw request to a modern Streamable HTTP upstream (MCP 2026-07-28, "Streamable HTTP"). Pure. */
import { readParamRules, type ParamRule } from "../../policy/param-headers.ts";

const PREFIX = "=?base64?";
/** Visible ASCII, blank and tab, without a blank at either end. */
const PLAIN = /^(?:[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?)?$/;
/** Methods whose target is mirrored in `Mcp-Name`. */
const NAMED = new Set(["tools/call", "prompts/get", "resources/read"]);

/** A value as a header may carry it: as it is, or in the base64 form. */
export function headerValue(value: string): string {
  const needsWrapping = !PLAIN.test(value) || (value.startsWith(PREFIX) && value.endsWith("?="));
  return needsWrapping ? `${PREFIX}${Buffer.from(value, "utf8").toString("base64")}?=` : value;
}

/** The parameter rules of the tools in a list, for those tools that have any. */
export function rulesByTool(tools: readonly string[]): Map<string, readonly ParamRule[]> {
  const rules = new Map<string, readonly ParamRule[]>();
  for (const text of tools) {
    if (!text.includes("x-mcp-header")) continue;
    const tool = JSON.parse(text) as { name?: unknown; inputSchema?: unknown };
    if (typeof tool.name === "string") rules.set(tool.name, readParamRules(tool.inputSchema).rules);
  }
  return rules;
}

/** The headers for these arguments, by suffix; an argument that is null or absent has none. */
export function paramHeaders(rules: readonly ParamRule[], args: unknown): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const { header, path } of rules) {
    let value: unknown = args;
    for (const name of path) value = isRecord(value) && Object.hasOwn(value, name) ? value[name] : undefined;
    if (typeof value === "string") headers[header] = headerValue(value);
    else if (typeof value === "number" || typeof value === "boolean") headers[header] = String(value);
  }
  return headers;
}

/** `Mcp-Name`, when the method has one. */
export function nameHeader(method: string, target: string | undefined): Record<string, string> {
  return NAMED.has(method) && target !== undefined ? { "mcp-name": headerValue(target) } : {};
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
