/**
 * Cloudflare Access in front of the relay signs who came through. The header is believed for its signature alone, so it
 * does not matter who else could send it.
 */
import type { Context } from "hono";
import type { AppEnv } from "../env.ts";
import { EDGE } from "../limits.ts";
import type { SignInConfig } from "../policy/sign-in-config.ts";
import { verifyIssued } from "./issuer.ts";
import type { Vouched } from "./outside-identity.ts";

const HEADER = "cf-access-jwt-assertion";

/** Who Access says this is, or null: no assertion, or one that is not for this relay. */
export async function accessIdentity(c: Context<AppEnv>, { team, audience }: NonNullable<SignInConfig["access"]>): Promise<Vouched | null> {
  const token = c.req.header(HEADER);
  if (token === undefined || token.length > EDGE.maxTokenLength) return null;
  const issuer = `https://${team}.cloudflareaccess.com`;
  const claims = await verifyIssued(token, { issuer, audience, jwksUrl: `${issuer}/cdn-cgi/access/certs` });
  if (claims?.sub === undefined || claims.sub === "") return null;
  const { email } = claims;
  // Access has verified the address: it is how the person came in. A service token has none.
  return { issuer, sub: claims.sub, verifiedEmail: typeof email === "string" ? email : undefined, name: undefined };
}
