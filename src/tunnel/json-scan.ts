/**
 * Finds where JSON values begin and end without building them, so that a result passes through byte for byte and an id
 * goes back as it came. Accepts exactly what JSON.parse accepts, down to a bound of nesting; never recurses. Pure. Works on UTF-8 bytes:
 * every character that matters to the structure is a single byte that occurs in no multi-byte sequence.
 */
import { UPSTREAM } from "../limits.ts";

/** The text is not JSON, or nested too deeply. */
export class ScanError extends Error {
  override readonly name = "ScanError";
}

/** Bytes `start` up to but not including `end`. */
export interface Span {
  start: number;
  end: number;
}

/** A member of an object: its decoded key, and the spans of the key with its quotes and of the value. */
export interface Member extends Span {
  key: string;
  valueStart: number;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const MINUS = 0x2d;
const ZERO = 0x30;
const IN_OBJECT = 1;
const IN_ARRAY = 2;

/** 1 for each byte that a string holds as it is: everything but controls, the quote and the backslash. */
const PLAIN = Uint8Array.from({ length: 256 }, (_, byte) => (byte >= 0x20 && byte !== QUOTE && byte !== BACKSLASH ? 1 : 0));

const decoder = new TextDecoder("utf-8", { fatal: false, ignoreBOM: true });

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x30 && byte <= 0x39;
}

function isHex(byte: number | undefined): boolean {
  return byte !== undefined && (isDigit(byte) || (byte >= 0x41 && byte <= 0x46) || (byte >= 0x61 && byte <= 0x66));
}

function skipSpace(bytes: Uint8Array, at: number): number {
  let i = at;
  for (;;) {
    const byte = bytes[i];
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return i;
    i += 1;
  }
}

function skipString(bytes: Uint8Array, at: number): number {
  if (bytes[at] !== QUOTE) throw new ScanError("string expected");
  const { length } = bytes;
  let i = at + 1;
  for (;;) {
    // The hot loop: nearly all bytes of a large result are plain ones inside a string.
    while (i < length && PLAIN[bytes[i] as number] === 1) i += 1;
    const byte = bytes[i];
    if (byte === QUOTE) return i + 1;
    if (byte !== BACKSLASH) throw new ScanError("unterminated string");
    i += escapeLength(bytes, i);
  }
}

function escapeLength(bytes: Uint8Array, at: number): number {
  const kind = bytes[at + 1];
  if (kind === 0x75) {
    for (let i = at + 2; i < at + 6; i += 1) if (!isHex(bytes[i])) throw new ScanError("bad escape");
    return 6;
  }
  // " \ / b f n r t
  if (kind === QUOTE || kind === BACKSLASH || kind === 0x2f || kind === 0x62 || kind === 0x66) return 2;
  if (kind === 0x6e || kind === 0x72 || kind === 0x74) return 2;
  throw new ScanError("bad escape");
}

function skipDigits(bytes: Uint8Array, at: number): number {
  if (!isDigit(bytes[at])) throw new ScanError("digit expected");
  let i = at + 1;
  while (isDigit(bytes[i])) i += 1;
  return i;
}

function skipNumber(bytes: Uint8Array, at: number): number {
  let i = bytes[at] === MINUS ? at + 1 : at;
  i = bytes[i] === ZERO ? i + 1 : skipDigits(bytes, i);
  if (bytes[i] === 0x2e) i = skipDigits(bytes, i + 1);
  if (bytes[i] === 0x65 || bytes[i] === 0x45) {
    i += 1;
    if (bytes[i] === 0x2b || bytes[i] === MINUS) i += 1;
    i = skipDigits(bytes, i);
  }
  return i;
}

function skipLiteral(bytes: Uint8Array, at: number): number {
  for (const word of ["true", "false", "null"]) {
    let same = true;
    for (let i = 0; i < word.length && same; i += 1) same = bytes[at + i] === word.charCodeAt(i);
    if (same) return at + word.length;
  }
  throw new ScanError("value expected");
}

function skipKey(bytes: Uint8Array, at: number): number {
  const end = skipSpace(bytes, skipString(bytes, at));
  if (bytes[end] !== COLON) throw new ScanError("colon expected");
  return end + 1;
}

function skipScalar(bytes: Uint8Array, at: number): number {
  const byte = bytes[at];
  if (byte === QUOTE) return skipString(bytes, at);
  if (byte === MINUS || isDigit(byte)) return skipNumber(bytes, at);
  return skipLiteral(bytes, at);
}

/** After a value: closes what ends here. Returns where the next value begins, or -1 - end when everything is closed. */
function afterValue(bytes: Uint8Array, at: number, open: number[]): number {
  let i = at;
  for (;;) {
    const inside = open[open.length - 1];
    if (inside === undefined) return -1 - i;
    i = skipSpace(bytes, i);
    if (bytes[i] === COMMA) {
      return inside === IN_OBJECT ? skipKey(bytes, skipSpace(bytes, i + 1)) : i + 1;
    }
    if (bytes[i] !== (inside === IN_OBJECT ? CLOSE_OBJECT : CLOSE_ARRAY)) throw new ScanError("comma or end expected");
    open.pop();
    i += 1;
  }
}

/** Where the value that begins at `at` (after white space) ends; it may be nested `maxDepth` levels deep. Throws ScanError. */
export function skipValue(bytes: Uint8Array, at: number, maxDepth: number = UPSTREAM.maxJsonDepth): number {
  const open: number[] = [];
  let i = at;
  for (;;) {
    i = skipSpace(bytes, i);
    const byte = bytes[i];
    if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) {
      if (open.length >= maxDepth) throw new ScanError("nested too deeply");
      const inside = skipSpace(bytes, i + 1);
      const isEmpty = bytes[inside] === (byte === OPEN_OBJECT ? CLOSE_OBJECT : CLOSE_ARRAY);
      if (!isEmpty) {
        open.push(byte === OPEN_OBJECT ? IN_OBJECT : IN_ARRAY);
        i = byte === OPEN_OBJECT ? skipKey(bytes, inside) : inside;
        continue;
      }
      i = inside + 1;
    } else {
      i = skipScalar(bytes, i);
    }
    i = afterValue(bytes, i, open);
    if (i < 0) return -1 - i;
  }
}

/** Bytes of a key, with its quotes, up to which it is put together here. */
const SHORT_KEY_BYTES = 64;

/** A short key of ASCII without escapes, as nearly all are: a turn to the decoder costs more than the scan. */
function shortKey(bytes: Uint8Array, start: number, end: number): string | null {
  if (end - start > SHORT_KEY_BYTES) return null;
  let key = "";
  for (let i = start + 1; i < end - 1; i += 1) {
    const byte = bytes[i] as number;
    if (byte >= 0x80 || byte === BACKSLASH) return null;
    key += String.fromCharCode(byte);
  }
  return key;
}

function decodeKey(bytes: Uint8Array, start: number, end: number): string {
  const short = shortKey(bytes, start, end);
  if (short !== null) return short;
  const raw = decoder.decode(bytes.subarray(start, end));
  return raw.includes("\\") ? (JSON.parse(raw) as string) : raw.slice(1, -1);
}

/** The members of the object that is the whole text, their values nested `maxDepth` levels at most. Throws ScanError for anything else. */
export function scanMembers(bytes: Uint8Array, maxDepth: number = UPSTREAM.maxJsonDepth): Member[] {
  const members: Member[] = [];
  let i = skipSpace(bytes, 0);
  if (bytes[i] !== OPEN_OBJECT) throw new ScanError("object expected");
  i = skipSpace(bytes, i + 1);
  if (bytes[i] === CLOSE_OBJECT) return expectEnd(bytes, i + 1, members);
  for (;;) {
    const keyEnd = skipString(bytes, i);
    const valueStart = skipSpace(bytes, skipKey(bytes, i));
    const end = skipValue(bytes, valueStart, maxDepth);
    members.push({ key: decodeKey(bytes, i, keyEnd), start: i, valueStart, end });
    i = skipSpace(bytes, end);
    if (bytes[i] === CLOSE_OBJECT) return expectEnd(bytes, i + 1, members);
    if (bytes[i] !== COMMA) throw new ScanError("comma or end expected");
    i = skipSpace(bytes, i + 1);
  }
}

/** The elements of the array that is the whole text, nested `maxDepth` levels at most. Throws ScanError for anything else. */
export function scanElements(bytes: Uint8Array, maxDepth: number = UPSTREAM.maxJsonDepth): Span[] {
  const elements: Span[] = [];
  let i = skipSpace(bytes, 0);
  if (bytes[i] !== OPEN_ARRAY) throw new ScanError("array expected");
  i = skipSpace(bytes, i + 1);
  if (bytes[i] === CLOSE_ARRAY) return expectEnd(bytes, i + 1, elements);
  for (;;) {
    const start = skipSpace(bytes, i);
    const end = skipValue(bytes, start, maxDepth);
    elements.push({ start, end });
    i = skipSpace(bytes, end);
    if (bytes[i] === CLOSE_ARRAY) return expectEnd(bytes, i + 1, elements);
    if (bytes[i] !== COMMA) throw new ScanError("comma or end expected");
    i += 1;
  }
}

function expectEnd<T>(bytes: Uint8Array, at: number, found: T): T {
  if (skipSpace(bytes, at) < bytes.length) throw new ScanError("text after the end");
  return found;
}

/** The value of a member as bytes. */
export function valueOf(bytes: Uint8Array, member: Member): Uint8Array {
  return bytes.subarray(member.valueStart, member.end);
}

/** The last member of that name, which is the one JSON.parse keeps. */
export function lastMember(members: readonly Member[], key: string): Member | undefined {
  return members.findLast((member) => member.key === key);
}

/** A value read with JSON.parse. Throws SyntaxError for what is not JSON. */
export function parseValue(bytes: Uint8Array): unknown {
  return JSON.parse(decoder.decode(bytes)) as unknown;
}
