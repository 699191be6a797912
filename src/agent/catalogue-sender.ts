/** Sends the catalogue to the relay: in one message when it fits, else in chunks as the relay's credit allows. */
import { AGENT, TUNNEL } from "../limits.ts";
import { CATALOGUE_STREAM } from "../tunnel/frames.ts";
import type { CatalogueText } from "./catalogue.ts";
import type { FramePort } from "./port.ts";

export class CatalogueSender {
  #port: FramePort | null = null;
  #bytes: Buffer | null = null;
  #at = 0;
  #credit = 0;

  online(port: FramePort): void {
    this.#port = port;
    this.#bytes = null;
  }

  offline(): void {
    this.#port = null;
    this.#bytes = null;
  }

  /** Sends a catalogue; one that is still on its way is given up. */
  send(catalogue: CatalogueText): void {
    const port = this.#port;
    if (!port) return;
    this.#bytes = null;
    const { digest, text } = catalogue;
    const bytes = Buffer.from(text, "utf8");
    if (bytes.length <= TUNNEL.initialCreditBytes && port.send({ type: "catalogue", digest }, text)) return;
    if (!port.send({ type: "catalogue", digest, bytes: bytes.length })) return;
    this.#bytes = bytes;
    this.#at = 0;
    this.#credit = TUNNEL.initialCreditBytes;
    this.pump();
  }

  addCredit(bytes: number): void {
    this.#credit += bytes;
    this.pump();
  }

  pump(): void {
    const port = this.#port;
    if (!port) return;
    while (this.#bytes && port.isWritable) {
      const room = Math.min(this.#credit, port.maxFrameBytes - AGENT.chunkHeaderBytes);
      const piece = this.#bytes.subarray(this.#at, this.#at + Math.max(0, room));
      if (piece.length === 0 || !port.send({ type: "chunk", stream: CATALOGUE_STREAM, offset: this.#at }, piece)) return;
      this.#credit -= piece.length;
      this.#at += piece.length;
      if (this.#at >= this.#bytes.length) this.#bytes = null;
    }
  }
}
