/**
 * A listener's socket at the object, as the edge sees it: opened with one try more on a fresh stub, as any short
 * question to the object, and good for use once the object has said what the listener gets.
 */
import type { Refusal } from "../../durable/rpc.ts";
import { LISTEN } from "../limits.ts";
import { type ListenFacts, type ListenMessage, type Opened, readListenMessage } from "../tunnel/notices.ts";
import { isOverloaded, isRemote, OVERLOADED, type TunnelAccess, UNREACHABLE } from "./tunnel-access.ts";

/** One end of the socket, whatever the platform calls it. */
export interface ListenSocket {
  /** Takes what comes, from the first message on, and the end with its code. Called once. */
  take(onMessage: (data: unknown) => void, onClose: (code: number) => void): void;
  close(): void;
}

/** The object's answer to an upgrade. */
export type ListenReply = { ok: true; socket: ListenSocket } | { ok: false; refusal: Refusal };

/** What a connected listener hears. */
export interface ListenEvents {
  message(message: Exclude<ListenMessage, Opened>): void;
  closed(code: number): void;
}

export type Connected = { ok: true; opened: Opened; socket: ListenSocket } | { ok: false; refusal: Refusal };

/** Connects a listener. Never rejects but for a bug of the object's. */
export async function connectListener(access: TunnelAccess, facts: ListenFacts, events: ListenEvents): Promise<Connected> {
  for (let tries = 1; ; tries += 1) {
    try {
      const reply = await access.listen(facts);
      if (!reply.ok) return reply;
      const opened = await whenOpen(reply.socket, events);
      if (opened !== null) return { ok: true, opened, socket: reply.socket };
    } catch (error) {
      if (isOverloaded(error)) return { ok: false, refusal: OVERLOADED };
      if (isRemote(error)) throw error;
      if (tries >= 2) access.report(error);
    }
    if (tries >= 2) return { ok: false, refusal: UNREACHABLE };
  }
}

/** The first message, or null when the socket ended or stayed silent instead. What comes after it goes to `events`. */
async function whenOpen(socket: ListenSocket, events: ListenEvents): Promise<Opened | null> {
  const { promise, resolve } = Promise.withResolvers<Opened | null>();
  let isOpen = false;
  const timer = setTimeout(() => {
    if (!isOpen) socket.close();
    resolve(null);
  }, LISTEN.openMs);
  socket.take(
    (data) => {
      const message = readListenMessage(data);
      if (message?.type === "open") {
        isOpen = true;
        resolve(message);
      } else if (message !== null && isOpen) {
        // After whoever waits for the first message has taken it.
        void promise.then(() => events.message(message));
      }
    },
    (code) => {
      resolve(null);
      // An end is one end, also when the platform tells of an error and of a close.
      if (isOpen) void promise.then(() => events.closed(code));
      isOpen = false;
    },
  );
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
  }
}
