/** The one way a credential comes in: `Authorization: Bearer …` (RFC 6750 §2.1). Never a query parameter, never a body. */
import { EDGE } from "../limits.ts";

// RFC 6750 §2.1: b64token. A list of two credentials contains a comma and does not match.
const BEARER = /^Bearer +([A-Za-z0-9._~+/-]+=*) *$/i;

/** The bearer credential of a request, or undefined: no header, another scheme, malformed or too long. */
export function bearerToken(headers: Headers): string | undefined {
  const header = headers.get("authorization");
  // SECURITY: bounded before the pattern and before any cryptography.
  if (header === null || header.length > EDGE.maxTokenLength + "Bearer ".length) return undefined;
  return BEARER.exec(header)?.[1];
}
