/** The catalogue the relay keeps: what all upstreams offer, as one JSON text with its digest, within bounds. Pure. */
import { createHash } from "node:crypto";
import { CATALOGUE } from "../limits.ts";
import type { UpstreamLists } from "./upstreams/upstream.ts";

export interface CatalogueText {
  text: string;
  digest: string;
  tools: number;
  /** Items that did not fit. */
  left: number;
}

/** Joins what upstreams offer, the first one first; a name that is taken already is left out. */
export function joinLists(all: readonly UpstreamLists[]): UpstreamLists | null {
  const first = all[0];
  if (!first) return null;
  if (all.length === 1) return first;
  const instructions = all.flatMap((lists) => lists.discover.instructions ?? []).join("\n\n");
  return {
    discover: {
      capabilities: mergeCapabilities(all.map((lists) => lists.discover.capabilities)),
      serverInfo: first.discover.serverInfo,
      ...(instructions === "" ? {} : { instructions }),
    },
    tools: unique(
      all.flatMap((lists) => lists.tools),
      "name",
    ),
    resources: unique(
      all.flatMap((lists) => lists.resources),
      "uri",
    ),
    resourceTemplates: unique(
      all.flatMap((lists) => lists.resourceTemplates),
      "uriTemplate",
    ),
    prompts: unique(
      all.flatMap((lists) => lists.prompts),
      "name",
    ),
  };
}

/** One member of an item's JSON text, when it is a string. */
export function itemKey(item: string, member: string): string | undefined {
  const value = JSON.parse(item) as Record<string, unknown> | null;
  const key = typeof value === "object" && value !== null ? value[member] : undefined;
  return typeof key === "string" ? key : undefined;
}

function unique(items: readonly string[], member: string): string[] {
  const seen = new Set<string>();
  return items.filter((item) => {
    const key = itemKey(item, member);
    if (key === undefined || seen.has(key)) return false;
    seen.add(key);
    return true;
  });
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

/** The catalogue's text. Items that do not fit the bounds are left out from the end, tools last. */
export function catalogueText(lists: UpstreamLists): CatalogueText {
  let room = CATALOGUE.maxBytes - Buffer.byteLength(JSON.stringify(lists.discover)) - 256;
  let left = 0;
  const fit = (items: readonly string[], max: number): string => {
    const kept: string[] = [];
    for (const item of items) {
      const size = Buffer.byteLength(item) + 1;
      if (size > room || kept.length >= max) {
        left += 1;
        continue;
      }
      room -= size;
      kept.push(item);
    }
    return `[${kept.join(",")}]`;
  };
  const tools = fit(lists.tools, CATALOGUE.maxTools);
  const prompts = fit(lists.prompts, Number.POSITIVE_INFINITY);
  const templates = fit(lists.resourceTemplates, Number.POSITIVE_INFINITY);
  const resources = fit(lists.resources, Number.POSITIVE_INFINITY);
  const discover = JSON.stringify(lists.discover);
  const text = `{"discover":${discover},"tools":${tools},"resources":${resources},"resourceTemplates":${templates},"prompts":${prompts}}`;
  return { text, digest: createHash("sha256").update(text).digest("hex"), tools: lists.tools.length, left };
}
