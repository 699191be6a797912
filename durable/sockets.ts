/**
 * Hibernating sockets of the object: how they are accepted, what they remember across hibernation, how they close.
 * An attachment is all that a socket keeps of itself; it stays below 2 KB, the smaller of the documented limits.
 */
import { z } from "zod";
import { TEXT, TUNNEL } from "../src/limits.ts";
import { CLOSE, isReservedCloseCode } from "../src/tunnel/close-codes.ts";
import { describeError, log } from "../src/log.ts";

const AGENT_TAG = "agent";
const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** What an agent's socket remembers. `generation` is 0 until its hello was accepted. */
export const AgentAttachment = z.strictObject({
  v: z.literal(1),
  role: z.literal("agent"),
  connectedAt: z.number(),
  generation: z.int().nonnegative(),
  installation: z.string().max(256),
  instance: z.string().max(256),
  maxFrameBytes: z.int().positive(),
  maxConcurrentCalls: z.int().positive(),
});
export type AgentAttachment = z.infer<typeof AgentAttachment>;

/** Accepts an agent's socket for hibernation; it counts for nothing before its hello. */
export function acceptAgent(ctx: DurableObjectState, socket: WebSocket, now: number): void {
  ctx.acceptWebSocket(socket, [AGENT_TAG]);
  socket.serializeAttachment({
    v: 1,
    role: "agent",
    connectedAt: now,
    generation: 0,
    installation: "",
    instance: "",
    maxFrameBytes: TUNNEL.maxFrameBytes,
    maxConcurrentCalls: 1,
  } satisfies AgentAttachment);
}

/** The agent sockets that are open. The platform also lists closing ones; they are left out. */
export function openAgentSockets(ctx: DurableObjectState): WebSocket[] {
  return ctx.getWebSockets(AGENT_TAG).filter((socket) => socket.readyState === WebSocket.OPEN);
}

/** A socket's attachment, or null when it cannot be read: the caller closes the socket and does not guess. */
export function readAgentAttachment(socket: WebSocket): AgentAttachment | null {
  const parsed = AgentAttachment.safeParse(socket.deserializeAttachment());
  return parsed.success ? parsed.data : null;
}

/** Closes a socket whatever state it is in. Reserved codes become a normal close; the reason is cut to 123 bytes (RFC 6455 §5.5). */
export function closeQuietly(socket: WebSocket, code: number, reason: string): void {
  try {
    socket.close(isReservedCloseCode(code) ? CLOSE.normal : code, cutUtf8(reason, TEXT.closeReasonBytes));
  } catch (error) {
    // A socket that is closed already cannot be closed again, which is what was wanted.
    log("info", "tunnel.close-twice", { code, error: describeError(error) });
  }
}

function cutUtf8(text: string, max: number): string {
  const bytes = encoder.encode(text);
  if (bytes.length <= max) return text;
  return decoder.decode(bytes.subarray(0, max)).replace(/\uFFFD+$/, "");
}

/** Closes newcomers beyond the bound, the oldest first, so that sockets without a hello cannot pile up. */
export function limitWaiting(ctx: DurableObjectState): void {
  const waiting = waitingSockets(ctx).sort((a, b) => a.attachment.connectedAt - b.attachment.connectedAt);
  for (const { socket } of waiting.slice(0, Math.max(0, waiting.length - TUNNEL.waitingSockets))) {
    closeQuietly(socket, CLOSE.badHello, "too many sockets without a hello");
  }
}

/** Open sockets whose hello was not accepted yet. */
export function waitingSockets(ctx: DurableObjectState): { socket: WebSocket; attachment: AgentAttachment }[] {
  return openAgentSockets(ctx).flatMap((socket) => {
    const attachment = readAgentAttachment(socket);
    return attachment !== null && attachment.generation === 0 ? [{ socket, attachment }] : [];
  });
}
