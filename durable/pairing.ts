/**
 * Pairing: what a device that wants to be paired says of itself, for ten minutes. Holds no secret and decides nothing:
 * losing or repeating it costs a new code. The one class on itty-durable (docs/adr/0003-itty-durable-in-one-class.md), with
 * its internal routes closed: only the methods listed here can be called, state is one field, and every change is stored
 * before it is answered.
 */
import { createDurable } from "itty-durable";

/** Methods that can be called from outside; every other one, and every property, is 404. */
const CALLABLE: ReadonlySet<string> = new Set(["open", "read", "close"]);
const CALL_PATH = /^\/do\/call\/([a-z]+)$/;

// Not after each request: a failed write would be lost, and a read would write.
const Base = createDurable({ autoPersist: false });

export class Pairing extends Base {
  /** JSON text of the record; null when there is none. The only stored field, replaced and never edited. */
  record: string | null = null;

  override async fetch(request: Request): Promise<Response> {
    const method = CALL_PATH.exec(new URL(request.url).pathname)?.[1];
    if (request.method !== "GET" || method === undefined || !CALLABLE.has(method)) return new Response(null, { status: 404 });
    return super.fetch(request) as Promise<Response>;
  }

  /** Stores a record (base64url of JSON, as arguments travel in a header) until `expiresAt` (epoch ms). */
  async open(record: string, expiresAt: number): Promise<{ ok: true }> {
    await this.setAlarm(expiresAt);
    this.record = record;
    await this.persist();
    return { ok: true };
  }

  /** The record, or null. */
  async read(): Promise<{ record: string | null }> {
    return { record: this.record };
  }

  /** Ends the record and everything stored. */
  async close(): Promise<{ ok: true }> {
    await this.deleteAlarm();
    this.record = null;
    await this.destroy();
    return { ok: true };
  }

  /** The record's time is over. */
  async alarm(): Promise<void> {
    // Only a fetch loads the stored state by itself.
    await this.loadFromStorage();
    await this.close();
  }
}
