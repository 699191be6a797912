/** Whom a request goes to: by the table; for what is not listed, by prefix, template, or because only one can be meant. Pure. */
import { NAMES } from "../../limits.ts";
import { failure } from "../failure.ts";
import type { Member } from "./member.ts";
import { MODERN_REVISION } from "./revisions.ts";
import { prefixOf, type ListName, type RoutingTable } from "./routing-table.ts";
import type { UpstreamOutcome } from "./upstream.ts";

/** `own` is what the target is called there, when that differs; `target` or `ref` then carry it. */
export interface Route {
  member: Member;
  own?: string;
  target?: string | undefined;
  ref?: Record<string, unknown> | undefined;
}

export interface Wanted {
  method: string;
  target: string | undefined;
  ref: Record<string, unknown> | undefined;
}

const INVALID_PARAMS = -32602;
const METHOD_NOT_FOUND = -32601;
const CAPABILITY = { tools: "tools", prompts: "prompts", resources: "resources", resourceTemplates: "resources" } as const;

export const NOT_LISTED_YET = failure("upstream_failed", "not_started", "The tool servers are starting.");

/** One upstream without prefixes gets everything as it is, and its own lists are the device's. */
export function isPlain(members: readonly Pick<Member, "naming">[]): boolean {
  const [only] = members;
  return only !== undefined && members.length === 1 && only.naming.prefix === undefined && only.naming.resourcePrefix === undefined;
}

/** The upstream of a request, or why there is none. */
export function findRoute(members: readonly Member[], table: RoutingTable, wanted: Wanted): Route | UpstreamOutcome {
  const [first] = members;
  if (!first) return { kind: "failed", failure: failure("upstream_failed", "not_started", "No tool server is configured.") };
  if (isPlain(members)) return { member: first };
  const named = namedBy(wanted);
  // Methods that no upstream can be told apart by.
  if (!named) return refused(METHOD_NOT_FOUND, "Method not found");
  const found = listed(members, table, named) ?? unlisted(members, table, named);
  if (!found) return missing(members, named);
  const { member, own } = found;
  if (own === named.name) return { member };
  if (wanted.ref === undefined) return { member, own, target: own };
  return { member, own, ref: { ...wanted.ref, [named.list === "prompts" ? "name" : "uri"]: own } };
}

interface Named {
  list: ListName;
  name: string;
}

function namedBy({ method, target, ref }: Wanted): Named | undefined {
  if (method === "tools/call") return { list: "tools", name: target ?? "" };
  if (method === "prompts/get") return { list: "prompts", name: target ?? "" };
  if (method === "resources/read" || method === "resources/subscribe" || method === "resources/unsubscribe")
    return { list: "resources", name: target ?? "" };
  if (method !== "completion/complete") return undefined;
  if (typeof ref?.["name"] === "string") return { list: "prompts", name: ref["name"] };
  return typeof ref?.["uri"] === "string" ? { list: "resourceTemplates", name: ref["uri"] } : undefined;
}

function listed(members: readonly Member[], table: RoutingTable, { list, name }: Named): { member: Member; own: string } | undefined {
  const entry = table.entries[list].get(name);
  const member = entry && members[entry.part];
  return entry && member ? { member, own: entry.own } : undefined;
}

/** Servers answer for more than they list: addresses of their templates, and tools that they show to some clients only. */
function unlisted(members: readonly Member[], table: RoutingTable, { list, name }: Named): { member: Member; own: string } | undefined {
  const byTemplate = list === "resources" ? withTemplate(members, table, name) : undefined;
  const member = byTemplate ?? withPrefix(members, list, name) ?? only(members, list);
  return member && { member, own: name.slice(prefixOf(member.naming, list).length) };
}

/** The upstream whose template begins like the address; the longest beginning wins. */
function withTemplate(members: readonly Member[], table: RoutingTable, uri: string): Member | undefined {
  let best: { part: number; length: number } | undefined;
  for (const [template, { part }] of table.entries.resourceTemplates) {
    const [head = ""] = template.split("{");
    if (uri.startsWith(head) && head.length > (best?.length ?? 0)) best = { part, length: head.length };
  }
  return best && members[best.part];
}

function withPrefix(members: readonly Member[], list: ListName, name: string): Member | undefined {
  let best: Member | undefined;
  for (const member of members) {
    const prefix = prefixOf(member.naming, list);
    if (prefix !== "" && name.startsWith(prefix) && prefix.length > (best ? prefixOf(best.naming, list).length : 0)) best = member;
  }
  return best;
}

/** The one server without a prefix that has such things at all. */
function only(members: readonly Member[], list: ListName): Member | undefined {
  const able = members.filter(
    ({ isOpen, naming, lists }) => isOpen && prefixOf(naming, list) === "" && lists?.discover.capabilities[CAPABILITY[list]] !== undefined,
  );
  return able.length === 1 ? able[0] : undefined;
}

function missing(members: readonly Member[], { list, name }: Named): UpstreamOutcome {
  // One that has not said what it offers may well have it.
  if (members.some((member) => member.lists === null)) return { kind: "failed", failure: NOT_LISTED_YET };
  if (list === "tools") return refused(INVALID_PARAMS, `Unknown tool: ${name.slice(0, NAMES.shown)}`);
  return refused(INVALID_PARAMS, list === "prompts" ? "Unknown prompt" : "Resource not found");
}

function refused(code: number, message: string): UpstreamOutcome {
  return { kind: "error", protocol: MODERN_REVISION, code, message, data: undefined };
}
