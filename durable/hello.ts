/**
 * `hello`: which socket becomes the device's tunnel (design section 4, docs/adr/0030). A process replaces its own
 * socket at once; any other, of this machine or of a copy of it or of another, is refused while the incumbent answers a
 * probe, and the owner is told. The generation is counted in storage, so it never repeats.
 */
import { CALL, TUNNEL } from "../src/limits.ts";
import { log } from "../src/log.ts";
import { CLOSE } from "../src/tunnel/close-codes.ts";
import { type Hello, newCallId, PROTOCOL_VERSION, type Welcome } from "../src/tunnel/frames.ts";
import { rivalRow } from "./audit-rows.ts";
import type { Desk } from "./desk.ts";
import { linkUp } from "./link-changes.ts";
import type { Link } from "./links.ts";
import { type AgentAttachment, closeQuietly, waitingSockets } from "./sockets.ts";

export class Doorkeeper {
  readonly #desk: Desk;
  /** Sockets whose hello waits for an incumbent's answer. */
  readonly #joining = new Set<WebSocket>();

  constructor(desk: Desk) {
    this.#desk = desk;
  }

  /** Decides about a newcomer's hello. `attachment` is the newcomer's. */
  async onHello(socket: WebSocket, attachment: AgentAttachment, hello: Hello): Promise<void> {
    if (this.#joining.has(socket)) return closeQuietly(socket, CLOSE.badHello, "a second hello");
    if (hello.protocol.min > PROTOCOL_VERSION || hello.protocol.max < PROTOCOL_VERSION) {
      return closeQuietly(socket, CLOSE.versionTooOld, `this relay speaks version ${PROTOCOL_VERSION} of the tunnel protocol`);
    }
    const incumbent = this.#desk.links.current();
    if (incumbent === null || isSameRun(incumbent, hello) || hello.takeover === true) {
      return this.#accept(socket, attachment, hello, CLOSE.superseded);
    }
    this.#joining.add(socket);
    try {
      const seenAt = incumbent.lastSeenAt(this.#desk.ctx);
      const isAlive = (await incumbent.probe()) || incumbent.lastSeenAt(this.#desk.ctx) > seenAt;
      if (socket.readyState !== WebSocket.OPEN) return;
      if (isAlive && incumbent.isOpen) this.#refuse(socket, incumbent.attachment.installation === hello.installation);
      else this.#accept(socket, attachment, hello, CLOSE.unresponsive);
    } finally {
      this.#joining.delete(socket);
    }
  }

  #refuse(socket: WebSocket, isCopy: boolean): void {
    this.#desk.meta.set("rivalAt", this.#desk.now());
    this.#desk.audit.add(rivalRow(this.#desk, newCallId()));
    log("warn", "tunnel.other-installation", { deviceId: this.#desk.meta.get("deviceId"), isCopy });
    closeQuietly(socket, CLOSE.otherInstallation, `another ${isCopy ? "process" : "machine"} holds this device; --takeover overrides`);
    planHello(this.#desk);
  }

  #accept(socket: WebSocket, before: AgentAttachment, hello: Hello, closeCode: number): void {
    const desk = this.#desk;
    const { meta } = desk;
    const previous = desk.links.current();
    const generation = (meta.get("generation") ?? 0) + 1;
    meta.set("generation", generation);
    meta.set("agentVersion", hello.agent.version);
    if (meta.get("installation")?.id !== hello.installation) meta.set("installation", { id: hello.installation, since: desk.now() });
    meta.set("upstreams", hello.upstreams);
    meta.set("lastSeenAt", desk.now());
    const link = desk.links.set(socket, {
      ...before,
      generation,
      installation: hello.installation,
      instance: hello.instance,
      maxFrameBytes: Math.min(hello.limits.maxFrameBytes, TUNNEL.maxFrameBytes),
      maxConcurrentCalls: Math.min(hello.limits.maxConcurrentCalls, TUNNEL.maxConcurrentCalls),
    });
    link.heardAt = desk.now();
    // The old link is not lost: its calls go on with this one.
    if (previous !== null) closeQuietly(previous.socket, closeCode, closeCode === CLOSE.superseded ? "superseded" : "no answer to a probe");
    link.send(this.#welcome(link, hello));
    planHello(desk);
    linkUp(desk, link, hello);
    desk.presence.sync();
  }

  #welcome(link: Link, hello: Hello): Welcome {
    const { meta } = this.#desk;
    const isKnown = hello.catalogue !== null && meta.get("catalogueDigest") === hello.catalogue;
    return {
      type: "welcome",
      protocol: PROTOCOL_VERSION,
      generation: link.generation,
      limits: { maxFrameBytes: link.attachment.maxFrameBytes, maxConcurrentCalls: link.attachment.maxConcurrentCalls },
      maxResultBytes: CALL.maxResultBytes,
      serverTime: this.#desk.now(),
      device: meta.get("name") ?? "",
      mcpUrl: meta.get("mcpUrl") ?? "",
      catalogue: isKnown ? "known" : "send",
    };
  }
}

/** The process that has the link comes again: it knows best that its old socket is dead. */
function isSameRun({ attachment }: Link, hello: Hello): boolean {
  return attachment.installation === hello.installation && attachment.instance === hello.instance;
}

/** Plans the alarm for the newcomer that has been silent longest. */
export function planHello(desk: Desk): void {
  const waiting = waitingSockets(desk.ctx).map(({ attachment }) => attachment.connectedAt + TUNNEL.helloMs);
  desk.alarms.plan("hello", waiting.length === 0 ? undefined : Math.min(...waiting));
}

/** The alarm's work: newcomers without a hello are closed. */
export function closeSilent(desk: Desk): void {
  for (const { socket, attachment } of waitingSockets(desk.ctx)) {
    if (attachment.connectedAt + TUNNEL.helloMs <= desk.now()) closeQuietly(socket, CLOSE.badHello, "no hello in time");
  }
  planHello(desk);
}
