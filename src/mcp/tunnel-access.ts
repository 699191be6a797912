/**
 * How the edge reaches a device's object: the part of its RPC surface that serves callers, and what an RPC error
 * means. A stub that lost its object stays broken, so every further try takes a fresh one.
 */
import type { DeviceTunnelRpc, Refusal, Reply } from "../../durable/rpc.ts";
import type { ListenFacts } from "../tunnel/notices.ts";
import type { ListenReply } from "./listen-socket.ts";

/** The calls of `DeviceTunnelRpc` that serve callers; a device that never connected is served by a stand-in. */
export type EdgeTunnel = Pick<
  DeviceTunnelRpc,
  | "call"
  | "attach"
  | "resume"
  | "cancel"
  | "detach"
  | "delivered"
  | "describe"
  | "openSession"
  | "useSession"
  | "endSession"
  | "setLogLevel"
  | "cancelInSession"
  | "answerInSession"
>;

/** One device as the edge holds it during one HTTP request. */
export interface TunnelAccess {
  tunnel: EdgeTunnel;
  /** A stub that has not seen a failure. */
  fresh(): Promise<EdgeTunnel>;
  /** Opens a listener's socket, each time on a stub that has not seen a failure. */
  listen(facts: ListenFacts): Promise<ListenReply>;
  /** Waits `ms`. */
  pause(ms: number): Promise<void>;
  /** Writes an unexpected error to the log. */
  report(error: unknown): void;
}

/** True when the platform says that trying again would make it worse. */
export function isOverloaded(error: unknown): boolean {
  return hasFlag(error, "overloaded");
}

/** True when the object itself threw: a bug, not a loss. Broken streams carry no flags and count as losses. */
export function isRemote(error: unknown): boolean {
  return hasFlag(error, "remote");
}

function hasFlag(error: unknown, flag: string): boolean {
  return typeof error === "object" && error !== null && (error as Record<string, unknown>)[flag] === true;
}

/** The refusal in place of an answer when the object cannot be reached. */
export const UNREACHABLE: Refusal = { kind: "failure", failure: { reason: "tunnel_lost", outcome: "unknown" } };
/** The refusal when the platform sheds load; whether the object saw the request is not certain. */
export const OVERLOADED: Refusal = {
  kind: "failure",
  failure: { reason: "rate_limited", outcome: "unknown", data: { retryAfterMs: 1000 } },
};

/** One short RPC that may be repeated: tried once more on a fresh stub when the object was lost. */
export async function ask<T>(access: TunnelAccess, rpc: (tunnel: EdgeTunnel) => Promise<Reply<T>>): Promise<Reply<T>> {
  try {
    return await rpc(access.tunnel);
  } catch (error) {
    if (isOverloaded(error)) return { ok: false, refusal: OVERLOADED };
    if (isRemote(error)) throw error;
  }
  try {
    access.tunnel = await access.fresh();
    return await rpc(access.tunnel);
  } catch (error) {
    access.report(error);
    return { ok: false, refusal: isOverloaded(error) ? OVERLOADED : UNREACHABLE };
  }
}

/** One short notice to the object that may be repeated; a failure is only logged. */
export async function tell(access: TunnelAccess, rpc: (tunnel: EdgeTunnel) => Promise<void>): Promise<void> {
  try {
    await rpc(access.tunnel);
  } catch {
    try {
      await rpc(await access.fresh());
    } catch (error) {
      access.report(error);
    }
  }
}
