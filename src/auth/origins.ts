/** The relay's public origins, and the URLs made from them. Pure. */

const LOOPBACK = ["127.0.0.1", "localhost", "[::1]"];

const expanded = new WeakMap<readonly string[], readonly string[]>();

/**
 * All origins a request may be sent to, and a page may come from: those listed, and for a listed loopback origin its
 * other names on the same port, because people and test suites use them for the same socket.
 */
export function acceptedOrigins(listed: readonly string[]): readonly string[] {
  const known = expanded.get(listed);
  if (known !== undefined) return known;
  const all = listed.flatMap((origin) => {
    const url = new URL(origin);
    if (!LOOPBACK.includes(url.hostname)) return [origin];
    const port = url.port === "" ? "" : `:${url.port}`;
    return [origin, ...LOOPBACK.map((host) => `${url.protocol}//${host}${port}`)];
  });
  const unique = [...new Set(all)];
  expanded.set(listed, unique);
  return unique;
}

/**
 * The accepted origin a request was sent to, by its host. The scheme decides only between two origins of one host:
 * behind a proxy that ends TLS the relay sees http where the public origin is https.
 */
export function originOf(address: string, accepted: readonly string[]): string | undefined {
  // The usual case without parsing: the address of a request is normalised already.
  const named = accepted.find((origin) => address.startsWith(origin) && address[origin.length] === "/");
  if (named !== undefined) return named;
  const url = new URL(address);
  return accepted.find((origin) => new URL(origin).host === url.host);
}

/** The public MCP URL of a device name on an origin. */
export function mcpUrl(origin: string, name: string): string {
  return `${origin}/mcp/${encodeURIComponent(name)}`;
}

/** Where the protected-resource metadata of a device name is: RFC 9728 §3.1, inserted before the path. */
export function resourceMetadataUrl(origin: string, name: string): string {
  return `${origin}/.well-known/oauth-protected-resource/mcp/${encodeURIComponent(name)}`;
}
