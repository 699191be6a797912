/** The protocol revisions and reserved `_meta` keys the agent speaks towards upstreams; the only file here with date strings. */

/** The stateless revision (MCP 2026-07-28). */
export const MODERN_REVISION = "2026-07-28";
const PREFIX = "io.modelcontextprotocol/";
/** Reserved `_meta` keys of a request (MCP 2026-07-28, basic: `_meta`). */
export const META = {
  protocolVersion: `${PREFIX}protocolVersion`,
  clientCapabilities: `${PREFIX}clientCapabilities`,
  clientInfo: `${PREFIX}clientInfo`,
  logLevel: `${PREFIX}logLevel`,
  serverInfo: `${PREFIX}serverInfo`,
} as const;

/** Log levels from the most verbose to the gravest (RFC 5424 names, MCP logging). */
const LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/** True when a notification of that level is wanted by a call that asked for `wanted` and graver. Unknown levels count as gravest. */
export function isLogWanted(level: unknown, wanted: string | undefined): boolean {
  if (wanted === undefined) return false;
  const at = typeof level === "string" ? LEVELS.indexOf(level) : -1;
  return at < 0 || at >= LEVELS.indexOf(wanted);
}

/** True when `level` lets more through than `than`. */
export function isMoreVerbose(level: string, than: string | undefined): boolean {
  return than === undefined || LEVELS.indexOf(level) < LEVELS.indexOf(than);
}

/** True for a level that exists. */
export function isLogLevel(level: string): boolean {
  return LEVELS.includes(level);
}
