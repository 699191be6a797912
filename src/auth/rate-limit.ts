/**
 * What a stranger may cost in a minute: by address where it is known, else for the whole relay. Counts live in the
 * isolate: they bound what one can be made to do, and need no storage that a stranger could make us write. A relay-wide
 * count never keeps anybody with a valid credential out.
 */
import type { Context } from "hono";
import type { AppEnv } from "../env.ts";
import { ApiError } from "../errors.ts";
import { ABUSE } from "../limits.ts";
import { addressGroup, clientAddress } from "./address.ts";

/** What is limited. */
export type Limited = keyof typeof ABUSE.perMinute;

const MINUTE_MS = 60_000;

/** Counts by key, each in windows of a minute. Bounded: the oldest windows give way. */
export class MinuteCounts {
  readonly #counts = new Map<string, { from: number; count: number }>();
  readonly #limit: number;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** How many there were in the current window. */
  get(key: string, now: number): number {
    const window = this.#counts.get(key);
    return window === undefined || now - window.from >= MINUTE_MS ? 0 : window.count;
  }

  /** Counts one, and returns how many there are now. */
  add(key: string, now: number): number {
    const count = this.get(key, now) + 1;
    const from = count === 1 ? now : (this.#counts.get(key)?.from ?? now);
    this.#counts.delete(key);
    this.#counts.set(key, { from, count });
    const oldest = this.#counts.size > this.#limit ? this.#counts.keys().next() : undefined;
    if (oldest?.done === false) this.#counts.delete(oldest.value);
    return count;
  }
}

let counts = new MinuteCounts(ABUSE.rememberedKeys);

/** Forgets every count; a test starts clean with it. */
export function forgetCounts(): void {
  counts = new MinuteCounts(ABUSE.rememberedKeys);
}

interface Bucket {
  key: string;
  max: number;
  isShared: boolean;
}

function bucketOf(c: Context<AppEnv>, what: Limited): Bucket {
  const address = clientAddress(c);
  const { address: perAddress, relay } = ABUSE.perMinute[what];
  return address === undefined
    ? { key: what, max: relay, isShared: true }
    : { key: `${what} ${addressGroup(address)}`, max: perAddress, isShared: false };
}

function tooMany(): ApiError {
  return new ApiError("too_many", "Too many requests. Wait a minute, then try again.");
}

/** Counts a request that costs something whoever sends it; `too_many` beyond the limit. */
export function limitRequests(c: Context<AppEnv>, what: Limited): void {
  const { key, max } = bucketOf(c, what);
  if (counts.add(key, Date.now()) > max) throw tooMany();
}

/** Before a credential is looked up: `too_many` when this address has failed too often. */
export function refuseAfterFailures(c: Context<AppEnv>, what: Limited): void {
  const { key, max, isShared } = bucketOf(c, what);
  if (!isShared && counts.get(key, Date.now()) >= max) throw tooMany();
}

/** A credential opened nothing: counts it, and answers `too_many` instead beyond the limit. */
export function countFailure(c: Context<AppEnv>, what: Limited): void {
  const { key, max } = bucketOf(c, what);
  if (counts.add(key, Date.now()) > max) throw tooMany();
}
