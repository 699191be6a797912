/**
 * What all upstreams of a device offer as one, and whom each name belongs to. Built anew whenever an upstream's lists
 * were read. A name that an earlier upstream has already is not offered by a later one. Pure.
 */
import { lastMember, scanMembers } from "../../tunnel/json-scan.ts";
import { itemKey } from "../catalogue.ts";
import type { Naming } from "../types.ts";
import type { UpstreamLists } from "./upstream.ts";

export type ListName = Exclude<keyof UpstreamLists, "discover">;

/** One upstream as the table sees it; `lists` is null until it has said what it offers. */
export interface Part {
  alias: string;
  naming: Naming;
  lists: UpstreamLists | null;
}

/** Whom a public name belongs to (index of the part), and what it is called there. */
export interface Entry {
  part: number;
  own: string;
}

/** Two upstreams with one name: the second, a part's index, does not offer it. */
export interface Collision {
  what: string;
  name: string;
  first: string;
  second: string;
  part: number;
}

export interface RoutingTable {
  /** Null until the first upstream has said. */
  lists: UpstreamLists | null;
  entries: Readonly<Record<ListName, ReadonlyMap<string, Entry>>>;
  collisions: readonly Collision[];
}

const KEYS = { tools: "name", prompts: "name", resources: "uri", resourceTemplates: "uriTemplate" } as const;
const WHAT = { tools: "tool", prompts: "prompt", resources: "resource", resourceTemplates: "resource template" } as const;
const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** Builds the table. `serverInfo` names the device when several upstreams speak for it. */
export function buildTable(parts: readonly Part[], serverInfo: Record<string, unknown>): RoutingTable {
  const collisions: Collision[] = [];
  const join = (list: ListName) => joinList(parts, list, collisions);
  const joined = {
    tools: join("tools"),
    prompts: join("prompts"),
    resources: join("resources"),
    resourceTemplates: join("resourceTemplates"),
  };
  const known = parts.flatMap(({ lists }) => lists ?? []);
  const lists: UpstreamLists = {
    discover: joinDiscover(parts, serverInfo),
    tools: joined.tools.items,
    prompts: joined.prompts.items,
    resources: joined.resources.items,
    resourceTemplates: joined.resourceTemplates.items,
  };
  const entries = {
    tools: joined.tools.entries,
    prompts: joined.prompts.entries,
    resources: joined.resources.entries,
    resourceTemplates: joined.resourceTemplates.entries,
  };
  return { lists: parts.length > 0 && known.length === 0 ? null : lists, entries, collisions };
}

/** The prefix that an upstream puts before the names of a list. */
export function prefixOf(naming: Naming, list: ListName): string {
  return (list === "tools" || list === "prompts" ? naming.prefix : naming.resourcePrefix) ?? "";
}

function joinList(parts: readonly Part[], list: ListName, collisions: Collision[]): { items: string[]; entries: Map<string, Entry> } {
  const items: string[] = [];
  const entries = new Map<string, Entry>();
  for (const [part, { alias, naming, lists }] of parts.entries()) {
    const prefix = prefixOf(naming, list);
    for (const item of lists?.[list] ?? []) {
      const own = itemKey(item, KEYS[list]);
      if (own === undefined) continue;
      const name = prefix + own;
      const owner = entries.get(name);
      if (owner) {
        // One upstream that lists a name twice is its own affair.
        if (owner.part !== part) collisions.push({ what: WHAT[list], name, first: parts[owner.part]?.alias ?? "", second: alias, part });
        continue;
      }
      entries.set(name, { part, own });
      items.push(prefix === "" ? item : withMember(item, KEYS[list], name));
    }
  }
  return { items, entries };
}

/** The item with another value of one member; everything else stays as it was written. */
function withMember(item: string, key: string, value: string): string {
  const bytes = encoder.encode(item);
  const member = lastMember(scanMembers(bytes), key);
  if (!member) return item;
  return decoder.decode(bytes.subarray(0, member.valueStart)) + JSON.stringify(value) + decoder.decode(bytes.subarray(member.end));
}

function joinDiscover(parts: readonly Part[], serverInfo: Record<string, unknown>): UpstreamLists["discover"] {
  const known = parts.flatMap(({ alias, naming, lists }) => (lists ? [{ alias, naming, discover: lists.discover }] : []));
  const [only] = known;
  const prefixes = prefixesOf(known.map(({ naming }) => naming));
  if (only !== undefined && parts.length === 1) return { ...only.discover, ...prefixes };
  const texts = known.flatMap(({ alias, discover }) =>
    discover.instructions === undefined ? [] : [`## ${alias}\n\n${discover.instructions}`],
  );
  return {
    capabilities: mergeCapabilities(known.map(({ discover }) => discover.capabilities)),
    serverInfo,
    ...(texts.length === 0 ? {} : { instructions: texts.join("\n\n") }),
    ...prefixes,
  };
}

function prefixesOf(namings: readonly Naming[]): { prefixes?: { names: string[]; resources: string[] } } {
  const names = [...new Set(namings.flatMap(({ prefix }) => prefix ?? []))];
  const resources = [...new Set(namings.flatMap(({ resourcePrefix }) => resourcePrefix ?? []))];
  return names.length + resources.length === 0 ? {} : { prefixes: { names, resources } };
}

function mergeCapabilities(all: readonly Record<string, unknown>[]): Record<string, unknown> {
  const merged: Record<string, unknown> = {};
  for (const capabilities of all) {
    for (const [name, value] of Object.entries(capabilities)) {
      const known = merged[name];
      merged[name] = isRecord(known) && isRecord(value) ? mergeMembers(known, value) : (known ?? value);
    }
  }
  return merged;
}

/** What one of them can do, they can do together. */
function mergeMembers(a: Record<string, unknown>, b: Record<string, unknown>): Record<string, unknown> {
  const merged = { ...a, ...b };
  for (const [name, value] of Object.entries(a)) if (value === true) merged[name] = true;
  return merged;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
