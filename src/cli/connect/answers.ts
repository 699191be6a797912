/** The messages of one HTTP answer, JSON or event stream, each as one line for stdio. */
import type { IncomingMessage } from "node:http";
import { mediaType, readBody } from "../../agent/upstreams/http-exchange.ts";
import { SseParser } from "../../agent/upstreams/sse.ts";
import { CONNECT, UPSTREAM } from "../../limits.ts";

/** True when the answer is a stream of messages. */
export function isEventStream(response: IncomingMessage): boolean {
  return mediaType(response) === "text/event-stream";
}

/** Hands over each message of a stream in order, as fast as they are taken. Resolves at its end; rejects when it breaks or falls silent. */
export async function readStream(response: IncomingMessage, take: (line: Buffer) => Promise<void>): Promise<void> {
  const waiting: Buffer[] = [];
  const parser = new SseParser(UPSTREAM.maxMessageBytes, ({ data }) => void (data.length > 0 && waiting.push(data)));
  response.setTimeout(CONNECT.silentMs, () => response.destroy(new Error("silent")));
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      parser.push(chunk);
      for (const data of waiting.splice(0)) await take(oneLine(data));
    }
  } finally {
    response.destroy();
  }
}

/** The body as one line; empty when there is none. */
export async function readLine(response: IncomingMessage): Promise<Buffer> {
  return oneLine(await readBody(response));
}

/** JSON has line breaks between its tokens only, where a blank says the same. */
function oneLine(bytes: Buffer): Buffer {
  if (!bytes.includes(0x0a) && !bytes.includes(0x0d)) return bytes;
  return Buffer.from(bytes.map((byte) => (byte === 0x0a || byte === 0x0d ? 0x20 : byte)));
}
