/**
 * What a stranger may cost in a minute: by address where it is known, else for the whole relay. Counts live in the
 * isolate: they bound what one can be made to do, and need no storage that a stranger could make us write. A relay-wide
 * count never keeps anybody with a valid credential out. Nothing that has to be exact is counted here.
 */
import type { Context } from "hono";
import { routePath } from "hono/route";
import type { AppEnv } from "../env.ts";
import { ApiError } from "../errors.ts";
import { ABUSE } from "../limits.ts";
import { addressGroup, clientAddress } from "./address.ts";
import { noteRefusedAttempt } from "./refused-attempts.ts";

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

/** Counts one; true beyond the limit, which goes on record. */
export function isOneTooMany(c: Context<AppEnv>, what: Limited): boolean {
  const { key, max } = bucketOf(c, what);
  const isOver = counts.add(key, Date.now()) > max;
  if (isOver) noteRefusedAttempt(c.env, routePath(c), "too_many");
  return isOver;
}

/** Whether this address has failed too often to be looked at; that attempt goes on record. */
export function hasFailedTooOften(c: Context<AppEnv>, what: Limited): boolean {
  const { key, max, isShared } = bucketOf(c, what);
  const isOver = !isShared && counts.get(key, Date.now()) >= max;
  if (isOver) noteRefusedAttempt(c.env, routePath(c), "too_many");
  return isOver;
}

/** Counts a request that costs something whoever sends it; `too_many` beyond the limit. */
export function limitRequests(c: Context<AppEnv>, what: Limited): void {
  if (isOneTooMany(c, what)) throw tooMany();
}

/** Before a credential is looked up: `too_many` when this address has failed too often. */
export function refuseAfterFailures(c: Context<AppEnv>, what: Limited): void {
  if (hasFailedTooOften(c, what)) throw tooMany();
}

/** A credential opened nothing: counts it, for the audit too, and answers `too_many` instead beyond the limit. */
export function countFailure(c: Context<AppEnv>, what: Limited): void {
  noteFailure(c);
  limitRequests(c, what);
}

/** A credential opened nothing: puts it on record. */
export function noteFailure(c: Context<AppEnv>): void {
  noteRefusedAttempt(c.env, routePath(c), "not_authorised");
}
