/** Whether OAuth works at an origin, and the endpoints it has. Pure. */

/** Paths of the authorization server on the relay's canonical origin. */
export const OAUTH_PATHS = {
  metadata: "/.well-known/oauth-authorization-server",
  openid: "/.well-known/openid-configuration",
  authorize: "/oauth/authorize",
  token: "/oauth/token",
  register: "/oauth/register",
  revoke: "/oauth/revoke",
} as const;

const LOOPBACK = /^(localhost|\[::1\]|127(\.\d{1,3}){3})$/;

/** Whether a host name can only be this machine (RFC 8252 §7.3, and `localhost`, which clients use). */
export function isLoopbackHost(host: string): boolean {
  return LOOPBACK.test(host.toLowerCase());
}

/** OAuth 2.1 §1.5: codes and tokens travel over TLS, or do not leave the machine. */
export function isSecureOrigin(origin: string): boolean {
  const url = new URL(origin);
  return url.protocol === "https:" || (url.protocol === "http:" && isLoopbackHost(url.hostname));
}

/** Why there is no OAuth at `asked`, for a person; undefined when there is. `listed` are the relay's public origins. */
export function oauthOff(listed: readonly string[], asked: string): string | undefined {
  const insecure = [listed[0] ?? "", asked].find((origin) => !isSecureOrigin(origin));
  if (insecure === undefined) return undefined;
  return `OAuth is off: ${insecure} is plain http, where codes and tokens could be read on the way. Give the relay an https origin (\`longline origin add\`), or use a token of \`longline token create\`.`;
}
