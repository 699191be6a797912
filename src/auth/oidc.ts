/**
 * Signing in at an OIDC issuer: the code flow with PKCE (RFC 7636), state and nonce. What has to come back unchanged is
 * sealed into a short-lived cookie of this browser, so that a sign-in begun elsewhere does not end here.
 */
import type { Context } from "hono";
import { deleteCookie, getCookie, setCookie } from "hono/cookie";
import { base64url } from "jose";
import { z } from "zod";
import { type AppEnv, configOf } from "../env.ts";
import { ApiError } from "../errors.ts";
import { WEB } from "../limits.ts";
import type { SignInConfig } from "../policy/sign-in-config.ts";
import { fetchJson, type Metadata, readMetadata, verifyIssued } from "./issuer.ts";
import type { Vouched } from "./outside-identity.ts";
import { seal, unseal } from "./sealing.ts";
import { constantTimeEqual, randomSecret } from "./secrets.ts";

type Oidc = NonNullable<SignInConfig["oidc"]>;

/** Where the issuer sends the person back to. */
export const CALLBACK_PATH = "/sign-in/oidc/callback";

const Begun = z.strictObject({ state: z.string(), nonce: z.string(), verifier: z.string(), next: z.string(), until: z.number() });
type Begun = z.infer<typeof Begun>;
const TokenAnswer = z.looseObject({ id_token: z.string() });

function cookieOf(c: Context<AppEnv>): { name: string; secure: boolean } {
  const secure = c.get("origin").startsWith("https:");
  return { name: secure ? "__Host-longline-oidc" : "longline-oidc", secure };
}

function redirectUri(c: Context<AppEnv>): string {
  return `${c.get("origin")}${CALLBACK_PATH}`;
}

async function challengeOf(verifier: string): Promise<string> {
  return base64url.encode(new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier))));
}

/** Begins a sign-in: the URL at the issuer, with this browser's cookie set on the context. */
export async function beginOidc(c: Context<AppEnv>, oidc: Oidc, next: string): Promise<string> {
  const metadata = await readMetadata(oidc.issuer);
  const begun: Begun = { state: randomSecret(), nonce: randomSecret(), verifier: randomSecret(), next, until: Date.now() + WEB.oidcMs };
  const { name, secure } = cookieOf(c);
  const sealed = await seal(configOf(c.env).rootKey, "sign-in", "oidc", JSON.stringify(begun));
  setCookie(c, name, sealed, { path: "/", httpOnly: true, sameSite: "Lax", secure, maxAge: WEB.oidcMs / 1000 });
  const url = new URL(metadata.authorization_endpoint);
  const parameters = {
    response_type: "code",
    client_id: oidc.clientId,
    redirect_uri: redirectUri(c),
    scope: "openid email profile",
    state: begun.state,
    nonce: begun.nonce,
    code_challenge: await challengeOf(begun.verifier),
    code_challenge_method: "S256",
  };
  for (const [key, value] of Object.entries(parameters)) url.searchParams.set(key, value);
  return url.href;
}

/** Ends a sign-in: who came back from the issuer, and where they wanted to go. The cookie is used up either way. */
export async function endOidc(c: Context<AppEnv>, oidc: Oidc): Promise<{ person: Vouched; next: string }> {
  const begun = await takeBegun(c);
  const code = c.req.query("code");
  if (code === undefined) throw new ApiError("forbidden", "The sign-in service did not sign you in. Try again.");
  const iss = c.req.query("iss");
  // RFC 9207 §2.4: an answer of another issuer.
  if (iss !== undefined && iss !== oidc.issuer) throw notBegun();
  const metadata = await readMetadata(oidc.issuer);
  const { id_token: token } = await exchange(c, oidc, metadata, code, begun.verifier);
  const claims = await verifyIssued(token, { issuer: oidc.issuer, audience: oidc.clientId, jwksUrl: metadata.jwks_uri });
  // OpenID Connect Core §3.1.3.7: the nonce, and `azp` when the token is for several.
  const isForUs = claims?.["nonce"] === begun.nonce && (claims["azp"] === undefined || claims["azp"] === oidc.clientId);
  if (claims === null || claims.sub === undefined || !isForUs)
    throw new ApiError("forbidden", "The sign-in service's answer cannot be believed. Try again.");
  return { person: vouched(oidc.issuer, claims.sub, claims), next: begun.next };
}

function vouched(issuer: string, sub: string, claims: Record<string, unknown>): Vouched {
  const { email, email_verified: isVerified, name } = claims;
  return {
    issuer,
    sub,
    // SECURITY: an address that the issuer has not verified is whatever the person typed.
    verifiedEmail: isVerified === true && typeof email === "string" ? email : undefined,
    name: typeof name === "string" ? name : undefined,
  };
}

function notBegun(): ApiError {
  return new ApiError("forbidden", "This sign-in was not begun in this browser, or it took too long. Begin again.");
}

async function takeBegun(c: Context<AppEnv>): Promise<Begun> {
  const { name, secure } = cookieOf(c);
  const sealed = getCookie(c, name);
  deleteCookie(c, name, { path: "/", secure });
  const state = c.req.query("state");
  const text = sealed === undefined ? "" : await unseal(configOf(c.env).rootKey, "sign-in", "oidc", sealed).catch(() => "");
  if (text === "" || state === undefined) throw notBegun();
  const begun = Begun.parse(JSON.parse(text));
  if (!constantTimeEqual(begun.state, state) || begun.until <= Date.now()) throw notBegun();
  return begun;
}

async function exchange(c: Context<AppEnv>, oidc: Oidc, metadata: Metadata, code: string, verifier: string) {
  const body = new URLSearchParams({ grant_type: "authorization_code", code, redirect_uri: redirectUri(c), code_verifier: verifier });
  const headers: Record<string, string> = { "Content-Type": "application/x-www-form-urlencoded", Accept: "application/json" };
  // RFC 6749 §2.3.1: both parts are form-encoded first.
  if (oidc.clientSecret === undefined) body.set("client_id", oidc.clientId);
  else headers["Authorization"] = `Basic ${btoa(`${encodeURIComponent(oidc.clientId)}:${encodeURIComponent(oidc.clientSecret)}`)}`;
  return await fetchJson(metadata.token_endpoint, TokenAnswer, { method: "POST", headers, body: body.toString() });
}
