/**
 * Records: how tunnel messages travel inside a byte stream between object and Worker. A record is the message's
 * length as 4 bytes, big-endian, then the message as UTF-8 bytes. Pure; knows nothing of frames.
 */
import { TUNNEL } from "../limits.ts";

const LENGTH_BYTES = 4;
/** Bytes asked for when nothing is known of what comes: events are small. */
const SMALL_READ_BYTES = 4096;
const encoder = new TextEncoder();

/** The stream ended inside a record, or announced one over the bound: what follows cannot be trusted. */
export class RecordError extends Error {
  override readonly name = "RecordError";
}

/** One message as a record. */
export function writeRecord(message: string | Uint8Array): Uint8Array {
  const bytes = typeof message === "string" ? encoder.encode(message) : message;
  const record = new Uint8Array(LENGTH_BYTES + bytes.length);
  new DataView(record.buffer).setUint32(0, bytes.length);
  record.set(bytes, LENGTH_BYTES);
  return record;
}

interface Reader {
  /** The next bytes; `wanted` more complete what is being read. */
  read(wanted: number): Promise<{ done: boolean; value?: Uint8Array | undefined }>;
  cancel(reason?: unknown): Promise<void>;
}

/**
 * A byte stream hands out 4 KiB at a time unless the reader brings a larger buffer, and each piece costs a turn: a
 * chunk is then sixty of them. Streams of other kinds hand out what they were given.
 */
function openReader(stream: ReadableStream<Uint8Array>): Reader {
  try {
    const reader = stream.getReader({ mode: "byob" });
    return {
      read: async (wanted) => await reader.read(new Uint8Array(Math.max(SMALL_READ_BYTES, wanted))),
      cancel: async (reason) => await reader.cancel(reason),
    };
  } catch {
    const reader = stream.getReader();
    return { read: async () => await reader.read(), cancel: async (reason) => await reader.cancel(reason) };
  }
}

/** Reads records one at a time; nothing is read ahead, so that a slow consumer holds back the producer. */
export class RecordReader {
  readonly #reader: Reader;
  readonly #maxBytes: number;
  #parts: Uint8Array[] = [];
  #held = 0;

  constructor(stream: ReadableStream<Uint8Array>, maxBytes: number) {
    this.#reader = openReader(stream);
    this.#maxBytes = maxBytes;
  }

  /** The next message, or null at the orderly end. Rejects with RecordError, or with the stream's own error. */
  async next(): Promise<Uint8Array | null> {
    const head = await this.#take(LENGTH_BYTES, true);
    if (head === null) return null;
    const length = new DataView(head.buffer, head.byteOffset, LENGTH_BYTES).getUint32(0);
    if (length > this.#maxBytes) throw new RecordError(`record of ${length} bytes, at most ${this.#maxBytes}`);
    const body = await this.#take(length, false);
    if (body === null) throw new RecordError("stream ended inside a record");
    return body;
  }

  /** Gives the stream up; the producer's `cancel` runs. Never rejects. */
  async cancel(reason?: unknown): Promise<void> {
    try {
      await this.#reader.cancel(reason);
    } catch {
      // The stream had failed already, so there is nothing left to give up.
    }
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, void> {
    try {
      for (let message = await this.next(); message !== null; message = await this.next()) yield message;
    } finally {
      await this.cancel();
    }
  }

  async #take(size: number, mayEnd: boolean): Promise<Uint8Array | null> {
    while (this.#held < size) {
      const { done, value } = await this.#reader.read(size - this.#held);
      if (value !== undefined && value.length > 0) {
        this.#parts.push(value);
        this.#held += value.length;
        continue;
      }
      if (!done) continue;
      if (mayEnd && this.#held === 0) return null;
      throw new RecordError("stream ended inside a record");
    }
    return this.#cut(size);
  }

  #cut(size: number): Uint8Array {
    const first = this.#parts[0];
    this.#held -= size;
    if (first !== undefined && first.length >= size) {
      if (first.length === size) this.#parts.shift();
      else this.#parts[0] = first.subarray(size);
      return first.subarray(0, size);
    }
    const whole = new Uint8Array(size);
    let filled = 0;
    let index = 0;
    while (filled < size) {
      const part = this.#parts[index] ?? new Uint8Array();
      const wanted = Math.min(part.length, size - filled);
      whole.set(part.subarray(0, wanted), filled);
      filled += wanted;
      if (wanted === part.length) index += 1;
      else this.#parts[index] = part.subarray(wanted);
    }
    this.#parts.splice(0, index);
    return whole;
  }
}

/** Reads the messages of a record stream. `maxBytes` bounds one message; a tunnel message is never larger. */
export function readRecords(stream: ReadableStream<Uint8Array>, maxBytes: number = TUNNEL.maxFrameBytes): RecordReader {
  return new RecordReader(stream, maxBytes);
}
