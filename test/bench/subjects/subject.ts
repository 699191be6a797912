/** What the workloads need of a subject: where each kind of request goes. */
import type { Target } from "../http-connection.ts";

/** One way to reach an echo, with what runs for it. */
export interface Subject {
  name: string;
  /** A call that echoes `PAYLOAD`; by device. */
  call(device?: number): Target;
  /** As `call` in the handshake era. */
  legacyCall?: Target;
  /** A call that reports progress so many times. */
  events?: (count: number) => Target;
  /** A call whose result is an image of so many base64 characters. */
  image?: (size: number) => Target;
  pids: Readonly<Record<string, number>>;
  /** CPU time that each of its processes has used, ms. */
  cpu(): Promise<Record<string, number>>;
  stop(): Promise<void>;
}

/** The text that is echoed: 1 KB. */
export const PAYLOAD = "The quick brown fox jumps over the lazy dog. ".repeat(23).slice(0, 1024);
