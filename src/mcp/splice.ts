/**
 * Putting members into a JSON object that is only text or bytes: results cross the edge unparsed, so that numbers,
 * escapes and unknown members stay as the device wrote them. Pure.
 */

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const OPEN = 0x7b;
const CLOSE = 0x7d;
const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;

/** The text is not a JSON object, so nothing can be put into it. */
export class NotAnObjectError extends Error {
  override readonly name = "NotAnObjectError";
}

/** White space between tokens may hold line ends, which would end an SSE line; a JSON string cannot hold any. */
export function oneLine(text: string): string {
  return text.includes("\n") || text.includes("\r") ? text.replace(/[\r\n]/g, " ") : text;
}

/** `oneLine` for bytes; copies only when there is something to replace. */
export function oneLineBytes(bytes: Uint8Array): Uint8Array {
  if (!bytes.includes(LF) && !bytes.includes(CR)) return bytes;
  return bytes.map((byte) => (byte === LF || byte === CR ? SPACE : byte));
}

/** `{members,…text's own members}`. `members` is JSON members without braces, or "". */
export function spliceText(members: string, text: string): string {
  const opening = /^[ \t\r\n]*\{[ \t\r\n]*/.exec(text);
  if (opening === null || !/\}[ \t\r\n]*$/.test(text.slice(-64))) throw new NotAnObjectError("payload is not an object");
  const rest = text.slice(opening[0].length);
  const isEmpty = rest.startsWith("}");
  return `{${members}${members === "" || isEmpty ? "" : ","}${rest}`;
}

/** Cuts a JSON object's text before its last member, which begins at byte `at` (design: `structuredAt`). */
export function cutText(text: string, at: number): string {
  return `${decoder.decode(encoder.encode(text).subarray(0, at))}}`;
}

/** `cutText` for a stream; what comes after `at` is read by nobody. */
export async function* cutBytes(source: AsyncIterable<Uint8Array>, at: number): AsyncGenerator<Uint8Array, void, void> {
  let left = at;
  for await (const bytes of source) {
    yield bytes.subarray(0, left);
    left -= bytes.length;
    if (left <= 0) break;
  }
  yield encoder.encode("}");
}

/** `spliceText` for a stream of bytes, whatever its pieces are; with line ends made blanks. */
export async function* spliceBytes(members: string, source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, void> {
  let state: "before" | "opened" | "inside" = "before";
  for await (const bytes of source) {
    let at = 0;
    for (; state !== "inside" && at < bytes.length; at += 1) {
      const byte = bytes[at] ?? 0;
      if (byte === SPACE || byte === LF || byte === CR || byte === 0x09) continue;
      if (state === "opened") {
        if (members !== "" && byte !== CLOSE) yield encoder.encode(",");
        state = "inside";
        break;
      }
      if (byte !== OPEN) throw new NotAnObjectError("payload is not an object");
      yield encoder.encode(`{${members}`);
      state = "opened";
    }
    if (state === "inside" && at < bytes.length) yield oneLineBytes(bytes.subarray(at));
  }
  if (state !== "inside") throw new NotAnObjectError("payload is not an object");
}
