/** Answers of the token, revocation and registration endpoints (RFC 6749 §5, RFC 7009 §2.2), and reading their bodies. */
import { OAUTH } from "../../limits.ts";

const HEADERS = { "Content-Type": "application/json", "Cache-Control": "no-store", Pragma: "no-cache" };

/** An OAuth error. `description` is public. */
export function oauthError(error: string, description: string, status = 400, headers: Record<string, string> = {}): Response {
  return new Response(JSON.stringify({ error, error_description: description }), { status, headers: { ...HEADERS, ...headers } });
}

/** A JSON answer that nobody keeps. */
export function oauthJson(body: Record<string, unknown>, status = 200): Response {
  return new Response(JSON.stringify(body), { status, headers: HEADERS });
}

/** The body of a request as text, or the answer for one that is larger than OAUTH.maxBodyBytes. */
export async function boundedText(request: Request): Promise<string | Response> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of request.body ?? []) {
    size += part.length;
    if (size > OAUTH.maxBodyBytes) return oauthError("invalid_request", `The body is larger than ${OAUTH.maxBodyBytes} bytes.`, 413);
    parts.push(part);
  }
  return new Blob(parts).text();
}

/** The library's id of an authorization, from a code or refresh token of the form `member:id:secret`. */
export function authorizationIdOf(token: string): string | undefined {
  const parts = token.split(":");
  return parts.length === 3 ? parts[1] : undefined;
}
