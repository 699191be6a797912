/** Reads everything an upstream offers, all pages, as JSON text of its items (design section 6, "Catalogue"). */
import { CATALOGUE, UPSTREAM } from "../../limits.ts";
import { failure, FailureError } from "../failure.ts";
import type { Instance } from "./instance.ts";
import { lastMember, parseValue, scanElements, scanMembers, valueOf } from "../../tunnel/json-scan.ts";
import { oneLine } from "./params.ts";
import type { UpstreamLists } from "./upstream.ts";

const LISTS = [
  { method: "tools/list", member: "tools", capability: "tools" },
  { method: "resources/list", member: "resources", capability: "resources" },
  { method: "resources/templates/list", member: "resourceTemplates", capability: "resources" },
  { method: "prompts/list", member: "prompts", capability: "prompts" },
] as const;
const METHOD_NOT_FOUND = -32601;
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** Reads the lists. Rejects with a FailureError. */
export async function readLists(instance: Instance): Promise<UpstreamLists> {
  const { capabilities, serverInfo, instructions, supportedVersions } = instance.facts;
  const items: Record<(typeof LISTS)[number]["member"], string[]> = { tools: [], resources: [], resourceTemplates: [], prompts: [] };
  for (const list of LISTS) {
    // One after the other: many small servers answer one request at a time anyway.
    if (capabilities[list.capability] !== undefined) items[list.member] = await readPages(instance, list.method, list.member);
  }
  const discover = {
    capabilities,
    serverInfo,
    ...(instructions === undefined ? {} : { instructions }),
    ...(supportedVersions === undefined ? {} : { supportedVersions }),
  };
  return { discover, ...items };
}

async function readPages(instance: Instance, method: string, member: string): Promise<string[]> {
  const items: string[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < CATALOGUE.maxPages; page += 1) {
    const params = cursor === undefined ? "{}" : `{"cursor":${JSON.stringify(cursor)}}`;
    const outcome = await instance.internal(method, params, UPSTREAM.startMs);
    if (outcome.kind === "failed") throw new FailureError(outcome.failure);
    if (outcome.kind === "error") {
      // A list that is announced and not there counts as empty.
      if (outcome.code === METHOD_NOT_FOUND) return items;
      throw new FailureError(failure("upstream_failed", "unknown", `The tool server refused ${method} (${outcome.code}).`));
    }
    const members = scanMembers(outcome.bytes);
    const list = lastMember(members, member);
    const array = list && valueOf(outcome.bytes, list);
    if (array?.[0] !== 0x5b) throw new FailureError(failure("upstream_failed", "unknown", `The tool server's ${method} holds no list.`));
    for (const span of scanElements(array)) items.push(oneLine(decoder.decode(array.subarray(span.start, span.end))));
    const next = lastMember(members, "nextCursor");
    const value = next && parseValue(valueOf(outcome.bytes, next));
    // A server that repeats its cursor would never end.
    if (typeof value !== "string" || value === cursor) return items;
    cursor = value;
  }
  return items;
}
