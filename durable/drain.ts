/** The relay's process is about to end in order: agents are told, what is in flight may end, and nothing new begins. */
import { TUNNEL } from "../src/limits.ts";
import type { Desk } from "./desk.ts";
import { cancelCall, failCall, wasSent } from "./call-end.ts";
import type { Refusal } from "./rpc.ts";

const STOPPED = { reason: "tunnel_lost", message: "The relay was stopped during the call." } as const;

/**
 * Tells the agent, once, and gives the number of calls in flight. What was told is void when the relay is still there later.
 * `stops`: nobody takes over, so listeners are told too and end with the closing message of their era (MCP 2026-07-28,
 * Subscriptions); those whose client did not get it yet count like calls.
 */
export function drain(desk: Desk, stops: boolean): number {
  const now = desk.now();
  if (stops && now >= desk.stopsUntil) {
    desk.listeners.tellEnd();
    desk.watchers.endAll("stopped");
  }
  if (now >= desk.drainsUntil) desk.links.current()?.send({ type: "drain", reason: "the relay restarts" });
  desk.drainsUntil = now + 2 * TUNNEL.drainMs;
  if (!stops) return desk.pending.size;
  desk.stopsUntil = desk.drainsUntil;
  return desk.pending.size + desk.listeners.count;
}

/** Why no listener begins while the relay stops; null at all other times. One that is replaced leaves its listeners to the next. */
export function refusedByStop(desk: Desk): Refusal | null {
  return desk.now() >= desk.stopsUntil ? null : refusedByDrain(desk);
}

/**
 * Ends what is still in flight, because the process ends now and the connections of its callers with it. A modern call
 * is cancelled, as nobody can come back for it; a legacy one runs on. Gives the number of calls that were ended.
 */
export function endDrained(desk: Desk): number {
  const calls = desk.pending.all().filter((call) => !call.isComplete);
  for (const call of calls) {
    const failure = wasSent(call) ? ({ ...STOPPED, outcome: "unknown" } as const) : ({ ...STOPPED, outcome: "not_started" } as const);
    if (call.era === "modern") cancelCall(desk, call, "caller_left", failure);
    else failCall(desk, call, failure);
  }
  return calls.length;
}

/** Why a call is not begun while the relay drains; null at all other times. */
export function refusedByDrain(desk: Desk): Refusal | null {
  if (desk.now() >= desk.drainsUntil) return null;
  const message = "The relay restarts. Call again in a moment.";
  const { drainMs: retryAfterMs } = TUNNEL;
  return { kind: "failure", failure: { reason: "rate_limited", outcome: "not_started", message, data: { retryAfterMs } } };
}
