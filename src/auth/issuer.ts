/**
 * Reading what an outside issuer publishes and signs: its metadata, its keys, its tokens. Every request has a deadline and
 * goes to the issuer of the configuration or where its own metadata points, never to an address from a request.
 */
import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTPayload, jwtVerify } from "jose";
import { z } from "zod";
import { ApiError } from "../errors.ts";
import { WEB } from "../limits.ts";
import { log } from "../log.ts";

/** Signatures that are believed: asymmetric ones, so that neither `none` nor a client secret signs a token. */
const ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"];

const Keys = z.looseObject({ keys: z.array(z.looseObject({ kty: z.string() })) });
const Metadata = z.looseObject({
  issuer: z.string(),
  authorization_endpoint: z.url(),
  token_endpoint: z.url(),
  jwks_uri: z.url(),
});
/** OpenID Connect Discovery §3, as far as it is used. */
export type Metadata = z.infer<typeof Metadata>;

function unavailable(): ApiError {
  return new ApiError("incomplete", "The sign-in service did not answer as it should. Try again, or use another way to sign in.");
}

/** JSON from the issuer, or an error that says it did not answer. */
export async function fetchJson<T>(url: string, shape: z.ZodType<T>, init: RequestInit = {}): Promise<T> {
  try {
    // A redirect could lead to an address that nobody configured.
    const response = await fetch(url, { ...init, redirect: "manual", signal: AbortSignal.timeout(WEB.issuerMs) });
    if (!response.ok) throw new Error(`HTTP ${response.status}`);
    return shape.parse(await response.json());
  } catch (error) {
    log("warn", "issuer.unavailable", { host: new URL(url).host, error });
    throw unavailable();
  }
}

/** The metadata of an issuer, which has to name the same issuer (OpenID Connect Discovery §4.3). */
export async function readMetadata(issuer: string): Promise<Metadata> {
  const metadata = await fetchJson(`${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`, Metadata);
  if (metadata.issuer !== issuer) throw unavailable();
  return metadata;
}

/** The claims of a token that this issuer signed for this audience and that is valid now; null for any other text. */
export async function verifyIssued(
  token: string,
  { issuer, audience, jwksUrl }: { issuer: string; audience: string; jwksUrl: string },
): Promise<JWTPayload | null> {
  // Fetched for each sign-in: they are rare, and a key that was withdrawn counts no more at once.
  const keys = await fetchJson(jwksUrl, Keys);
  try {
    const { payload } = await jwtVerify(token, createLocalJWKSet(keys as JSONWebKeySet), {
      issuer,
      audience,
      algorithms: ALGORITHMS,
      clockTolerance: WEB.issuerSkewSeconds,
      requiredClaims: ["sub", "exp", "iat"],
    });
    return payload;
  } catch (error) {
    if (error instanceof errors.JOSEError) return null;
    throw error;
  }
}
