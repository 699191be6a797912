/**
 * The live tunnel: the open agent socket with the highest generation. `Link` is one socket with what is known of it;
 * `Links` finds it again after the object slept. Nothing here decides about calls.
 */
import { TUNNEL } from "../src/limits.ts";
import { CLOSE } from "../src/tunnel/close-codes.ts";
import { encode, type Payload } from "../src/tunnel/codec.ts";
import type { RelayFrame } from "../src/tunnel/frames.ts";
import { type AgentAttachment, closeQuietly, openAgentSockets, readAgentAttachment } from "./sockets.ts";

/** One accepted tunnel. Fields beyond the attachment are memory only and start anew after sleep. */
export class Link {
  readonly socket: WebSocket;
  readonly attachment: AgentAttachment;
  /** Epoch ms of the last message; the platform's answers to `ping` count apart. */
  heardAt: number;
  /** Ids the agent said it holds; undefined when its hello was heard before the object slept. */
  held: ReadonlySet<string> | undefined;
  /** Input requests the agent said are open, as `callId askId`. */
  openAsks: ReadonlySet<string> = new Set();
  /** Bytes written, about, and those known to have arrived because something after them was acknowledged. */
  writtenBytes = 0;
  arrivedBytes = 0;
  #probe: { id: string; answered: () => void; result: Promise<boolean> } | undefined;

  constructor(socket: WebSocket, attachment: AgentAttachment) {
    this.socket = socket;
    this.attachment = attachment;
    this.heardAt = attachment.connectedAt;
  }

  get generation(): number {
    return this.attachment.generation;
  }

  get isOpen(): boolean {
    return this.socket.readyState === WebSocket.OPEN;
  }

  /** Sends a frame that is known to fit. False when the socket is closed: the frame was never written. */
  send(frame: RelayFrame, payload?: Payload): boolean {
    return this.sendMessage(encode(frame, payload));
  }

  /** As `send`, for a message that was encoded already. */
  sendMessage(message: string | Uint8Array): boolean {
    if (!this.isOpen) return false;
    try {
      this.socket.send(message);
    } catch {
      return false; // The socket broke without its close having been told yet.
    }
    // Text counts by its length: what this is for is an estimate of time.
    this.writtenBytes += message.length;
    return true;
  }

  /** The agent has taken everything up to `writtenBytes`. */
  arrived(writtenBytes: number): void {
    if (writtenBytes > this.arrivedBytes) this.arrivedBytes = writtenBytes;
  }

  /** ms that an answer to what is written now may take beyond its own limit, because so much is on the way. */
  get transitMs(): number {
    return Math.ceil(((this.writtenBytes - this.arrivedBytes) / TUNNEL.slowBytesPerSecond) * 1000);
  }

  /** Epoch ms of the last sign of life: a message, or a `ping` that the platform answered. */
  lastSeenAt(ctx: DurableObjectState): number {
    const pingedAt = ctx.getWebSocketAutoResponseTimestamp(this.socket)?.getTime() ?? 0;
    return Math.max(this.heardAt, pingedAt);
  }

  /** Asks the agent for a sign of life. True when it answers within TUNNEL.probeMs; probes at the same time are one. */
  probe(): Promise<boolean> {
    this.#probe ??= this.#startProbe();
    return this.#probe.result;
  }

  /** Any answer to a probe proves life, also a late one. */
  answered(probeId: string): void {
    if (this.#probe?.id === probeId) this.#probe.answered();
  }

  #startProbe(): { id: string; answered: () => void; result: Promise<boolean> } {
    const id = crypto.randomUUID();
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const timer = setTimeout(() => resolve(false), TUNNEL.probeMs + this.transitMs);
    const result = promise.finally(() => {
      clearTimeout(timer);
      this.#probe = undefined;
    });
    if (!this.send({ type: "probe", probeId: id })) resolve(false);
    return { id, answered: () => resolve(true), result };
  }
}

export class Links {
  readonly #ctx: DurableObjectState;
  #live: Link | null | undefined;

  constructor(ctx: DurableObjectState) {
    this.#ctx = ctx;
  }

  /** The live tunnel, or null. */
  current(): Link | null {
    if (this.#live === undefined) this.#live = this.#find();
    return this.#live?.isOpen === true ? this.#live : null;
  }

  /** The link of a socket if it is the live one: only that socket speaks for the device. */
  of(socket: WebSocket): Link | null {
    const live = this.#live === undefined ? (this.#live = this.#find()) : this.#live;
    return live !== null && live.socket === socket ? live : null;
  }

  /** Makes a socket the live tunnel. Its attachment is written before anything is sent on it. */
  set(socket: WebSocket, attachment: AgentAttachment): Link {
    socket.serializeAttachment(attachment);
    this.#live = new Link(socket, attachment);
    return this.#live;
  }

  /** Forgets the live tunnel. */
  clear(): void {
    this.#live = null;
  }

  #find(): Link | null {
    let best: Link | null = null;
    for (const socket of openAgentSockets(this.#ctx)) {
      const attachment = readAgentAttachment(socket);
      if (attachment === null) closeQuietly(socket, CLOSE.redial, "unknown state");
      else if (attachment.generation > (best?.generation ?? 0)) best = new Link(socket, attachment);
    }
    return best;
  }
}
