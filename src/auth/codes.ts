/**
 * Codes of set-up links and invitations: random, single-use, known by hash. They travel in the fragment of a link, which
 * no server sees, and then in a POST; looking at one changes nothing, so that a preview of the link uses nothing up.
 */
import { findOpenInvitation, type Invitation } from "../db/invitations.ts";
import { findSetupCode, insertSetupCode } from "../db/setup-codes.ts";
import { configOf, type Env } from "../env.ts";
import { WEB } from "../limits.ts";
import { hashSecret, randomSecret } from "./secrets.ts";

const CODE = /^lli_[A-Za-z0-9_-]{43}$/;
/** The page that takes codes. */
export const JOIN_PATH = "/join";

/** What a code opens, if it still opens something. */
export type Opened =
  | { kind: "setup"; hash: string; memberId: string; name: string }
  | { kind: "invitation"; hash: string; invitation: Invitation };

/** A new code. */
export function mintCode(): string {
  return `lli_${randomSecret()}`;
}

/** The link that carries a code, on the canonical origin. */
export function linkOf(env: Env, code: string): string {
  return `${configOf(env).origins[0] ?? ""}${JOIN_PATH}#${code}`;
}

/** What a code stands for now, or null: no code, unknown, used, revoked or expired. Changes nothing. */
export async function lookUpCode(env: Env, code: string): Promise<Opened | null> {
  if (!CODE.test(code)) return null;
  const hash = await hashSecret(code);
  const now = Date.now();
  const invitation = await findOpenInvitation(env.DB, hash, now);
  if (invitation !== null) return { kind: "invitation", hash, invitation };
  const setup = await findSetupCode(env.DB, hash, now);
  return setup === null ? null : { kind: "setup", hash, ...setup };
}

/** Makes a set-up link for a member; good once, for WEB.setupMs. */
export async function makeSetupLink(env: Env, memberId: string): Promise<{ link: string; expiresAt: number }> {
  const code = mintCode();
  const createdAt = Date.now();
  const expiresAt = createdAt + WEB.setupMs;
  await insertSetupCode(env.DB, { hash: await hashSecret(code), memberId, createdAt, expiresAt });
  return { link: linkOf(env, code), expiresAt };
}
