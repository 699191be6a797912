/**
 * Finds the source text of a few members in JSON that JSON.parse has already accepted, and its nesting depth. Needed
 * because an id or a progress token goes back exactly as it came (`1.0`, an escape), which a parsed value has lost.
 * Like JSON.parse, the last of several equal keys wins. Pure; never recurses, so depth cannot overflow the stack.
 */

/** Source text of one message's id and progress token. */
export interface SourceTexts {
  id: string | undefined;
  progressToken: string | undefined;
}
export interface Scanned {
  /** Deepest nesting of arrays and objects. */
  depth: number;
  /** One entry for a single message, one per element for an array. */
  messages: SourceTexts[];
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_ARRAY = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** Position after the string that opens at `at`. */
function afterString(text: string, at: number): number {
  let end = at;
  for (;;) {
    end = text.indexOf('"', end + 1);
    if (end < 0) return text.length;
    let slashes = 0;
    while (text.charCodeAt(end - 1 - slashes) === BACKSLASH) slashes += 1;
    if (slashes % 2 === 0) return end + 1;
  }
}

/** Walks the text once; `path` holds the keys of the open objects, as far down as they matter. */
export function scanJson(text: string): Scanned {
  const scan = new Scan(text);
  scan.run();
  return { depth: scan.depth, messages: scan.messages };
}

class Scan {
  depth = 0;
  messages: SourceTexts[] = [];
  readonly #text: string;
  /** Keys of the enclosing members by level; level 1 is the message itself. Undefined in an array. */
  #keys: (string | undefined)[] = [];
  #level = 0;
  /** Level of the message objects: 1, or 2 in a batch. */
  #base = 1;
  #current: SourceTexts | null = null;

  constructor(text: string) {
    this.#text = text;
  }

  run(): void {
    const text = this.#text;
    let expectsKey = false;
    // The kinds of the open containers, one character each, so that a comma knows whether a key follows.
    const kinds: boolean[] = [];
    for (let at = 0; at < text.length; at += 1) {
      const code = text.charCodeAt(at);
      if (code === QUOTE) {
        const end = afterString(text, at);
        if (expectsKey && this.#watches()) this.#keys[this.#level] = JSON.parse(text.slice(at, end)) as string;
        else if (!expectsKey) this.#value(at, end);
        at = end - 1;
      } else if (code === OPEN_OBJECT || code === OPEN_ARRAY) {
        this.#open(code === OPEN_OBJECT);
        kinds.push(code === OPEN_OBJECT);
        expectsKey = code === OPEN_OBJECT;
      } else if (code === CLOSE_OBJECT || code === CLOSE_ARRAY) {
        kinds.pop();
        this.#level -= 1;
        expectsKey = false;
      } else if (code === COMMA) {
        expectsKey = kinds[kinds.length - 1] === true;
      } else if (code === COLON) {
        expectsKey = false;
      } else if (code > 0x20) {
        const end = this.#afterScalar(at);
        this.#value(at, end);
        at = end - 1;
      }
    }
  }

  #watches(): boolean {
    return this.#level >= this.#base && this.#level <= this.#base + 2;
  }

  #open(isObject: boolean): void {
    this.#value(0, 0);
    this.#level += 1;
    this.depth = Math.max(this.depth, this.#level);
    if (this.#level === 1 && !isObject) this.#base = 2;
    if (this.#level <= this.#base + 2) this.#keys[this.#level] = undefined;
    if (this.#level === this.#base) this.#begin();
  }

  #begin(): void {
    this.#current = { id: undefined, progressToken: undefined };
    this.messages.push(this.#current);
  }

  /** A value begins: remembers it when it is one of the wanted. An empty span stands for an array or object. */
  #value(start: number, end: number): void {
    if (this.#level === this.#base - 1 && this.#base === 2 && end > 0) this.messages.push({ id: undefined, progressToken: undefined });
    const current = this.#current;
    if (current === null || this.#level < this.#base || this.#level > this.#base + 2) return;
    const base = this.#base;
    const key = this.#keys[this.#level];
    const source = end === 0 ? undefined : this.#text.slice(start, end);
    if (this.#level === base) {
      if (key === "id") current.id = source;
      if (key === "params") current.progressToken = undefined;
      return;
    }
    if (this.#keys[base] !== "params") return;
    if (this.#level === base + 1 && key === "_meta") current.progressToken = undefined;
    if (this.#level === base + 2 && this.#keys[base + 1] === "_meta" && key === "progressToken") current.progressToken = source;
  }

  #afterScalar(at: number): number {
    let end = at + 1;
    for (; end < this.#text.length; end += 1) {
      const code = this.#text.charCodeAt(end);
      if (code === COMMA || code === CLOSE_ARRAY || code === CLOSE_OBJECT || code <= 0x20) break;
    }
    return end;
  }
}
