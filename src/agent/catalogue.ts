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

/** One member of an item's JSON text, when it is a string. */
export function itemKey(item: string, member: string): string | undefined {
  const value = JSON.parse(item) as Record<string, unknown> | null;
  const key = typeof value === "object" && value !== null ? value[member] : undefined;
  return typeof key === "string" ? key : undefined;
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
