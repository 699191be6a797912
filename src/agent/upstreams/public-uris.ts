/**
 * Puts an upstream's resource prefix before the addresses in its results, so that a client can ask for them again. The
 * rest of a result stays byte for byte as it was written. Pure.
 */
import { lastMember, parseValue, scanElements, scanMembers, ScanError, valueOf, type Span } from "../../tunnel/json-scan.ts";

const encoder = new TextEncoder();
const QUOTE = 0x22;
const OPEN_OBJECT = 0x7b;
const OPEN_ARRAY = 0x5b;
/** A link to the web is good as it is. */
const WEB = /^https?:/i;

/** The result of a method with public addresses. */
export function withPublicUris(method: string, bytes: Uint8Array, prefix: string): Uint8Array {
  const places: number[] = [];
  try {
    findPlaces(method, bytes, places);
  } catch (error) {
    if (error instanceof ScanError) return bytes; // Not a result at all, which is said elsewhere.
    throw error;
  }
  return places.length === 0 ? bytes : insertAt(bytes, encoder.encode(prefix), places);
}

function findPlaces(method: string, bytes: Uint8Array, places: number[]): void {
  const whole = { start: 0, end: bytes.length };
  if (method === "resources/read") {
    for (const contents of elements(bytes, member(bytes, whole, "contents"))) addUri(bytes, contents, places);
  } else if (method === "tools/call") {
    for (const block of elements(bytes, member(bytes, whole, "content"))) addBlock(bytes, block, places);
  } else if (method === "prompts/get") {
    for (const message of elements(bytes, member(bytes, whole, "messages"))) {
      const content = member(bytes, message, "content");
      if (content && bytes[content.start] === OPEN_OBJECT) addBlock(bytes, content, places);
      for (const block of elements(bytes, content)) addBlock(bytes, block, places);
    }
  }
}

function addBlock(bytes: Uint8Array, block: Span, places: number[]): void {
  const type = member(bytes, block, "type");
  const kind = type && parseValue(bytes.subarray(type.start, type.end));
  if (kind === "resource") addUri(bytes, member(bytes, block, "resource"), places);
  else if (kind === "resource_link" && !WEB.test(String(uriOf(bytes, block)))) addUri(bytes, block, places);
}

function addUri(bytes: Uint8Array, holder: Span | undefined, places: number[]): void {
  const uri = member(bytes, holder, "uri");
  if (uri && bytes[uri.start] === QUOTE) places.push(uri.start + 1);
}

function uriOf(bytes: Uint8Array, holder: Span): unknown {
  const uri = member(bytes, holder, "uri");
  return uri && parseValue(bytes.subarray(uri.start, uri.end));
}

/** Where a member's value is; undefined when there is none. */
function member(bytes: Uint8Array, holder: Span | undefined, key: string): Span | undefined {
  if (!holder || bytes[holder.start] !== OPEN_OBJECT) return undefined;
  const inner = bytes.subarray(holder.start, holder.end);
  const found = lastMember(scanMembers(inner), key);
  if (!found) return undefined;
  const start = holder.start + found.valueStart;
  return { start, end: start + valueOf(inner, found).length };
}

function elements(bytes: Uint8Array, list: Span | undefined): Span[] {
  if (!list || bytes[list.start] !== OPEN_ARRAY) return [];
  return scanElements(bytes.subarray(list.start, list.end)).map(({ start, end }) => ({ start: list.start + start, end: list.start + end }));
}

function insertAt(bytes: Uint8Array, text: Uint8Array, places: readonly number[]): Uint8Array {
  const out = new Uint8Array(bytes.length + text.length * places.length);
  let from = 0;
  let at = 0;
  for (const place of places.toSorted((a, b) => a - b)) {
    out.set(bytes.subarray(from, place), at);
    at += place - from;
    out.set(text, at);
    at += text.length;
    from = place;
  }
  out.set(bytes.subarray(from), at);
  return out;
}
