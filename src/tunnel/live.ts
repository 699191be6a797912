/**
 * What crosses the hibernating socket between Worker and object that shows a device's calls as they happen: the facts of
 * a watcher, in a header of the upgrade, and messages of the object, one JSON text each. The Worker never sends any.
 */
import { z } from "zod";

/** Who watches. Sent by the Worker, which knows the person. */
export const WatchFacts = z.strictObject({
  /** Only calls of this member's grants; null for an owner, who sees all. */
  member: z.string().max(64).nullable(),
});
export type WatchFacts = z.infer<typeof WatchFacts>;

/** A call in flight. Names are the client's and the device's own words: whoever prints them cleans them. */
export const LiveCall = z.strictObject({
  id: z.string(),
  /** Epoch ms. */
  startedAt: z.number(),
  method: z.string().nullable(),
  target: z.string().nullable(),
  /** The grant's label, and the client's own name. */
  label: z.string().nullable(),
  client: z.string().nullable(),
});
export type LiveCall = z.infer<typeof LiveCall>;

export const LiveMessage = z.discriminatedUnion("type", [
  /** First of all: how it is now. */
  z.strictObject({ type: z.literal("open"), online: z.boolean(), calls: z.array(LiveCall) }),
  z.strictObject({ type: z.literal("began"), call: LiveCall }),
  z.strictObject({
    type: z.literal("progress"),
    id: z.string(),
    progress: z.number(),
    total: z.number().nullable(),
    message: z.string().nullable(),
  }),
  z.strictObject({
    type: z.literal("ended"),
    id: z.string(),
    /** As in the audit; `waiting` for a call that waits for a person's answer. */
    outcome: z.string(),
    reason: z.string().nullable(),
    durationMs: z.number(),
  }),
  z.strictObject({ type: z.literal("link"), online: z.boolean() }),
]);
export type LiveMessage = z.infer<typeof LiveMessage>;

/** Path and header of the upgrade that the Worker makes. */
export const WATCH_PATH = "/watch";
export const WATCH_HEADER = "longline-watch";
