/**
 * What Cloudflare bills for: events of each case, as counted by test/worker/cost.test.ts, and the prices of a paid plan as
 * inputs. docs/cost.md shows what comes out.
 */

/** Billable events of one case. Rows are written ones; those that are read cost a thousandth of them. */
export interface Events {
  /** Requests of the Worker. */
  requests: number;
  /** HTTP and RPC sessions of objects. */
  objectRequests: number;
  /** WebSocket messages that reach an object or its automatic answer; 20 are billed as one request. */
  messages: number;
  objectRows: number;
  databaseRows: number;
  /** s that an object is in memory and cannot sleep. */
  awakeSeconds: number;
}

/** Prices of a paid plan in USD, and what they are per. Source: Cloudflare's pricing pages, November 2026; look them up again. */
export const PRICES = {
  request: 0.3 / 1e6,
  objectRequest: 0.15 / 1e6,
  gigabyteSecond: 12.5 / 1e6,
  objectRow: 1 / 1e6,
  databaseRow: 1 / 1e6,
} as const;

/** Memory that is billed for an object, whatever it uses, in GB. */
const OBJECT_GB = 0.128;
/** s that an object stays awake after a call for the batch of audit rows, and the word to the agent that follows it. */
export const TAIL_SECONDS = 0.5;
/** Connections of a quiet device in a day: a deploy, a release of the platform, a night. */
export const CONNECTS_PER_DAY = 3;

/** Counted: an agent dials in, says hello with a small catalogue, and its socket closes. */
export const CONNECT: Events = { requests: 1, objectRequests: 1, messages: 2, objectRows: 30, databaseRows: 4, awakeSeconds: 1 };
/** Counted: a listener opens and waits. */
export const LISTENER: Events = { requests: 1, objectRequests: 1, messages: 0, objectRows: 0, databaseRows: 0, awakeSeconds: 0.1 };
/** Counted: a call of a busy device, of 100 in a row; its tool takes 100 ms, ten at a time. */
export const BUSY_CALL: Events = { requests: 1, objectRequests: 1, messages: 1, objectRows: 0, databaseRows: 4.1, awakeSeconds: 0.01 };
/** Counted: a call of a quiet device: nobody else takes along the word that it was delivered. */
export const QUIET_CALL: Events = { ...BUSY_CALL, objectRequests: 2, databaseRows: 4.1, awakeSeconds: 0.1 + TAIL_SECONDS };

/** A day of a device that is online and idle: its agent's `ping` once a minute never wakes the object. */
export function idleDay(pingMs: number): Events {
  const connects = times(CONNECT, CONNECTS_PER_DAY);
  return { ...connects, messages: connects.messages + 86_400_000 / pingMs };
}

/** The same events so many times. */
export function times(events: Events, count: number): Events {
  const entries = Object.entries(events) as [keyof Events, number][];
  return Object.fromEntries(entries.map(([name, value]) => [name, value * count])) as unknown as Events;
}

/** USD, beyond what a plan includes. */
export function price({ requests, objectRequests, messages, objectRows, databaseRows, awakeSeconds }: Events): number {
  return (
    requests * PRICES.request +
    (objectRequests + messages / 20) * PRICES.objectRequest +
    awakeSeconds * OBJECT_GB * PRICES.gigabyteSecond +
    objectRows * PRICES.objectRow +
    databaseRows * PRICES.databaseRow
  );
}
