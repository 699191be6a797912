/** A `catalogue` frame of the agent: its payload is assembled under the catalogue's bound, checked, and stored. */
import { CATALOGUE } from "../src/limits.ts";
import { log } from "../src/log.ts";
import { type Payload, payloadText } from "../src/tunnel/codec.ts";
import { CATALOGUE_STREAM, type CatalogueFrame } from "../src/tunnel/frames.ts";
import { CatalogueBody } from "./catalogue.ts";
import type { Desk } from "./desk.ts";
import type { Link } from "./links.ts";

/** A catalogue that comes in chunks on one link. */
interface Intake {
  generation: number;
  digest: string;
  bytes: number;
  parts: Uint8Array[];
  received: number;
}

export class CatalogueIntake {
  readonly #desk: Desk;
  #intake: Intake | undefined;

  constructor(desk: Desk) {
    this.#desk = desk;
  }

  /** Begins a catalogue, or takes one that came in a single message. One over the bound is refused, with a word to the log. */
  begin(link: Link, frame: CatalogueFrame, payload: Payload | undefined): void {
    this.#intake = undefined;
    if (frame.bytes === undefined) return this.#store(frame.digest, payload);
    if (frame.bytes > CATALOGUE.maxBytes) return this.#refuse(`has ${frame.bytes} bytes, at most ${CATALOGUE.maxBytes}`);
    this.#intake = { generation: link.generation, digest: frame.digest, bytes: frame.bytes, parts: [], received: 0 };
    // The bound is the whole credit: a catalogue is assembled in any case.
    if (frame.bytes > 0) link.send({ type: "credit", stream: CATALOGUE_STREAM, bytes: frame.bytes });
  }

  /** Takes the next chunk; one out of place ends this catalogue only. */
  chunk(link: Link, offset: number, payload: Payload | undefined): void {
    const intake = this.#intake;
    if (intake === undefined || intake.generation !== link.generation) return;
    const bytes = payload instanceof Uint8Array ? payload : new TextEncoder().encode(payload ?? "");
    if (offset !== intake.received || offset + bytes.length > intake.bytes) {
      this.#intake = undefined;
      return this.#refuse("has a chunk out of place");
    }
    intake.parts.push(bytes);
    intake.received += bytes.length;
    if (intake.received < intake.bytes) return;
    this.#intake = undefined;
    this.#store(intake.digest, concat(intake.parts, intake.bytes));
  }

  #store(digest: string, payload: Payload | undefined): void {
    const body = read(payload);
    if (body === null) return this.#refuse("is not what the protocol says");
    const differing = this.#desk.catalogue.replace(body);
    this.#desk.meta.set("catalogueDigest", digest);
    this.#desk.listChanges.catalogue(differing);
    this.#desk.catalogueArrived.resolve();
    this.#desk.catalogueArrived = Promise.withResolvers<void>();
  }

  #refuse(problem: string): void {
    log("warn", "catalogue.refused", { deviceId: this.#desk.meta.get("deviceId"), problem });
  }
}

function read(payload: Payload | undefined): CatalogueBody | null {
  try {
    const text = payloadText(payload);
    const parsed = CatalogueBody.safeParse(JSON.parse(text));
    return parsed.success && (typeof payload !== "string" || payload.length <= CATALOGUE.maxBytes) ? parsed.data : null;
  } catch {
    return null; // Neither UTF-8 nor JSON: the caller says so.
  }
}

function concat(parts: readonly Uint8Array[], bytes: number): Uint8Array {
  const whole = new Uint8Array(bytes);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
