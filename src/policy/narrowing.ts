/**
 * Whether a changed grant can do nothing that it could not do before. Pure. Patterns are compared as text: a change that
 * is narrower in a way this does not see counts as one that may widen, which is the careful side.
 */
import { type Caps, type Grant, isFull, type Kind, type Rights } from "./grant.ts";

const KINDS: readonly Kind[] = ["tools", "resources", "prompts"];

/** True when `after` allows at most what `before` allows: rights, caps, life, pause, revocation. */
export function isAtMost(after: Grant, before: Grant): boolean {
  return (
    areRightsAtMost(after.rights, before.rights) &&
    areCapsAtMost(after.caps, before.caps) &&
    after.expiresAt <= before.expiresAt &&
    (before.pausedAt === null || after.pausedAt !== null) &&
    (before.revokedAt === null || after.revokedAt !== null)
  );
}

/** True when every kind of `after` is covered by `before`. */
export function areRightsAtMost(after: Rights, before: Rights): boolean {
  if (isFull(before)) return true;
  return !isFull(after) && KINDS.every((kind) => isListAtMost(after[kind], before[kind]));
}

function isListAtMost(after: readonly string[] | undefined, before: readonly string[] | undefined): boolean {
  if (after === undefined || after.length === 0) return true;
  if (before === undefined || before.length === 0) return false;
  const [afterIncludes, afterExcludes] = split(after);
  const [beforeIncludes, beforeExcludes] = split(before);
  // Patterns that only exclude include everything else.
  const isIncluded =
    beforeIncludes.length === 0 || (afterIncludes.length > 0 && afterIncludes.every((pattern) => beforeIncludes.includes(pattern)));
  return isIncluded && beforeExcludes.every((pattern) => afterExcludes.includes(pattern));
}

function split(patterns: readonly string[]): [includes: string[], excludes: string[]] {
  return [patterns.filter((p) => !p.startsWith("!")), patterns.filter((p) => p.startsWith("!"))];
}

function areCapsAtMost(after: Caps, before: Caps): boolean {
  const perMinute = (caps: Caps): number => caps.callsPerMinute ?? Infinity;
  return (
    perMinute(after) <= perMinute(before) &&
    after.inFlight <= before.inFlight &&
    after.parked <= before.parked &&
    after.listeners <= before.listeners
  );
}
