/**
 * The two refusals of the MCP endpoint that carry a challenge (RFC 6750 §3, RFC 9728 §5.1). The 401 is the same for
 * every device and every cause, so that it says nothing about which devices, grants or tokens exist.
 */
import type { Context } from "hono";
import type { AppEnv } from "../env.ts";
import { EDGE } from "../limits.ts";
import { resourceMetadataUrl } from "./origins.ts";

const UNAUTHORISED = JSON.stringify({
  error: { code: "not_authorised", message: "A valid access token for this URL is needed, as `Authorization: Bearer <token>`." },
});

/** The scope every MCP request needs; broader ones come with the tool that asks for them. */
export const BASE_SCOPE = "device:read";

function metadataParameter(c: Context<AppEnv>): string {
  return `resource_metadata="${resourceMetadataUrl(c.get("origin"), c.req.param("device") ?? "")}"`;
}

function refusal(status: 401 | 403, challenge: string, body: string): Response {
  return new Response(body, {
    status,
    headers: { "Content-Type": "application/json", "Cache-Control": "no-store", "WWW-Authenticate": challenge },
  });
}

/** 401 for a request without a usable token or grant: one body, and a challenge that depends on the request only. */
export function unauthorised(c: Context<AppEnv>): Response {
  const parameters = [metadataParameter(c), `scope="${BASE_SCOPE}"`];
  // RFC 6750 §3.1: an error code only when the request carried credentials.
  if (c.req.raw.headers.has("authorization")) parameters.unshift(`error="invalid_token"`);
  return refusal(401, `Bearer ${parameters.join(", ")}`, UNAUTHORISED);
}

/** RFC 6749 §3.3: a scope-token is printable ASCII without space, quote and backslash; anything else is percent-encoded. */
export function scopeToken(text: string): string {
  return text.toWellFormed().replace(/[^\x21\x23-\x5B\x5D-\x7E]/gu, (character) => encodeURIComponent(character));
}

/**
 * 403 for a call beyond the grant, naming every scope the operation needs at once. `body` is the JSON text of the
 * JSON-RPC error, or the value to serialise.
 */
export function insufficientScope(c: Context<AppEnv>, scopes: readonly string[], body: string | object): Response {
  const named = scopes.map(scopeToken).filter((scope) => scope.length <= EDGE.scopeLength);
  const challenge = `Bearer error="insufficient_scope", scope="${named.join(" ")}", ${metadataParameter(c)}`;
  return refusal(403, challenge, typeof body === "string" ? body : JSON.stringify(body));
}
