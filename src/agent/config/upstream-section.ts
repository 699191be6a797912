/** The sections `[upstreams.ALIAS]`: MCP servers, each a command or an address. */
import { z } from "zod";
import type { Finding } from "./mistakes.ts";
import { Command, Environment, isAddress, NamePrefix, ResourcePrefix, Text } from "./names.ts";

export const UpstreamSection = z.strictObject({
  command: Command.optional(),
  /** Added to the allow-listed environment of the command. */
  env: Environment.optional(),
  cwd: Text.optional(),
  url: z
    .string()
    .refine((url) => isAddress(url, ["http:", "https:"]), { error: "must look like http://127.0.0.1:3000/mcp, without credentials" })
    .optional(),
  /** Headers for the server, its own credentials among them. */
  headersFile: Text.optional(),
  prefix: NamePrefix.optional(),
  resourcePrefix: ResourcePrefix.optional(),
  isolation: z.enum(["grant", "shared"]).optional(),
});
export type UpstreamSection = z.infer<typeof UpstreamSection>;

/** What the schema cannot say. */
export function checkUpstream(section: UpstreamSection): Finding[] {
  const findings: Finding[] = [];
  if ((section.command === undefined) === (section.url === undefined)) findings.push({ path: [], text: "needs either command or url" });
  for (const key of ["env", "cwd"] as const)
    if (section[key] !== undefined && section.command === undefined) findings.push({ path: [key], text: "goes with command" });
  if (section.headersFile !== undefined && section.url === undefined) findings.push({ path: ["headersFile"], text: "goes with url" });
  return [...findings, ...checkEnvironment(section.env)];
}

/** No secret of the agent's own goes to a program, so its names are taken. */
export function checkEnvironment(env: Readonly<Record<string, string>> = {}): Finding[] {
  return Object.keys(env)
    .filter((name) => name.toUpperCase().startsWith("LONGLINE_"))
    .map((name) => ({ path: ["env", name], text: "is a name that programs never get" }));
}
