/**
 * What crosses the hibernating socket between Worker and object that carries change notices: the facts of a listener,
 * in a header of the upgrade, and messages of the object, one JSON text each. The Worker never sends any. Design
 * section 5, "Asleep when idle".
 */
import { z } from "zod";
import { LISTEN } from "../limits.ts";

/** The lists whose changes are told; templates belong to the resources. */
export const LIST_KINDS = ["tools", "prompts", "resources"] as const;
export const ListKind = z.enum(LIST_KINDS);
export type ListKind = z.infer<typeof ListKind>;

/** How often each list has changed since the object was born: what a listener saw last, so that nothing is lost between two sockets. */
export const ListVersions = z.strictObject({
  tools: z.int().nonnegative(),
  prompts: z.int().nonnegative(),
  resources: z.int().nonnegative(),
});
export type ListVersions = z.infer<typeof ListVersions>;

const Uri = z.string().max(8192);

/** What a listener wants. Sent by the Worker, which has verified the token. */
export const ListenFacts = z.strictObject({
  grant: z.string().max(256),
  /** Of a modern listener: what it asked for. */
  filter: z.strictObject({ lists: z.array(ListKind).max(LIST_KINDS.length), resources: z.array(Uri).max(LISTEN.resources) }).optional(),
  /** Of a legacy session's own stream: it gets every list, and the resources the session subscribed to. */
  session: z
    .strictObject({ id: z.string().max(256), headerVersion: z.string().max(64).optional(), strict: z.literal(true).optional() })
    .optional(),
  /** Of a listener that lost its object: what it was told last. */
  seen: ListVersions.optional(),
});
export type ListenFacts = z.infer<typeof ListenFacts>;

export const ListenMessage = z.discriminatedUnion("type", [
  /** First of all: what the listener gets. */
  z.strictObject({ type: z.literal("open"), lists: z.array(ListKind), resources: z.array(Uri), versions: ListVersions }),
  z.strictObject({ type: z.literal("list"), what: ListKind, version: z.int().nonnegative() }),
  z.strictObject({ type: z.literal("resource"), uri: Uri }),
  /** The relay stops: the client is told so, then the Worker closes the socket. */
  z.strictObject({ type: z.literal("end") }),
]);
export type ListenMessage = z.infer<typeof ListenMessage>;
export type Opened = Extract<ListenMessage, { type: "open" }>;

/** Path and header of the upgrade that the Worker makes. */
export const LISTEN_PATH = "/listen";
export const LISTEN_HEADER = "longline-listen";

/** Why the object ends a listener; all of them are orderly ends. */
export const LISTEN_CLOSE = {
  /** The grant was revoked or paused, or it expired. */
  grantOver: 4001,
  /** The session ended. */
  sessionOver: 4002,
  /** Another stream of the same session took over. */
  superseded: 4003,
  /** The device was removed. */
  removed: 4004,
} as const;

/** JSON as a header can hold it: nothing but ASCII. */
export function asciiJson(value: unknown): string {
  return JSON.stringify(value).replace(/[\u007f-\uffff]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** Reads one message of the object; null for anything else. */
export function readListenMessage(text: unknown): ListenMessage | null {
  if (typeof text !== "string") return null;
  try {
    const parsed = ListenMessage.safeParse(JSON.parse(text));
    return parsed.success ? parsed.data : null;
  } catch {
    return null; // Not JSON: the same as any other text that is not a message.
  }
}
