/** A session's own stream (GET): notices and requests that belong to no call. It is opened again whenever it ends. */
import type { IncomingMessage } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { CONNECT } from "../../limits.ts";
import { isEventStream, readStream } from "./answers.ts";

export interface SessionStreamOptions {
  open: (signal: AbortSignal) => Promise<IncomingMessage>;
  write: (line: string) => Promise<void>;
  /** The session is gone; true when there is another. */
  lost: () => Promise<boolean>;
  /** The end of everything. */
  signal: AbortSignal;
}

export class SessionStream {
  readonly #options: SessionStreamOptions;
  #isRunning = false;

  constructor(options: SessionStreamOptions) {
    this.#options = options;
  }

  /** Opens the stream and keeps it; once. */
  start(): void {
    if (this.#isRunning) return;
    this.#isRunning = true;
    void this.#run().finally(() => (this.#isRunning = false));
  }

  async #run(): Promise<void> {
    const { signal } = this.#options;
    let pauseMs: number = CONNECT.streamPauseMs;
    while (!signal.aborted) {
      const startedAt = Date.now();
      if (!(await this.#once().catch(() => true))) return;
      pauseMs = Date.now() - startedAt > CONNECT.streamPauseMaxMs ? CONNECT.streamPauseMs : Math.min(2 * pauseMs, CONNECT.streamPauseMaxMs);
      await sleep(pauseMs, undefined, { signal }).catch(() => undefined);
    }
  }

  /** False when there is no use in another try. */
  async #once(): Promise<boolean> {
    const { open, write, lost, signal } = this.#options;
    const response = await open(signal);
    const status = response.statusCode ?? 0;
    if (status === 200 && isEventStream(response)) {
      await readStream(response, async (line) => await write(line.toString("utf8")));
      return true;
    }
    response.resume();
    if (status === 404) return await lost();
    // 405: the server has no such stream (MCP 2025-11-25, "Listening for messages").
    return status !== 405 && status !== 406;
  }
}
