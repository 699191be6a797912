/** Reads server-sent events from bytes (WHATWG HTML, 9.2.6), with a cap on one event. Pure. */

export interface SseEvent {
  id: string | undefined;
  data: Buffer;
}

export class SseParser {
  readonly #maxBytes: number;
  readonly #onEvent: (event: SseEvent) => void;
  #parts: Buffer[] = [];
  #lineBytes = 0;
  #data: Buffer[] = [];
  #dataBytes = 0;
  #id: string | undefined;
  /** A CR ended the last line: a LF right after it belongs to it. */
  #afterReturn = false;
  /** ms the server asks to wait before a stream is resumed. */
  retryMs: number | undefined;

  constructor(maxBytes: number, onEvent: (event: SseEvent) => void) {
    this.#maxBytes = maxBytes;
    this.#onEvent = onEvent;
  }

  /** Throws RangeError when one event is over the cap; the stream cannot be used then. */
  push(chunk: Buffer): void {
    let start = 0;
    if (this.#afterReturn && chunk[0] === 0x0a) start = 1;
    if (chunk.length > 0) this.#afterReturn = false;
    for (let end = lineEnd(chunk, start); end >= 0; end = lineEnd(chunk, start)) {
      this.#take(chunk.subarray(start, end));
      this.#line();
      start = end + 1;
      if (chunk[end] !== 0x0d) continue;
      if (chunk[start] === 0x0a) start += 1;
      else if (start === chunk.length) this.#afterReturn = true;
    }
    this.#take(chunk.subarray(start));
  }

  #take(part: Buffer): void {
    if (part.length === 0) return;
    this.#parts.push(part);
    this.#lineBytes += part.length;
    if (this.#lineBytes + this.#dataBytes > this.#maxBytes) throw new RangeError("event over the cap");
  }

  #line(): void {
    const line = this.#parts.length === 1 ? (this.#parts[0] ?? Buffer.alloc(0)) : Buffer.concat(this.#parts);
    this.#parts = [];
    this.#lineBytes = 0;
    if (line.length === 0) {
      this.#dispatch();
      return;
    }
    const colon = line.indexOf(0x3a);
    if (colon === 0) return; // a comment
    const field = (colon < 0 ? line : line.subarray(0, colon)).toString("utf8");
    const rest = colon < 0 ? Buffer.alloc(0) : line.subarray(line[colon + 1] === 0x20 ? colon + 2 : colon + 1);
    this.#field(field, rest);
  }

  #field(field: string, value: Buffer): void {
    if (field === "data") {
      if (this.#data.length > 0) this.#data.push(Buffer.from("\n"));
      this.#data.push(value);
      this.#dataBytes += value.length + 1;
      return;
    }
    const text = value.toString("utf8");
    if (field === "id" && !text.includes("\0")) this.#id = text;
    if (field === "retry" && /^\d{1,9}$/.test(text)) this.retryMs = Number(text);
  }

  #dispatch(): void {
    const data = this.#data;
    const id = this.#id;
    this.#data = [];
    this.#dataBytes = 0;
    if (data.length > 0 || id !== undefined) this.#onEvent({ id, data: Buffer.concat(data) });
  }
}

function lineEnd(chunk: Buffer, start: number): number {
  const feed = chunk.indexOf(0x0a, start);
  // Looked for only up to the line feed, so that many short lines do not each search the whole chunk.
  const carriage = chunk.subarray(start, feed < 0 ? chunk.length : feed).indexOf(0x0d);
  return carriage < 0 ? feed : start + carriage;
}
