/**
 * Signing in through somebody else: an OIDC issuer or Cloudflare Access, by configuration. Either needs an explicit list
 * of the people who may; without it nothing starts, because "everybody at that issuer" is never meant. Pure.
 */
import { z } from "zod";

/** Who may sign in, and as what. */
export interface ListedSubject {
  role: "owner" | "member";
  /** The issuer's `sub`, or an email address that it has verified. */
  subject: string;
}

/** How people sign in beside links and tokens. */
export interface SignInConfig {
  oidc?: { issuer: string; clientId: string; clientSecret?: string };
  access?: { team: string; audience: string };
  subjects: readonly ListedSubject[];
}

/** Names of the variables; the first one of a pair switches its way on. */
export const SIGN_IN_VARIABLES = [
  "LONGLINE_OIDC_ISSUER",
  "LONGLINE_OIDC_CLIENT_ID",
  "LONGLINE_OIDC_CLIENT_SECRET",
  "LONGLINE_ACCESS_TEAM",
  "LONGLINE_ACCESS_AUDIENCE",
  "LONGLINE_SUBJECTS",
] as const;
export type SignInVariables = { readonly [K in (typeof SIGN_IN_VARIABLES)[number]]?: string | undefined };

// OpenID Connect Discovery §3: https, without query and fragment. Loopback http is for a test of one's own.
const Issuer = z.string().refine((text) => {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isSafe = url?.protocol === "https:" || (url?.protocol === "http:" && ["127.0.0.1", "localhost", "[::1]"].includes(url.hostname));
  return url !== undefined && isSafe && url.search === "" && url.hash === "" && url.username === "";
}, "LONGLINE_OIDC_ISSUER must look like https://issuer.example");
const Team = z.string().regex(/^[a-z0-9-]{1,63}$/, "LONGLINE_ACCESS_TEAM is the name before .cloudflareaccess.com");

function present(text: string | undefined): string | undefined {
  return text === undefined || text.trim() === "" ? undefined : text.trim();
}

function readSubjects(text: string | undefined): ListedSubject[] {
  const entries = (text ?? "")
    .split(",")
    .map((entry) => entry.trim())
    .filter((entry) => entry !== "");
  return entries.map((entry) => {
    const [, role, subject] = /^(owner|member):(\S{1,255})$/.exec(entry) ?? [];
    if ((role !== "owner" && role !== "member") || subject === undefined)
      throw new Error("LONGLINE_SUBJECTS must be a list such as owner:ada@example.com,member:248289761001");
    return { role, subject };
  });
}

/** Reads the variables. Throws with the name of the one that is wrong or missing, and never with its value. */
export function readSignInConfig(variables: SignInVariables): SignInConfig {
  const issuer = present(variables.LONGLINE_OIDC_ISSUER);
  const team = present(variables.LONGLINE_ACCESS_TEAM);
  const subjects = readSubjects(present(variables.LONGLINE_SUBJECTS));
  if (issuer === undefined && team === undefined) return { subjects };
  if (subjects.length === 0)
    throw new Error("LONGLINE_SUBJECTS must list who may sign in, such as owner:ada@example.com,member:248289761001");
  return { ...oidcOf(issuer, variables), ...accessOf(team, variables), subjects };
}

function oidcOf(issuer: string | undefined, variables: SignInVariables): Pick<SignInConfig, "oidc"> {
  if (issuer === undefined) return {};
  const clientId = present(variables.LONGLINE_OIDC_CLIENT_ID);
  const clientSecret = present(variables.LONGLINE_OIDC_CLIENT_SECRET);
  if (clientId === undefined) throw new Error("LONGLINE_OIDC_CLIENT_ID is missing: the issuer's name for this relay");
  return { oidc: { issuer: checked(Issuer, issuer), clientId, ...(clientSecret === undefined ? {} : { clientSecret }) } };
}

function accessOf(team: string | undefined, variables: SignInVariables): Pick<SignInConfig, "access"> {
  if (team === undefined) return {};
  const audience = present(variables.LONGLINE_ACCESS_AUDIENCE);
  if (audience === undefined) throw new Error("LONGLINE_ACCESS_AUDIENCE is missing: the application's audience tag");
  return { access: { team: checked(Team, team), audience } };
}

function checked(shape: z.ZodType<string>, text: string): string {
  const parsed = shape.safeParse(text);
  if (!parsed.success) throw new Error(parsed.error.issues[0]?.message ?? "a variable is wrong");
  return parsed.data;
}

/** The role of somebody an issuer vouches for, or undefined for whoever is not listed. */
export function listedRole(
  subjects: readonly ListedSubject[],
  person: { sub: string; verifiedEmail: string | undefined },
): ListedSubject["role"] | undefined {
  const email = person.verifiedEmail?.toLowerCase();
  return subjects.find(({ subject }) => subject === person.sub || (email !== undefined && subject.toLowerCase() === email))?.role;
}
