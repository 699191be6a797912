/**
 * Notices that the machine slept, or came to another network. A timer stands still while a machine sleeps and the
 * clock does not; and a connection of the old network often ends without a word.
 */
import { networkInterfaces } from "node:os";
import { AGENT } from "../limits.ts";

/** Surroundings, as far as a test makes its own. */
export interface WakeSources {
  /** Epoch ms. */
  now: () => number;
  /** The addresses of this machine, as one text. */
  addresses: () => string;
}

const REAL: WakeSources = { now: Date.now, addresses: ownAddresses };

/** Calls back after a sleep or a change of addresses, until it is stopped. */
export function watchForWake(onWake: () => void, { now, addresses }: WakeSources = REAL): () => void {
  let lookedAt = now();
  let known = addresses();
  const timer = setInterval(() => {
    const at = now();
    const found = addresses();
    // Both ways: a clock that was set back says as little about the connection.
    const hasJumped = Math.abs(at - lookedAt - AGENT.watchMs) > AGENT.jumpMs;
    const hasMoved = found !== known;
    lookedAt = at;
    known = found;
    if (hasJumped || hasMoved) onWake();
  }, AGENT.watchMs);
  timer.unref();
  return () => clearInterval(timer);
}

function ownAddresses(): string {
  try {
    const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
    return all
      .filter(({ internal }) => !internal)
      .map(({ address }) => address)
      .toSorted()
      .join(" ");
  } catch {
    return ""; // Android 13 and newer do not tell.
  }
}
