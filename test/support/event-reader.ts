/** Reads an event stream as it comes, one event or comment at a time, each with a deadline. */
import { within } from "./deadline.ts";

const SOON_MS = 5_000;

export class EventReader {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #decoder = new TextDecoder();
  #text = "";

  constructor(response: Response) {
    if (response.body === null) throw new Error(`no body: ${response.status}`);
    this.#reader = response.body.getReader() as ReadableStreamDefaultReader<Uint8Array>;
  }

  /** The next event's JSON; comments are skipped. Null at the end of the stream. */
  async next(): Promise<unknown> {
    for (;;) {
      const block = await this.block();
      if (block === null) return null;
      if (block.startsWith("data: ")) return JSON.parse(block.slice("data: ".length)) as unknown;
    }
  }

  /** The next event or comment as text, without the empty line that ends it. */
  async block(): Promise<string | null> {
    for (;;) {
      const end = this.#text.indexOf("\n\n");
      if (end >= 0) {
        const block = this.#text.slice(0, end);
        this.#text = this.#text.slice(end + 2);
        return block;
      }
      const { done, value } = await within(SOON_MS, "something on the stream", this.#reader.read());
      if (done) return null;
      this.#text += this.#decoder.decode(value, { stream: true });
    }
  }

  /** Leaves. */
  async cancel(): Promise<void> {
    await this.#reader.cancel();
  }
}
