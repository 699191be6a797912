/** The last messages of an event feed, within bounds, as the text of a resource. Pure. */
import { FEED } from "../../limits.ts";

interface Held {
  /** JSON text with its number and time around it. */
  text: string;
  bytes: number;
}

export class FeedLog {
  #held: Held[] = [];
  #bytes = 0;
  #received = 0;
  #skipped = 0;

  /** Takes a message; false for one that is too large or no JSON, which is only counted. */
  add(message: Buffer, now: number): boolean {
    const json = message.length <= FEED.messageBytes ? compact(message) : undefined;
    if (json === undefined) {
      this.#skipped += 1;
      return false;
    }
    this.#received += 1;
    const text = `{"number":${this.#received},"at":${JSON.stringify(new Date(now).toISOString())},"message":${json}}`;
    const held = { text, bytes: Buffer.byteLength(text) };
    this.#held.push(held);
    this.#bytes += held.bytes;
    while (this.#held.length > FEED.messages || this.#bytes > FEED.heldBytes) this.#bytes -= this.#held.shift()?.bytes ?? 0;
    return true;
  }

  /** The resource: oldest message first. */
  text(facts: { feed: string; connected: boolean }): string {
    const { feed, connected } = facts;
    const head = JSON.stringify({ feed, connected, received: this.#received, skipped: this.#skipped });
    return `${head.slice(0, -1)},"messages":[${this.#held.map(({ text }) => text).join(",")}]}`;
  }
}

/** The message as the source wrote it, without what is around it; undefined when it is no JSON. */
function compact(message: Buffer): string | undefined {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(message).trim();
    JSON.parse(text);
    return text;
  } catch {
    return undefined;
  }
}
