/** One live WebSocket to the relay after its welcome: sends frames within the negotiated size, never an endless queue. */
import type { WebSocket } from "ws";
import { AGENT, TUNNEL } from "../limits.ts";
import { encode, type Payload } from "../tunnel/codec.ts";
import type { AgentFrame } from "../tunnel/frames.ts";
import type { FramePort } from "./port.ts";

export interface LinkLimits {
  maxFrameBytes: number;
  maxResultBytes: number;
}

export class Link implements FramePort {
  readonly maxFrameBytes: number;
  readonly maxResultBytes: number;
  readonly #socket: WebSocket;
  readonly #onDrain: () => void;
  #isFull = false;

  constructor(socket: WebSocket, limits: LinkLimits, onDrain: () => void) {
    this.#socket = socket;
    this.maxFrameBytes = limits.maxFrameBytes;
    this.maxResultBytes = limits.maxResultBytes;
    this.#onDrain = onDrain;
  }

  get isWritable(): boolean {
    if (this.#socket.bufferedAmount <= AGENT.sendQueueBytes) return true;
    this.#isFull = true;
    return false;
  }

  send(frame: AgentFrame, payload?: Payload): boolean {
    const message = encode(frame, payload);
    if (this.#socket.readyState !== this.#socket.OPEN || !this.#fits(message)) return false;
    this.#socket.send(message, { binary: typeof message !== "string" }, () => {
      // Also after an error: the close that follows ends the link.
      if (!this.#isFull || this.#socket.bufferedAmount > AGENT.sendQueueBytes / 2) return;
      this.#isFull = false;
      this.#onDrain();
    });
    return true;
  }

  #fits(message: string | Uint8Array): boolean {
    if (message.length > this.maxFrameBytes) return false;
    const bytes = typeof message === "string" ? Buffer.byteLength(message) : message.length;
    const newline = typeof message === "string" ? message.indexOf("\n") : message.indexOf(0x0a);
    return bytes <= this.maxFrameBytes && (newline < 0 ? message.length : newline) <= TUNNEL.maxHeaderBytes;
  }
}
