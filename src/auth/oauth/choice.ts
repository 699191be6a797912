/**
 * From what a person ticked to rights. Pure. Nothing that is chosen reaches beyond the ceiling, and a tool that was asked
 * for and not ticked becomes an exclusion, so that it looks absent instead of being asked for again.
 */
import type { OfferedTool } from "../../../durable/rpc.ts";
import { GRANT } from "../../limits.ts";
import { access, isFull, type Rights } from "../../policy/grant.ts";
import { scopeToken } from "../challenge.ts";

/** What the consent page offers about one tool. */
export interface ToolOffer extends OfferedTool {
  /** The client asked for it by name. */
  asked: boolean;
  /** The grant the client has allows it already. */
  current: boolean;
  /** The device's catalogue does not have it. */
  unknown: boolean;
}

/** What was ticked. */
export interface Choice {
  /** Everything up to the ceiling, what is added later included. */
  all: boolean;
  tools: readonly string[];
  resources: boolean;
  prompts: boolean;
}

const TOOL_SCOPE = "tool:";

/** Whether a name can stand for itself in a grant: as a pattern it must match nothing else. */
export function isPlainName(name: string): boolean {
  return name.length > 0 && name.length <= GRANT.patternLength && !name.includes("*") && !name.startsWith("!");
}

/** The scope that names a tool. */
export function toolScope(name: string): string {
  return scopeToken(`${TOOL_SCOPE}${name}`);
}

function nameIn(scope: string): string | undefined {
  try {
    return decodeURIComponent(scope.slice(TOOL_SCOPE.length));
  } catch {
    return undefined; // Not one of our own scopes, so it names nothing.
  }
}

/** The tools to show: those of the catalogue within the ceiling, and before them those that are asked for by name. */
export function offersFor(
  catalogue: readonly OfferedTool[],
  ceiling: Rights,
  current: Rights | undefined,
  scopes: readonly string[],
): ToolOffer[] {
  const asked = new Set(scopes.filter((scope) => scope.startsWith(TOOL_SCOPE)));
  const within = (name: string): boolean => isPlainName(name) && access(ceiling, "tools", [name]) === "allowed";
  const has = (name: string): boolean => current !== undefined && access(current, "tools", [name]) === "allowed";
  const listed = catalogue
    .filter((tool) => within(tool.name))
    .map((tool) => ({ ...tool, asked: asked.has(toolScope(tool.name)), current: has(tool.name), unknown: false }));
  const known = new Set(catalogue.map((tool) => toolScope(tool.name)));
  const names = [...asked].filter((scope) => !known.has(scope)).flatMap((scope) => nameIn(scope) ?? []);
  const unlisted = [...new Set(names)]
    .filter((name) => within(name))
    .map((name) => ({ name, readOnly: false, destructive: false, asked: true, current: has(name), unknown: true }));
  return [...unlisted, ...listed.filter((tool) => tool.asked), ...listed.filter((tool) => !tool.asked)];
}

/** Whether a tool is ticked before the person touched anything: what is asked for by name and what is there already, else everything listed. */
export function isTicked(offer: ToolOffer, { isSpecific, hasGrant }: { isSpecific: boolean; hasGrant: boolean }): boolean {
  if (offer.asked || offer.current) return true;
  return !isSpecific && !hasGrant && !offer.unknown;
}

function patternsOf(ceiling: Rights, kind: "resources" | "prompts", wanted: boolean): string[] | undefined {
  if (!wanted) return undefined;
  return isFull(ceiling) ? ["*"] : ceiling[kind];
}

function everything(ceiling: Rights): readonly string[] {
  return isFull(ceiling) ? ["*"] : (ceiling.tools ?? []);
}

/**
 * The rights that were approved. `declined` are names of tools that were asked for and not ticked; `kept` are exclusions
 * that stay whatever is ticked.
 */
export function rightsOf(
  choice: Choice,
  ceiling: Rights,
  { declined, kept }: { declined: readonly string[]; kept: readonly string[] },
): Rights {
  if (choice.all && kept.length === 0) return ceiling;
  const base = choice.all
    ? everything(ceiling)
    : choice.tools.filter((name) => isPlainName(name) && access(ceiling, "tools", [name]) === "allowed");
  const excluded = [...(ceiling.tools ?? []).filter((pattern) => pattern.startsWith("!")), ...kept, ...declined.map((name) => `!${name}`)];
  // Patterns that only exclude would include everything else.
  const tools = base.length === 0 ? [] : [...new Set([...base, ...excluded])];
  const resources = patternsOf(ceiling, "resources", choice.all || choice.resources);
  const prompts = patternsOf(ceiling, "prompts", choice.all || choice.prompts);
  return { tools, ...(resources === undefined ? {} : { resources }), ...(prompts === undefined ? {} : { prompts }) };
}

/** The scopes of the answer: what the request asked for and got, in the terms of the challenges. */
export function grantedScopes(rights: Rights, requested: readonly string[]): string[] {
  const tools = requested
    .filter((scope) => scope.startsWith(TOOL_SCOPE))
    .filter((scope) => access(rights, "tools", [nameIn(scope) ?? ""]) === "allowed");
  const canCall = isFull(rights) || (rights.tools ?? []).length > 0;
  return ["device:read", ...(canCall ? ["device:call"] : []), ...new Set(tools)];
}
