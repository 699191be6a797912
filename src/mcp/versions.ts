/**
 * The protocol revisions the edge speaks: the only date strings of the relay. A new revision starts here.
 */

/** The stateless revision. */
export const MODERN_VERSION = "2026-07-28";
/** The handshake revisions, newest first. */
export const LEGACY_VERSIONS = ["2025-11-25", "2025-06-18", "2025-03-26"] as const;
export type LegacyVersion = (typeof LEGACY_VERSIONS)[number];
/** All revisions, newest first; `server/discover` and -32022 list them. */
export const SUPPORTED_VERSIONS: readonly string[] = [MODERN_VERSION, ...LEGACY_VERSIONS];

/** What an `initialize` is answered with when it asks for a revision that has no handshake here. */
export const LATEST_LEGACY: LegacyVersion = LEGACY_VERSIONS[0];
/** What a legacy request without session and without version header is read as (2025-06-18, Transports). */
export const ASSUMED_VERSION: LegacyVersion = "2025-03-26";
/** The one revision that has JSON-RPC batches. */
export const BATCH_VERSION: LegacyVersion = "2025-03-26";

const legacy: ReadonlySet<string> = new Set(LEGACY_VERSIONS);

/** True for a handshake revision the edge speaks. */
export function isLegacyVersion(version: string): version is LegacyVersion {
  return legacy.has(version);
}

/** True for a stateless revision the edge speaks. */
export function isModernVersion(version: string): boolean {
  return version === MODERN_VERSION;
}

/** What a session speaks: a handshake revision, or the stateless one where a device's switch allows it. */
export type SessionVersion = LegacyVersion | typeof MODERN_VERSION;

/** The revision an `initialize` is answered with: the one asked for, else the newest with a handshake. */
export function negotiate(requested: string, allowsModern = false): SessionVersion {
  if (allowsModern && requested === MODERN_VERSION) return requested;
  return isLegacyVersion(requested) ? requested : LATEST_LEGACY;
}

/** True when a session's revision knows URL elicitation and its `elicitationId` (2025-11-25, Elicitation). */
export function hasUrlElicitation(version: string): boolean {
  return version === "2025-11-25" || isModernVersion(version);
}
