/** The methods the edge knows: what is forwarded, where the target is, what may be cached. One table for MCP's own, no code elsewhere. */

import { EXTENSIONS, type ExtensionRule } from "../policy/extensions.ts";

/** `Mcp-Name` mirrors the target. */
export interface MethodRule extends ExtensionRule {
  /** Params hold a `ref` (completion/complete). */
  ref?: true;
  /** Results carry `ttlMs` and `cacheScope` towards modern callers (MCP 2026-07-28, Caching). */
  cacheable?: true;
  /** May be answered by `input_required` (MCP 2026-07-28, Multi round-trip requests). */
  input?: true;
}

const BOTH = ["modern", "legacy"] as const;
const LEGACY_ONLY = ["legacy"] as const;

/** Methods that go to the device. */
export const FORWARDED: ReadonlyMap<string, MethodRule> = new Map<string, MethodRule>([
  ["tools/list", { eras: BOTH, cacheable: true }],
  ["tools/call", { eras: BOTH, target: "name", input: true }],
  ["resources/list", { eras: BOTH, cacheable: true }],
  ["resources/templates/list", { eras: BOTH, cacheable: true }],
  ["resources/read", { eras: BOTH, target: "uri", cacheable: true, input: true }],
  ["resources/subscribe", { eras: LEGACY_ONLY, target: "uri" }],
  ["resources/unsubscribe", { eras: LEGACY_ONLY, target: "uri" }],
  ["prompts/list", { eras: BOTH, cacheable: true }],
  ["prompts/get", { eras: BOTH, target: "name", input: true }],
  ["completion/complete", { eras: BOTH, ref: true }],
]);

/** The rule of a method that is forwarded for this era, or undefined. */
export function forwardRule(method: string, era: "modern" | "legacy"): MethodRule | undefined {
  const rule: MethodRule | undefined = FORWARDED.get(method) ?? EXTENSIONS.get(method);
  return rule?.eras.includes(era) === true ? rule : undefined;
}

/** Longest name or uri that a frame header takes, characters. */
export const MAX_TARGET = 8192;
