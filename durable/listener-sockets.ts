/**
 * Sockets of listeners: hibernating ones between Worker and object, over which the object tells changes and nothing
 * comes back. A listener is its socket; what it wants of resources is in SQLite, the rest in its attachment.
 */
import { z } from "zod";
import { ListKind, type ListenMessage } from "../src/tunnel/notices.ts";
import { closeQuietly } from "./sockets.ts";

const TAG = "listener";

/** What a listener's socket remembers; below 2 KB, as every id in it is ours. */
export const ListenerAttachment = z.strictObject({
  v: z.literal(1),
  role: z.literal("listener"),
  id: z.string().max(64),
  grant: z.string().max(256),
  /** The legacy session whose stream it is. */
  session: z.string().max(256).optional(),
  lists: z.array(ListKind),
  /** False until the first message: before that nothing is told. */
  isOpen: z.boolean(),
});
export type ListenerAttachment = z.infer<typeof ListenerAttachment>;

/** One open listener. */
export interface Listener {
  socket: WebSocket;
  facts: ListenerAttachment;
}

const grantTag = (grant: string): string => `listener-grant:${grant}`.slice(0, 256);
const sessionTag = (session: string): string => `listener-session:${session}`.slice(0, 256);

/** Accepts a listener's socket for hibernation. */
export function acceptListener(ctx: DurableObjectState, socket: WebSocket, facts: ListenerAttachment): void {
  const tags = [TAG, grantTag(facts.grant), ...(facts.session === undefined ? [] : [sessionTag(facts.session)])];
  ctx.acceptWebSocket(socket, tags);
  socket.serializeAttachment(facts);
}

/** Whether a socket is a listener's, whatever state it is in. */
export function isListener(ctx: DurableObjectState, socket: WebSocket): boolean {
  return ctx.getTags(socket).includes(TAG);
}

/** A listener's facts, or null when they cannot be read. */
export function readListener(socket: WebSocket): ListenerAttachment | null {
  const parsed = ListenerAttachment.safeParse(socket.deserializeAttachment());
  return parsed.success ? parsed.data : null;
}

/** The listeners with open sockets: all, of one grant, or of one session. The platform also lists closing ones; they are left out. */
export function listeners(ctx: DurableObjectState, of: { grant?: string; session?: string } = {}): Listener[] {
  const tag = of.session !== undefined ? sessionTag(of.session) : of.grant !== undefined ? grantTag(of.grant) : TAG;
  return ctx.getWebSockets(tag).flatMap((socket) => {
    if (socket.readyState !== WebSocket.OPEN) return [];
    const facts = readListener(socket);
    return facts === null ? [] : [{ socket, facts }];
  });
}

/** Tells a listener something. A socket that broke is found by its own close. */
export function tellListener({ socket }: Listener, message: ListenMessage): void {
  try {
    socket.send(JSON.stringify(message));
  } catch {
    // Its close was not told yet; there is nobody to hear this.
  }
}

/** Ends listeners; the code says why. */
export function closeListeners(ending: readonly Listener[], code: number, reason: string): void {
  for (const { socket } of ending) closeQuietly(socket, code, reason);
}
