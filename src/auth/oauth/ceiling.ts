/** What a person may pass on to a client of theirs on a device: an owner everything, a member what they were given. */
import { listInvitedRights } from "../../db/invited-rights.ts";
import type { Env } from "../../env.ts";
import { OAUTH } from "../../limits.ts";
import { type Caps, DEFAULT_CAPS, isFull, type Rights } from "../../policy/grant.ts";
import type { WebSession } from "../web-session.ts";

/** The most that can be approved. */
export interface Ceiling {
  rights: Rights;
  caps: Caps;
  /** ms of the longest life. */
  lifeMs: number;
}

const DAY_MS = 24 * 3_600 * 1000;
const LONGEST_MS = Math.max(...OAUTH.lifeDays) * DAY_MS;

function union(all: readonly Rights[]): Rights {
  if (all.some((rights) => isFull(rights))) return {};
  const kinds = (["tools", "resources", "prompts"] as const).map((kind) => {
    const lists = all.flatMap((rights) => (rights[kind] === undefined ? [] : [rights[kind]]));
    return lists.length === 0 ? {} : { [kind]: [...new Set(lists.flat())] };
  });
  return Object.assign({}, ...kinds) as Rights;
}

/** The ceiling of a signed-in person on a device; null when the device is none of theirs. */
export async function ceilingOf(env: Env, session: WebSession, deviceId: string): Promise<Ceiling | null> {
  if (session.role === "owner") return { rights: {}, caps: DEFAULT_CAPS, lifeMs: LONGEST_MS };
  const given = await listInvitedRights(env.DB, session.memberId, deviceId);
  const [newest] = given;
  if (newest === undefined) return null;
  return {
    rights: union(given.map((one) => one.rights)),
    caps: newest.caps ?? DEFAULT_CAPS,
    lifeMs: Math.min(LONGEST_MS, ...given.map((one) => one.grantMs ?? LONGEST_MS)),
  };
}
