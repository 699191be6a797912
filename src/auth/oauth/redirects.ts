/**
 * Redirect URIs (OAuth 2.1 §2.3.1, RFC 8252 §7): https, http on loopback, and private-use schemes of known applications
 * or in reverse-domain form. docs/adr/0010-private-use-redirect-schemes.md says why, 0031 which. Pure.
 */
import { OAUTH } from "../../limits.ts";
import { isLoopbackHost } from "./availability.ts";

/** Schemes without a dot that widely used MCP clients register on the systems they run on. */
const APP_SCHEMES: ReadonlySet<string> = new Set(["cursor", "vscode", "vscode-insiders"]);
/** RFC 8252 §7.1: a domain name that its author controls, in reverse. */
const REVERSE_DOMAIN = /^[a-z][a-z0-9-]*(\.[a-z0-9-]+)+$/;

/** Where a code goes: `web` to a server, `loopback` to a program on the person's machine, `app` to what claimed a scheme. */
export interface Redirect {
  kind: "web" | "loopback" | "app";
  /** What the consent page shows: the host, or the scheme of an application. */
  shown: string;
  /** The CSP source that a form may end at. */
  formTarget: string;
  /** The same for each installation of a client: the URI without the port of a loopback address (RFC 8252 §7.3). */
  key: string;
}

function parse(uri: string): URL | undefined {
  if (uri.length > OAUTH.redirectUriLength || uri.includes("#") || !URL.canParse(uri)) return undefined;
  const url = new URL(uri);
  return url.username === "" && url.password === "" ? url : undefined;
}

/** What a redirect URI is, or undefined when this relay sends no code there. */
export function readRedirect(uri: string): Redirect | undefined {
  const url = parse(uri);
  if (url === undefined) return undefined;
  const scheme = url.protocol.slice(0, -1);
  if (scheme === "https") return { kind: "web", shown: url.host, formTarget: url.origin, key: uri };
  if (scheme === "http") {
    if (!isLoopbackHost(url.hostname)) return undefined;
    // CSP has no form for an IPv6 address, so its scheme has to do.
    const formTarget = url.hostname.startsWith("[") ? "http:" : url.origin;
    return { kind: "loopback", shown: url.host, formTarget, key: `${url.protocol}//${url.hostname}${url.pathname}${url.search}` };
  }
  if (!APP_SCHEMES.has(scheme) && !REVERSE_DOMAIN.test(scheme)) return undefined;
  return { kind: "app", shown: `${scheme}:`, formTarget: `${scheme}:`, key: uri };
}

/** What is wrong with the redirect URIs of a client that registers, or undefined. One that can be used is enough. */
export function registrationProblem(uris: unknown): string | undefined {
  if (!Array.isArray(uris)) return undefined; // The library says so.
  if (uris.length > OAUTH.redirectUris) return `At most ${OAUTH.redirectUris} redirect URIs can be registered.`;
  if (uris.some((uri) => typeof uri !== "string" || uri.length > OAUTH.redirectUriLength))
    return `A redirect URI is a text of at most ${OAUTH.redirectUriLength} characters.`;
  if (uris.some((uri) => typeof uri === "string" && readRedirect(uri) !== undefined)) return undefined;
  return "None of the redirect URIs can be used: https, http on a loopback address, or the private-use scheme of a known application.";
}
