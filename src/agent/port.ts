/** A live link as the calls see it. */
import type { Payload } from "../tunnel/codec.ts";
import type { AgentFrame } from "../tunnel/frames.ts";

export interface FramePort {
  /** Negotiated bytes of one message. */
  readonly maxFrameBytes: number;
  /** Bytes of one call's answer that the relay takes. */
  readonly maxResultBytes: number;
  /** False while too much waits in the socket. */
  readonly isWritable: boolean;
  /** Sends one frame. False when the link is over or the message is larger than negotiated; nothing is sent then. */
  send(frame: AgentFrame, payload?: Payload): boolean;
}
