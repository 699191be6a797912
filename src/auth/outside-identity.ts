/** From somebody an issuer vouches for to a person of this relay, by the explicit list of subjects. */
import { findIdentity, insertIdentity, setRole } from "../db/identities.ts";
import type { Env } from "../env.ts";
import { ApiError } from "../errors.ts";
import { WEB } from "../limits.ts";
import { cleanText } from "../policy/clean-text.ts";
import { listedRole, type SignInConfig } from "../policy/sign-in-config.ts";
import { randomId } from "./secrets.ts";

/** What an issuer says of a person, once its signature was checked. */
export interface Vouched {
  issuer: string;
  sub: string;
  /** Only when the issuer says that it has verified it. */
  verifiedEmail: string | undefined;
  name: string | undefined;
}

/** The member id of a vouched person; `forbidden` when they are not listed or were removed. */
export async function memberOf(env: Env, { subjects }: SignInConfig, person: Vouched): Promise<string> {
  const role = listedRole(subjects, person);
  if (role === undefined)
    throw new ApiError("forbidden", "You are not on this relay's list. Ask its owner to add you, or for an invitation.");
  const { issuer, sub } = person;
  const known = await findIdentity(env.DB, issuer, sub);
  if (known === null) {
    const name = cleanText(person.name ?? person.verifiedEmail ?? sub, WEB.nameLength);
    await insertIdentity(env.DB, { issuer, subject: sub, memberId: randomId(), name, role, createdAt: Date.now() });
  }
  const member = known ?? (await findIdentity(env.DB, issuer, sub));
  if (member === null) throw new Error("the identity that was just stored cannot be read");
  if (member.isRemoved) throw new ApiError("forbidden", "An owner of this relay has removed you. Ask them for an invitation.");
  await setRole(env.DB, member.id, role);
  return member.id;
}
