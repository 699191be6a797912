/**
 * Everything an agent's socket says, from bytes to the function that knows the frame. A message that cannot be read, or
 * is larger than negotiated, closes its socket with the documented code; nothing here ever throws to the platform.
 */
import { TUNNEL } from "../src/limits.ts";
import { log } from "../src/log.ts";
import { CLOSE } from "../src/tunnel/close-codes.ts";
import { decodeAgentMessage, type Payload } from "../src/tunnel/codec.ts";
import { type AgentFrame, CATALOGUE_STREAM, PING_TEXT, type UpstreamState } from "../src/tunnel/frames.ts";
import { fitsUtf8 } from "../src/tunnel/utf8.ts";
import { onCallFrame } from "./call-frames.ts";
import { CatalogueIntake } from "./catalogue-intake.ts";
import type { Desk } from "./desk.ts";
import { Doorkeeper } from "./hello.ts";
import { agentLeft, dropLink } from "./link-changes.ts";
import type { Link } from "./links.ts";
import { closeQuietly, readAgentAttachment } from "./sockets.ts";
import { uploadCredit } from "./uploads.ts";

export class AgentMessages {
  readonly #desk: Desk;
  readonly #doorkeeper: Doorkeeper;
  readonly #intake: CatalogueIntake;

  constructor(desk: Desk) {
    this.#desk = desk;
    this.#doorkeeper = new Doorkeeper(desk);
    this.#intake = new CatalogueIntake(desk);
  }

  /** One message of a socket. */
  async onMessage(socket: WebSocket, raw: string | ArrayBuffer): Promise<void> {
    const link = this.#desk.links.of(socket);
    if (link === null) return this.#onNewcomer(socket, raw);
    link.heardAt = this.#desk.now();
    const message = typeof raw === "string" ? raw : new Uint8Array(raw);
    if (!fits(message, link.attachment.maxFrameBytes)) return this.#drop(link, CLOSE.frameTooLarge, "a message larger than negotiated");
    const decoded = decodeAgentMessage(message);
    if (!decoded.ok) {
      // The platform answers the exact text itself; one that comes through was sent around a reconnect.
      if (message !== PING_TEXT) this.#drop(link, CLOSE.badFrame, decoded.problem);
      return;
    }
    if (decoded.frame !== null) this.#dispatch(link, decoded.frame, decoded.payload, message);
  }

  async #onNewcomer(socket: WebSocket, raw: string | ArrayBuffer): Promise<void> {
    const attachment = readAgentAttachment(socket);
    if (attachment === null) return closeQuietly(socket, CLOSE.redial, "unknown state");
    // A superseded socket that still speaks is not the device any more; its close is under way.
    if (attachment.generation > 0 || raw === PING_TEXT) return;
    const message = typeof raw === "string" ? raw : new Uint8Array(raw);
    if (!fits(message, TUNNEL.maxFrameBytes)) return closeQuietly(socket, CLOSE.frameTooLarge, "a message larger than allowed");
    const decoded = decodeAgentMessage(message);
    if (!decoded.ok) return closeQuietly(socket, CLOSE.badFrame, decoded.problem);
    if (decoded.frame === null) return;
    if (decoded.frame.type !== "hello") return closeQuietly(socket, CLOSE.badHello, "the first message has to be a hello");
    await this.#doorkeeper.onHello(socket, attachment, decoded.frame);
  }

  #dispatch(link: Link, frame: AgentFrame, payload: Payload | undefined, message: string | Uint8Array): void {
    if (this.#desk.upstreamResources.onFrame(frame, message)) return;
    switch (frame.type) {
      case "hello":
        return this.#drop(link, CLOSE.badHello, "a second hello");
      case "catalogue":
        return this.#intake.begin(link, frame, payload);
      case "ack":
      case "event":
      case "ask":
      case "result":
      case "error":
        return onCallFrame(this.#desk, link, { frame, payload, message });
      case "chunk":
        if (frame.stream === CATALOGUE_STREAM) return this.#intake.chunk(link, frame.offset, payload);
        return onCallFrame(this.#desk, link, { frame, payload, message });
      case "pong":
        link.answered(frame.probeId);
        return this.#keepUpstreams(frame.upstreams);
      case "bye":
        agentLeft(this.#desk, link);
        return this.#drop(link, CLOSE.normal, "bye");
      case "changed":
        if (frame.what !== "resource") return this.#desk.listChanges.said(frame.what);
        if (frame.uri !== undefined) this.#desk.listeners.resourceUpdated(frame.uri, frame.grant);
        return;
      case "credit":
        return uploadCredit(this.#desk, link, frame);
    }
  }

  #keepUpstreams(upstreams: UpstreamState[]): void {
    this.#desk.upstreams = upstreams;
  }

  #drop(link: Link, code: number, reason: string): void {
    if (code !== CLOSE.normal) log("warn", "tunnel.closed", { deviceId: this.#desk.meta.get("deviceId"), code, reason });
    dropLink(this.#desk, link, code, reason);
  }
}

function fits(message: string | Uint8Array, max: number): boolean {
  return typeof message === "string" ? fitsUtf8(message, max) : message.length <= max;
}
