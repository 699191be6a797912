/**
 * Cuts a byte stream into lines. Chunks are kept in a list and joined once per line, so the cost is linear. A line
 * over the cap is thrown away while it arrives; its first and last bytes are kept to find out whose it was.
 */
const NEWLINE = 0x0a;
/** Bytes of an oversize line kept from its beginning and its end: an id is in one of them, whatever the member order. */
const EDGE_BYTES = 512;

export interface Oversize {
  size: number;
  head: Buffer;
  tail: Buffer;
}

export class LineFramer {
  readonly #maxBytes: number;
  readonly #onLine: (line: Buffer) => void;
  readonly #onOversize: (line: Oversize) => void;
  #parts: Buffer[] = [];
  #size = 0;
  /** Set while an oversize line is thrown away. */
  #lost: { head: Buffer; tail: Buffer } | null = null;

  constructor(maxBytes: number, onLine: (line: Buffer) => void, onOversize: (line: Oversize) => void) {
    this.#maxBytes = maxBytes;
    this.#onLine = onLine;
    this.#onOversize = onOversize;
  }

  push(chunk: Buffer): void {
    let rest = chunk;
    for (;;) {
      const end = rest.indexOf(NEWLINE);
      if (end < 0) {
        if (rest.length > 0) this.#take(rest);
        return;
      }
      if (end > 0) this.#take(rest.subarray(0, end));
      this.#flush();
      rest = rest.subarray(end + 1);
    }
  }

  /** The stream ended: a last line without a newline counts. */
  end(): void {
    this.#flush();
  }

  #take(part: Buffer): void {
    this.#size += part.length;
    if (this.#lost) {
      this.#lost.tail = lastBytes([this.#lost.tail, part]);
      return;
    }
    this.#parts.push(part);
    if (this.#size <= this.#maxBytes) return;
    this.#lost = { head: firstBytes(this.#parts), tail: lastBytes(this.#parts) };
    this.#parts = [];
  }

  #flush(): void {
    const parts = this.#parts;
    const lost = this.#lost;
    const size = this.#size;
    this.#parts = [];
    this.#lost = null;
    this.#size = 0;
    if (lost) {
      this.#onOversize({ size, ...lost });
      return;
    }
    const line = parts.length === 1 ? parts[0] : Buffer.concat(parts);
    if (line !== undefined && line.length > 0) this.#onLine(line);
  }
}

function firstBytes(parts: readonly Buffer[]): Buffer {
  let size = 0;
  const count = parts.findIndex((part) => (size += part.length) >= EDGE_BYTES) + 1;
  return Buffer.concat(count > 0 ? parts.slice(0, count) : [...parts]).subarray(0, EDGE_BYTES);
}

function lastBytes(parts: readonly Buffer[]): Buffer {
  const kept: Buffer[] = [];
  let size = 0;
  for (let i = parts.length - 1; i >= 0 && size < EDGE_BYTES; i -= 1) {
    const part = parts[i];
    if (part === undefined) continue;
    const piece = part.subarray(Math.max(0, part.length - EDGE_BYTES));
    kept.unshift(piece);
    size += piece.length;
  }
  // A copy, so that a small tail does not keep a big chunk alive.
  return Buffer.from(Buffer.concat(kept).subarray(-EDGE_BYTES));
}
