/** Taking a person's access back: everything they can sign in with, then every grant on every device. */
import { unexpiredGrantsOf } from "../db/grants.ts";
import { type Member, removeMember } from "../db/members.ts";
import type { Env } from "../env.ts";
import { ApiError } from "../errors.ts";
import { log } from "../log.ts";
import { revokeEverywhere } from "./record-and-copy.ts";

/** What else has to end with a member. Rejects when it could not; running it again is safe. */
export type MemberRemoved = (env: Env, memberId: string) => Promise<void>;

const hooks: MemberRemoved[] = [];

/** Registers work for the removal of a member, such as ending what an authorization server holds of them. */
export function onMemberRemoved(hook: MemberRemoved): void {
  hooks.push(hook);
}

/**
 * Removes a member. First their ways in, so that nothing new is made; then what exists. Every part is tried whatever
 * becomes of the others; `incomplete` says what is left, and repeating the command finishes it.
 */
export async function removeMemberEverywhere(env: Env, member: Member): Promise<{ grants: number }> {
  if (!(await removeMember(env.DB, member.id, Date.now())))
    throw new ApiError("conflict", "This is the last owner. Invite another owner first, who can then remove this one.");
  const grants = await unexpiredGrantsOf(env.DB, member.id, Date.now());
  const work = [
    ...grants.map(
      ({ grant }) =>
        () =>
          revokeEverywhere(env, grant.id),
    ),
    ...hooks.map((hook) => () => hook(env, member.id)),
  ];
  let failures = 0;
  // One after the other: each grant may be another device's object.
  for (const part of work) {
    await part().catch((error: unknown) => {
      failures += 1;
      log("error", "member.removal-incomplete", { member: member.id, error });
    });
  }
  if (failures > 0)
    throw new ApiError("incomplete", "The person cannot sign in any more, but not every grant was confirmed revoked. Repeat the command.");
  return { grants: grants.filter(({ grant }) => grant.revokedAt === null).length };
}
