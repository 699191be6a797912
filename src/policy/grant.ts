/**
 * What a grant allows. Pure; the same decision serves edge, object and agent. Rights are patterns (`screenshot`,
 * `touch_*`, `!shell`): with tool patterns given, resources and prompts are empty unless given too; without any
 * patterns the grant is full. The decision is made on the body's method and target, never on a header.
 */
import { z } from "zod";
import { GRANT } from "../limits.ts";

/** `*` matches any run of characters; a leading `!` excludes. No other character is special. */
export const Pattern = z
  .string()
  .min(1)
  .max(GRANT.patternLength)
  .refine((p) => p !== "!", "an exclusion needs a pattern");
const Patterns = z.array(Pattern).max(GRANT.patterns);

export const Rights = z.strictObject({ tools: Patterns.optional(), resources: Patterns.optional(), prompts: Patterns.optional() });
export type Rights = z.infer<typeof Rights>;

export const Caps = z.strictObject({
  /** Calls per minute; null is unlimited. */
  callsPerMinute: z.int().positive().nullable(),
  inFlight: z.int().positive(),
  parked: z.int().nonnegative(),
  listeners: z.int().nonnegative(),
});
export type Caps = z.infer<typeof Caps>;

/** A grant as the object keeps its copy and as D1 keeps the record. Times are epoch ms. */
export const Grant = z.strictObject({
  id: z.string(),
  label: z.string().max(GRANT.labelLength),
  member: z.string(),
  rights: Rights,
  caps: Caps,
  expiresAt: z.number(),
  pausedAt: z.number().nullable(),
  revokedAt: z.number().nullable(),
  /** Grows with each change of this device's grants; the object pulls what is newer than its own. */
  revision: z.int().nonnegative(),
});
export type Grant = z.infer<typeof Grant>;

export const DEFAULT_CAPS: Caps = { callsPerMinute: null, inFlight: GRANT.inFlight, parked: GRANT.parked, listeners: GRANT.listeners };

/** The kinds of things a pattern can name. */
export type Kind = "tools" | "resources" | "prompts";

/** `allowed`; `absent`: excluded, to be answered like one that does not exist; `beyond`: outside what is granted. */
export type Access = "allowed" | "absent" | "beyond";

/** True when the text matches a pattern without its `!`. Linear in the text for each `*`. */
export function matches(pattern: string, text: string): boolean {
  const parts = pattern.split("*");
  const first = parts[0] ?? "";
  if (parts.length === 1) return text === first;
  if (!text.startsWith(first)) return false;
  const last = parts[parts.length - 1] ?? "";
  if (text.length < first.length + last.length || !text.endsWith(last)) return false;
  let at = first.length;
  const end = text.length - last.length;
  for (const part of parts.slice(1, -1)) {
    const found = text.indexOf(part, at);
    if (found < 0 || found + part.length > end) return false;
    at = found + part.length;
  }
  return at <= end;
}

/** True when no pattern is given at all: the grant covers everything the device offers. */
export function isFull(rights: Rights): boolean {
  return rights.tools === undefined && rights.resources === undefined && rights.prompts === undefined;
}

/**
 * Whether a thing may be used. `names` are all names it goes by (public, and its upstream's own): one excluded
 * name excludes it. Only the public name, the first, can be included by a pattern. Patterns that only exclude
 * include everything else.
 */
export function access(rights: Rights, kind: Kind, names: readonly string[]): Access {
  if (isFull(rights)) return "allowed";
  const patterns = rights[kind];
  if (patterns === undefined) return "beyond";
  const excludes = patterns.filter((p) => p.startsWith("!"));
  if (excludes.some((p) => names.some((name) => matches(p.slice(1), name)))) return "absent";
  const includes = patterns.filter((p) => !p.startsWith("!"));
  if (includes.length === 0 && excludes.length > 0) return "allowed";
  return includes.some((p) => matches(p, names[0] ?? "")) ? "allowed" : "beyond";
}

/** Whether a grant can be used at all at `now` (epoch ms). */
export function isUsable(grant: Grant, now: number): boolean {
  return grant.revokedAt === null && grant.pausedAt === null && grant.expiresAt > now;
}

/** Methods a grant covers, with the kind its patterns decide on and where the target is. */
export const METHOD_KINDS: Readonly<Record<string, { kind: Kind; list: boolean }>> = {
  "tools/list": { kind: "tools", list: true },
  "tools/call": { kind: "tools", list: false },
  "resources/list": { kind: "resources", list: true },
  "resources/templates/list": { kind: "resources", list: true },
  "resources/read": { kind: "resources", list: false },
  "resources/subscribe": { kind: "resources", list: false },
  "resources/unsubscribe": { kind: "resources", list: false },
  "prompts/list": { kind: "prompts", list: true },
  "prompts/get": { kind: "prompts", list: false },
};

/** The scopes a request needs, all at once, for `insufficient_scope` (RFC 6750 §3.1; MCP authorization). */
export function scopesFor(method: string, target: string | undefined): string[] {
  if (method === "tools/call") return ["device:read", "device:call", ...(target === undefined ? [] : [`tool:${target}`])];
  return ["device:read"];
}
