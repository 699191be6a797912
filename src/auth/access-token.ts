/**
 * Access tokens: JWTs (RFC 7519) signed with EdDSA, `typ` `longline+jwt`. They name a grant and carry no rights; the
 * object decides by the grant. Verified without storage: signature, type, issuer, life; the audience is the caller's
 * to compare, because it depends on the URL that was asked for.
 */
import { decodeProtectedHeader, errors, jwtVerify, SignJWT } from "jose";
import { z } from "zod";
import { configOf, type Env } from "../env.ts";
import { EDGE } from "../limits.ts";
import { acceptedOrigins, mcpUrl } from "./origins.ts";
import { randomId } from "./secrets.ts";
import { SIGNING_ALGORITHM, signingKey, verifyingKey } from "./signing-keys.ts";
import { VerifiedTokens } from "./verified-tokens.ts";

const TYPE = "longline+jwt";

const Claims = z.object({
  iss: z.string(),
  /** One MCP URL, never a list. */
  aud: z.string(),
  /** Member id. */
  sub: z.string(),
  /** Device id. */
  device: z.string(),
  /** Grant id. */
  grant: z.string(),
  jti: z.string(),
  iat: z.number(),
  /** Seconds since the epoch. */
  exp: z.number(),
});
/** The claims of an access token. */
export type Claims = z.infer<typeof Claims>;

const Header = z.object({ alg: z.literal(SIGNING_ALGORITHM), typ: z.literal(TYPE), kid: z.string().max(64) });

const verified = new VerifiedTokens<Claims & { kid: string }>(EDGE.verifiedTokens);

/** Mints a token for a grant; `expiresAt` is epoch ms in whole seconds. Issuer and audience use the canonical origin. */
export async function mintAccessToken(
  env: Env,
  token: { deviceId: string; deviceName: string; grant: string; member: string; expiresAt: number },
): Promise<string> {
  const [canonical = ""] = configOf(env).origins;
  const { kid, key } = await signingKey(env);
  return new SignJWT({ device: token.deviceId, grant: token.grant })
    .setProtectedHeader({ alg: SIGNING_ALGORITHM, typ: TYPE, kid })
    .setIssuer(canonical)
    .setAudience(mcpUrl(canonical, token.deviceName))
    .setSubject(token.member)
    .setJti(randomId())
    .setIssuedAt()
    .setExpirationTime(Math.floor(token.expiresAt / 1000))
    .sign(key);
}

function readHeader(token: string): z.infer<typeof Header> | undefined {
  try {
    return Header.safeParse(decodeProtectedHeader(token)).data;
  } catch {
    // Not a JWS at all; the caller hears the same as for any other bad token.
    return undefined;
  }
}

async function verifySignature(env: Env, token: string): Promise<(Claims & { kid: string }) | undefined> {
  const header = readHeader(token);
  if (header === undefined) return undefined;
  const key = await verifyingKey(env, header.kid);
  if (key === undefined) return undefined;
  try {
    // SECURITY: the algorithm is fixed here; what the header says is only compared with it.
    const { payload } = await jwtVerify(token, key, {
      algorithms: [SIGNING_ALGORITHM],
      typ: TYPE,
      issuer: [...acceptedOrigins(configOf(env).origins)],
      requiredClaims: ["aud", "sub", "jti", "iat", "exp"],
    });
    const claims = Claims.safeParse(payload);
    return claims.success ? { ...claims.data, kid: header.kid } : undefined;
  } catch (error) {
    if (error instanceof errors.JOSEError) return undefined;
    throw error;
  }
}

/**
 * The claims of a token that is ours and alive, or undefined for every other text. Its audience is not checked here.
 * Throws only when D1 is needed and cannot be read.
 */
export async function verifyAccessToken(env: Env, token: string): Promise<Claims | undefined> {
  if (token.length > EDGE.maxTokenLength) return undefined;
  const known = verified.get(token);
  if (known === undefined) {
    const claims = await verifySignature(env, token);
    if (claims !== undefined) verified.set(token, claims);
    return claims;
  }
  // SECURITY: neither an expired token nor one of a retired key outlives its end in this cache.
  if (known.exp * 1000 > Date.now() && (await verifyingKey(env, known.kid)) !== undefined) return known;
  verified.delete(token);
  return undefined;
}
