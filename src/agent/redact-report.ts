/** Takes what is secret out of what somebody is about to send away. Pure. */
import { redact } from "./clean-text.ts";
import type { AgentOptions, AgentReport, UpstreamConfig } from "./types.ts";

/** Keys and tokens of ours, JWTs, and credentials of an Authorization header, wherever they stand. */
const SECRET_SHAPES = [
  /\bll[a-z]_[A-Za-z0-9_-]{16,}/g,
  /\beyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*/g,
  /\b(?:Bearer|Basic)\s+[A-Za-z0-9._~+/=-]{8,}/gi,
];

/** What this agent was given that is nobody else's business: its key, and what its upstreams are started with. */
export function secretsOf(options: Pick<AgentOptions, "deviceKey" | "upstreams">): string[] {
  return [options.deviceKey, ...options.upstreams.flatMap(secretsOfUpstream)];
}

function secretsOfUpstream(upstream: UpstreamConfig): string[] {
  switch (upstream.kind) {
    case "stdio":
      return Object.values(upstream.env ?? {});
    case "http":
    case "feed":
      return Object.values(upstream.headers ?? {});
    case "declared":
      return Object.values((upstream.tool.run.kind === "command" ? upstream.tool.run.env : upstream.tool.run.headers) ?? {});
    case "builtin":
      return [...(upstream.secrets ?? [])];
    default:
      return upstream satisfies never;
  }
}

/** The report with every known secret, and everything that looks like one, replaced. */
export function redactReport(report: AgentReport, secrets: readonly string[]): AgentReport {
  // As JSON text a secret may be written with escapes.
  const known = secrets.flatMap((secret) => [secret, JSON.stringify(secret).slice(1, -1)]);
  return JSON.parse(redactShapes(redact(JSON.stringify(report), known))) as AgentReport;
}

function redactShapes(text: string): string {
  return SECRET_SHAPES.reduce((out, shape) => out.replaceAll(shape, "[secret]"), text);
}
