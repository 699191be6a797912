/** Which client a request to the token or revocation endpoint comes from, proven as the client registered (RFC 6749 §2.3). */
import type { Env } from "../../env.ts";
import { OAUTH_PATHS } from "./availability.ts";
import { authorizationServer, libraryRequest } from "./server.ts";

const CLIENT_PARAMETERS = ["client_id", "client_secret", "client_assertion", "client_assertion_type"];

/**
 * The client id, or the library's refusal. The library proves a client only on the way to something else: it is asked to
 * revoke a token that cannot exist.
 */
export async function authenticateClient(
  env: Env,
  context: ExecutionContext,
  request: { headers: Headers; form: URLSearchParams },
): Promise<{ ok: true; clientId: string } | { ok: false; response: Response }> {
  const form = new URLSearchParams({ token: "-" });
  for (const name of CLIENT_PARAMETERS) for (const value of request.form.getAll(name)) form.append(name, value);
  const asked = libraryRequest(env, OAUTH_PATHS.token, { headers: request.headers, body: form.toString() });
  const response = await authorizationServer(env, undefined).fetch(asked, env, context);
  if (!response.ok) return { ok: false, response };
  return { ok: true, clientId: clientIdOf(request) };
}

/** The client id a request names; proven only by `authenticateClient`. */
function clientIdOf({ headers, form }: { headers: Headers; form: URLSearchParams }): string {
  const basic = /^basic +([A-Za-z0-9+/=]+) *$/i.exec(headers.get("authorization") ?? "")?.[1];
  if (basic === undefined) return form.get("client_id") ?? assertedClient(form.get("client_assertion"));
  const [id = ""] = atob(basic).split(":");
  // RFC 6749 §2.3.1: form-encoded before it is base64.
  return decodeURIComponent(id.replaceAll("+", " "));
}

/** RFC 7523 §3: the subject of a client assertion is the client. The library has verified it. */
function assertedClient(assertion: string | null): string {
  const payload = assertion?.split(".")[1];
  if (payload === undefined) return "";
  const claims: unknown = JSON.parse(atob(payload.replaceAll("-", "+").replaceAll("_", "/")));
  return typeof claims === "object" && claims !== null && "sub" in claims && typeof claims.sub === "string" ? claims.sub : "";
}
