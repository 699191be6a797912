/** What an owner changed of the device, and what that does to what runs. */
import type { Failure } from "../src/errors.ts";
import { unparkCall } from "./call-end.ts";
import type { Desk } from "./desk.ts";
import { endAll } from "./link-changes.ts";
import type { DeviceChange } from "./rpc.ts";

/** Takes a change over. A pause ends every call; the tunnel stays. */
export function takeChange(desk: Desk, { name, mcpUrl, pausedAt }: DeviceChange): void {
  if (name !== undefined) desk.meta.set("name", name);
  if (mcpUrl !== undefined) desk.meta.set("mcpUrl", mcpUrl);
  if (pausedAt === undefined) return;
  const wasPaused = isPaused(desk);
  desk.meta.set("pausedAt", pausedAt);
  if (pausedAt === null || wasPaused) return;
  endAll(desk);
  for (const call of desk.parked.waiting()) unparkCall(desk, call.id, "revoked");
}

/** Whether the owner has paused the device. */
export function isPaused(desk: Desk): boolean {
  return (desk.meta.get("pausedAt") ?? null) !== null;
}

/** What a caller of a paused device hears. */
export const PAUSED: Failure = {
  reason: "device_offline",
  outcome: "not_started",
  message: "The owner of this device has paused it. Ask them to resume it, then call again.",
  data: { paused: true },
};
