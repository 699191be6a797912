/** What the subjects' agents have in common, so that all do the same work. */

/** ms between two progress events: a tool that reports as it works, not a flood. */
export const EVENT_PAUSE_MS = 2;
/** Bytes of the floor's binary messages: as large as the tunnel's largest. */
export const FLOOR_CHUNK_BYTES = 256 * 1024;

/** ms of the machine's monotonic clock, the same in every process. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
