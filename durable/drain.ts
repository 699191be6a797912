/** The relay's process is about to end in order: agents are told, what is in flight may end, and nothing new begins. */
import { TUNNEL } from "../src/limits.ts";
import type { Desk } from "./desk.ts";
import type { Refusal } from "./rpc.ts";

/**
 * Tells the agent, once, and gives the number of calls that are in flight. What was told is void when the relay is still there
 * later. `stops`: nobody takes over, so listeners end with the closing message of their era (MCP 2026-07-28, Subscriptions).
 */
export function drain(desk: Desk, stops: boolean): number {
  const now = desk.now();
  if (stops) desk.listeners.endAll("stopped");
  if (now >= desk.drainsUntil) desk.links.current()?.send({ type: "drain", reason: "the relay restarts" });
  desk.drainsUntil = now + 2 * TUNNEL.drainMs;
  return desk.pending.size;
}

/** Why a call is not begun while the relay drains; null at all other times. */
export function refusedByDrain(desk: Desk): Refusal | null {
  if (desk.now() >= desk.drainsUntil) return null;
  const message = "The relay restarts. Call again in a moment.";
  const { drainMs: retryAfterMs } = TUNNEL;
  return { kind: "failure", failure: { reason: "rate_limited", outcome: "not_started", message, data: { retryAfterMs } } };
}
