/**
 * The access decision for one request, made on the body's method and target. Pure; used by the object before a call
 * is sent and for every list and capability shown to a caller (design section 7).
 */
import { EXTENSIONS } from "./extensions.ts";
import { type Access, access, isFull, type Kind, METHOD_KINDS, type Rights } from "./grant.ts";
import { allNames, NO_PREFIXES, type Prefixes } from "./other-names.ts";

/** `method`: nobody can call it through a relay, whatever the grant. */
export type Decision = Access | "method";

/** What a decision looks at. `ref` is `params.ref` of completion/complete. */
export interface AccessRequest {
  method: string;
  target?: string | undefined;
  ref?: Record<string, unknown> | undefined;
}

/** Decides one request. A list is always allowed: its items are filtered instead. */
export function decide(rights: Rights, request: AccessRequest, prefixes: Prefixes = NO_PREFIXES): Decision {
  // A wire string is looked up, so names such as "constructor" must find nothing.
  const known = Object.hasOwn(METHOD_KINDS, request.method) ? METHOD_KINDS[request.method] : undefined;
  if (known !== undefined) {
    return known.list ? "allowed" : access(rights, known.kind, allNames(prefixes, known.kind, request.target ?? ""));
  }
  if (request.method === "completion/complete") return decideCompletion(rights, request.ref, prefixes);
  if (!EXTENSIONS.has(request.method)) return "method";
  return isFull(rights) ? "allowed" : "beyond";
}

function decideCompletion(rights: Rights, ref: Record<string, unknown> | undefined, prefixes: Prefixes): Access {
  const named = completed(ref);
  if (named !== undefined) return access(rights, named.kind, allNames(prefixes, named.kind, named.name));
  return isFull(rights) ? "allowed" : "beyond";
}

function completed(ref: Record<string, unknown> | undefined): { kind: Kind; name: string } | undefined {
  if (ref?.["type"] === "ref/prompt" && typeof ref["name"] === "string") return { kind: "prompts", name: ref["name"] };
  if (ref?.["type"] === "ref/resource" && typeof ref["uri"] === "string") return { kind: "resources", name: ref["uri"] };
  return undefined;
}

/** What a request names, when it names one thing. */
export function namedThing(request: AccessRequest): { kind: Kind; name: string } | undefined {
  if (request.method === "completion/complete") return completed(request.ref);
  const known = Object.hasOwn(METHOD_KINDS, request.method) ? METHOD_KINDS[request.method] : undefined;
  return known === undefined || known.list || request.target === undefined ? undefined : { kind: known.kind, name: request.target };
}

/** One of the four lists: its method, the member that holds its items, and the item's member that patterns decide on. */
export interface ListSpec {
  method: string;
  member: ListName;
  kind: Kind;
  key: string;
}
export type ListName = "tools" | "resources" | "resourceTemplates" | "prompts";

/** The lists of MCP, by method. */
export const LISTS: ReadonlyMap<string, ListSpec> = new Map(
  (
    [
      { method: "tools/list", member: "tools", kind: "tools", key: "name" },
      { method: "resources/list", member: "resources", kind: "resources", key: "uri" },
      { method: "resources/templates/list", member: "resourceTemplates", kind: "resources", key: "uriTemplate" },
      { method: "prompts/list", member: "prompts", kind: "prompts", key: "name" },
    ] satisfies ListSpec[]
  ).map((spec) => [spec.method, spec]),
);

/** The items of a list that a grant covers, in their order. */
export function visibleItems(rights: Rights, spec: ListSpec, items: readonly unknown[], prefixes: Prefixes = NO_PREFIXES): unknown[] {
  if (isFull(rights)) return [...items];
  return items.filter((item) => {
    const name = typeof item === "object" && item !== null ? (item as Record<string, unknown>)[spec.key] : undefined;
    return typeof name === "string" && access(rights, spec.kind, allNames(prefixes, spec.kind, name)) === "allowed";
  });
}

/** Whether a grant covers anything of a kind at all. */
export function covers(rights: Rights, kind: Kind): boolean {
  return isFull(rights) || rights[kind] !== undefined;
}

/** The capabilities of a device as a grant may see them: kinds it does not cover are left out. */
export function visibleCapabilities(rights: Rights, capabilities: Record<string, unknown>): Record<string, unknown> {
  const visible = { ...capabilities };
  for (const kind of ["tools", "resources", "prompts"] as const) if (!covers(rights, kind)) delete visible[kind];
  if (!covers(rights, "resources") && !covers(rights, "prompts")) delete visible["completions"];
  return visible;
}
