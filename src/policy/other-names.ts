/**
 * The other names a thing goes by: an agent with several upstreams may put a prefix before the names of one of them,
 * and what excludes a thing under its upstream's own name excludes it under the prefixed one (design section 7). Pure.
 */
import { z } from "zod";
import { NAMES } from "../limits.ts";
import { access, type Kind, type Rights } from "./grant.ts";

const PrefixList = z.array(z.string().min(1).max(NAMES.prefix)).max(NAMES.prefixes);

/** The prefixes in use on a device: before names of tools and prompts, and before addresses of resources. */
export const Prefixes = z.object({ names: PrefixList, resources: PrefixList });
export type Prefixes = z.infer<typeof Prefixes>;

export const NO_PREFIXES: Prefixes = { names: [], resources: [] };

/** What a public name may be called by its upstream: the name without each prefix it begins with. */
export function otherNames(prefixes: Prefixes, kind: Kind, name: string): string[] {
  const list = kind === "resources" ? prefixes.resources : prefixes.names;
  return list.filter((prefix) => name.startsWith(prefix)).map((prefix) => name.slice(prefix.length));
}

/** All names of a thing, the public one first. */
export function allNames(prefixes: Prefixes, kind: Kind, name: string): string[] {
  return [name, ...otherNames(prefixes, kind, name)];
}

/** Whether a grant covers a resource. */
export function coversResource(rights: Rights, prefixes: Prefixes, uri: string): boolean {
  return access(rights, "resources", allNames(prefixes, "resources", uri)) === "allowed";
}
