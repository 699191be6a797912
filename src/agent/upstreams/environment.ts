/** The environment of a child: an allow-list, so that no secret of ours reaches a tool server. Pure. */
const ALLOWED = ["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "TMPDIR"];

/** Allow-listed variables, then the configured ones; `LONGLINE_*` never, and exported shell functions neither. */
export function childEnvironment(
  own: Readonly<Record<string, string | undefined>>,
  configured: Readonly<Record<string, string>> = {},
): Record<string, string> {
  const env: Record<string, string> = {};
  for (const name of ALLOWED) {
    const value = own[name];
    if (value !== undefined && !value.startsWith("()")) env[name] = value;
  }
  for (const [name, value] of Object.entries(configured)) if (!name.startsWith("LONGLINE_")) env[name] = value;
  return env;
}
