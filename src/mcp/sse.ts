/**
 * Server-sent events: one `data:` line of JSON per event, comments as keep-alive, no ids, no event names, no retry
 * (there is no resume, and older clients break on priming events). Web streams only.
 */
import { oneLine } from "./splice.ts";

/** Headers of every event stream; both keep proxies from holding back or changing it. */
export const SSE_HEADERS: Readonly<Record<string, string>> = {
  "content-type": "text/event-stream",
  "cache-control": "no-cache, no-transform",
  "x-accel-buffering": "no",
};

const encoder = new TextEncoder();
const COMMENT = encoder.encode(":\n\n");
const DATA = encoder.encode("data: ");
const END = encoder.encode("\n\n");

/** One event. Line ends inside the JSON, which can only be white space between tokens, become blanks. */
export function encodeEvent(json: string): Uint8Array {
  return encoder.encode(`data: ${oneLine(json)}\n\n`);
}

// workerd's own pipe is several times cheaper than a TransformStream; elsewhere the standard one does.
const Pipe: new () => { readable: ReadableStream<Uint8Array>; writable: WritableStream<Uint8Array> } =
  (globalThis as { IdentityTransformStream?: new () => TransformStream<Uint8Array, Uint8Array> }).IdentityTransformStream ??
  TransformStream;

/**
 * The writing end of one response body. A write that fails means that the client left, and is told once. Writes wait
 * for the client, so a slow one holds back its own call only.
 */
export class BodyWriter {
  readonly readable: ReadableStream<Uint8Array>;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  readonly #onGone: () => void;
  #isOpen = true;

  constructor(onGone: () => void) {
    const pipe = new Pipe();
    this.readable = pipe.readable;
    this.#writer = pipe.writable.getWriter();
    this.#onGone = onGone;
    // The same failure reaches the pending write; without a handler here it would also be an unhandled rejection.
    this.#writer.closed.catch(() => this.#left());
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Writes bytes; false when the client has left. */
  async write(bytes: Uint8Array): Promise<boolean> {
    if (!this.#isOpen) return false;
    try {
      await this.#writer.write(bytes);
      return true;
    } catch {
      this.#left();
      return false;
    }
  }

  async close(): Promise<void> {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    try {
      await this.#writer.close();
    } catch {
      // The client left with everything written; there is nobody to tell.
    }
  }

  /** Breaks the body off, so that the client does not take a part for the whole. */
  async abort(): Promise<void> {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    try {
      await this.#writer.abort("broken off");
    } catch {
      // Already broken.
    }
  }

  #left(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#onGone();
  }
}

/** An event stream: whole events, events in pieces, and comments on a timer whenever nothing is being written. */
export class EventStream {
  readonly #body: BodyWriter;
  readonly #timer: ReturnType<typeof setInterval>;
  #busy = 0;
  #tail: Promise<unknown> = Promise.resolve();

  constructor(keepAliveMs: number, onGone: () => void) {
    this.#body = new BodyWriter(() => {
      clearInterval(this.#timer);
      onGone();
    });
    this.#timer = setInterval(() => this.comment(), keepAliveMs);
  }

  get readable(): ReadableStream<Uint8Array> {
    return this.#body.readable;
  }

  /** Writes a comment unless something is on its way; also how a client that closed quietly is found. */
  comment(): void {
    if (this.#busy > 0) return;
    // Deliberately not awaited: a failure is told through `onGone`.
    void this.#exclusive(() => this.#body.write(COMMENT));
  }

  /** Writes one event; false when the client has left. */
  event(json: string): Promise<boolean> {
    return this.#exclusive(() => this.#body.write(encodeEvent(json)));
  }

  /** Writes one event whose JSON comes in pieces. When they break off, `onBreak` gives the event that says so. */
  eventInPieces(pieces: AsyncIterable<Uint8Array>, onBreak: (error: unknown) => string): Promise<boolean> {
    return this.#exclusive(async () => {
      let isOpen = await this.#body.write(DATA);
      try {
        for await (const piece of pieces) {
          isOpen = await this.#body.write(piece);
          if (!isOpen) return false;
        }
        return await this.#body.write(END);
      } catch (error) {
        // The broken line is ended, readers drop it as bad JSON, and the error follows as an event of its own.
        await this.#body.write(END);
        return await this.#body.write(encodeEvent(onBreak(error)));
      }
    });
  }

  /** Breaks the stream off; what waits to be written is dropped. */
  async abort(): Promise<void> {
    clearInterval(this.#timer);
    await this.#body.abort();
  }

  /** Ends the stream. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#exclusive(async () => {
      await this.#body.close();
      return true;
    });
  }

  /** One writer at a time, in order: no comment can fall into the middle of an event. */
  #exclusive(work: () => Promise<boolean>): Promise<boolean> {
    this.#busy += 1;
    const run = this.#tail.then(work).finally(() => {
      this.#busy -= 1;
    });
    this.#tail = run.catch(() => undefined);
    return run;
  }
}
