/** The section `[policy]` of the configuration: what this machine allows, whatever the relay allows. */
import { z } from "zod";
import { POLICY } from "../../limits.ts";
import { Pattern } from "../../policy/grant.ts";

const Action = z.enum(["allow", "deny", "ask"]);
const Patterns = z.array(Pattern).min(1);

const Rule = z.strictObject({
  /** Tool names. A rule without tools, resources and prompts is about everything. */
  tools: Patterns.optional(),
  /** Resource URIs. */
  resources: Patterns.optional(),
  prompts: Patterns.optional(),
  /** Labels or ids of grants, or ids of members. A rule without them is about everybody. */
  callers: Patterns.optional(),
  action: Action,
});

/** The section, with what holds where it is silent. */
export const PolicySection = z.strictObject({
  /** For what no rule matches. */
  default: Action.default("allow"),
  /** Only tools that call themselves read-only, besides resources and prompts; above all rules. */
  readOnly: z.boolean().default(false),
  askSeconds: z.number().positive().max(POLICY.maxAskSeconds).default(POLICY.askSeconds),
  /** Arguments go into the log of calls. */
  logArguments: z.boolean().default(false),
  rules: z.array(Rule).max(POLICY.rules).default([]),
});
export type PolicySection = z.infer<typeof PolicySection>;
