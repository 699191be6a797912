/**
 * What this machine allows, whatever the relay allows (design section 2: the agent has the last word). Pure. The
 * first rule that matches decides; a stop and read-only mode stand above all rules, and the default below them.
 */
import { POLICY } from "../limits.ts";
import { type Kind, matches, METHOD_KINDS } from "../policy/grant.ts";
import { allNames, NO_PREFIXES, type Prefixes } from "../policy/other-names.ts";
import type { Caller } from "../tunnel/frames.ts";

export type PolicyAction = "allow" | "deny" | "ask";

/** A rule matches when each list that it has holds a pattern that matches (`*` any run of characters, `!` excludes). */
export interface PolicyRule {
  tools?: readonly string[] | undefined;
  resources?: readonly string[] | undefined;
  prompts?: readonly string[] | undefined;
  /** Of a grant's label, its id, or its member's id. */
  callers?: readonly string[] | undefined;
  action: PolicyAction;
}

export interface LocalPolicy {
  default: PolicyAction;
  /** Only tools that call themselves read-only, besides resources and prompts. */
  readOnly: boolean;
  /** s a person has to answer. */
  askSeconds: number;
  /** Arguments go into the log of calls. */
  logArguments: boolean;
  rules: readonly PolicyRule[];
}

/** What holds without a config. */
export const DEFAULT_POLICY: LocalPolicy = {
  default: "allow",
  readOnly: false,
  askSeconds: POLICY.askSeconds,
  logArguments: false,
  rules: [],
};

/** `_meta` of a listed tool whose calls start as questions: those that run commands. */
export const ASKS_FIRST = "dev.longline/asksFirst";

/** What the lists say of a tool. */
export interface ToolFacts {
  isReadOnly: boolean;
  asksFirst: boolean;
}

export interface PolicyRequest {
  method: string;
  target?: string | undefined;
  ref?: Record<string, unknown> | undefined;
  caller: Caller;
}

/** A decision, and what it comes from, in words that a person finds in the config. */
export interface Verdict {
  action: PolicyAction;
  rule: string;
}

/** Decides one request. Undefined for what runs nothing: lists and the like. */
export function judge(
  policy: LocalPolicy,
  request: PolicyRequest,
  factsOf: (tool: string) => ToolFacts | undefined,
  prefixes: Prefixes = NO_PREFIXES,
): Verdict | undefined {
  const subject = subjectOf(request);
  if (subject === undefined) return undefined;
  const facts = subject.kind === "tools" ? factsOf(subject.name) : undefined;
  if (policy.readOnly && (subject.kind === "other" || (subject.kind === "tools" && facts?.isReadOnly !== true)))
    return { action: "deny", rule: "policy.readOnly" };
  for (const [index, rule] of policy.rules.entries())
    if (fits(rule, subject, request.caller, prefixes)) return { action: rule.action, rule: `policy.rules[${index + 1}]` };
  if (facts?.asksFirst === true && policy.default === "allow") return { action: "ask", rule: "tools that run commands ask first" };
  return { action: policy.default, rule: "policy.default" };
}

/** The facts of listed tools, by name; the first of a name counts, as it does when it is called. */
export function toolFacts(tools: readonly string[]): ReadonlyMap<string, ToolFacts> {
  const facts = new Map<string, ToolFacts>();
  for (const text of tools) {
    const tool = readTool(text);
    if (tool === undefined || typeof tool["name"] !== "string" || facts.has(tool["name"])) continue;
    facts.set(tool["name"], {
      isReadOnly: memberOf(tool["annotations"], "readOnlyHint") === true,
      asksFirst: memberOf(tool["_meta"], ASKS_FIRST) === true,
    });
  }
  return facts;
}

interface Subject {
  kind: Kind | "other";
  name: string;
}

/** What a request is about; a method that no pattern can name is `other`. */
function subjectOf({ method, target, ref }: PolicyRequest): Subject | undefined {
  if (method === "ping" || method === "logging/setLevel") return undefined;
  const known = Object.hasOwn(METHOD_KINDS, method) ? METHOD_KINDS[method] : undefined;
  if (known?.list === true) return undefined;
  if (known !== undefined) return { kind: known.kind, name: target ?? "" };
  if (method !== "completion/complete") return { kind: "other", name: method };
  return ref?.["type"] === "ref/prompt"
    ? { kind: "prompts", name: String(ref["name"]) }
    : { kind: "resources", name: String(ref?.["uri"]) };
}

function fits(rule: PolicyRule, subject: Subject, caller: Caller, prefixes: Prefixes): boolean {
  const { tools, resources, prompts, callers } = rule;
  if (callers !== undefined && !listFits(callers, [caller.label, caller.grant, caller.member])) return false;
  if (tools === undefined && resources === undefined && prompts === undefined) return true;
  if (subject.kind === "other") return false;
  const patterns = rule[subject.kind];
  if (patterns === undefined) return false;
  // A thing behind a prefix has its upstream's own name too. It counts where it makes the policy stricter.
  const all = allNames(prefixes, subject.kind, subject.name);
  return rule.action === "allow" ? listFits(patterns, [subject.name], all) : listFits(patterns, all, [subject.name]);
}

/** As in a grant: one excluded name excludes, and patterns that only exclude include everything else. */
function listFits(patterns: readonly string[], names: readonly string[], excludable: readonly string[] = names): boolean {
  const excludes = patterns.filter((pattern) => pattern.startsWith("!"));
  if (excludes.some((pattern) => excludable.some((name) => matches(pattern.slice(1), name)))) return false;
  const includes = patterns.filter((pattern) => !pattern.startsWith("!"));
  return (includes.length === 0 && excludes.length > 0) || includes.some((pattern) => names.some((name) => matches(pattern, name)));
}

function readTool(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined; // No client can call it either.
  }
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}
