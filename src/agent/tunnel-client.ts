/**
 * Keeps one tunnel to the relay alive: dials, says hello, watches for silence, and does after each end what the close
 * code's range says. What frames mean is not decided here.
 */
import { WebSocket, type RawData } from "ws";
import { AGENT, CALL, TEXT, TUNNEL } from "../limits.ts";
import { CLOSE, closeAction } from "../tunnel/close-codes.ts";
import { decodeRelayMessage, type Payload } from "../tunnel/codec.ts";
import { PING_TEXT, PONG_TEXT, SUBPROTOCOL, type Hello, type RelayFrame, type Welcome } from "../tunnel/frames.ts";
import { Backoff } from "./backoff.ts";
import { cleanText } from "./clean-text.ts";
import { Link } from "./link.ts";
import { proxyRefusal, routeTo } from "./network.ts";
import type { AgentEvent, DoneCode } from "./types.ts";
import { watchForWake } from "./wake-watch.ts";

export interface TunnelListener {
  /** What `hello` says at this moment. */
  hello(): Hello;
  online(link: Link, welcome: Welcome): void;
  offline(): void;
  frame(frame: Exclude<RelayFrame, { type: "welcome" | "drain" }>, payload: Payload | undefined): void;
  /** The socket takes more again. */
  drained(): void;
}

export interface TunnelClientOptions {
  relay: URL;
  deviceKey: string;
  maxFrameBytes: number;
  log: (event: AgentEvent) => void;
  listener: TunnelListener;
  /** Calls back when the machine slept or changed its network; returns what ends that. */
  watch?: (onWake: () => void) => () => void;
}

export interface Done {
  code: DoneCode;
  message: string;
}

type Timer = ReturnType<typeof setTimeout>;
const STOPS: ReadonlyMap<number, Done> = new Map<number, Done>([
  [
    CLOSE.revoked,
    { code: "revoked", message: "The relay does not accept this device any more: its key was revoked or the device was removed." },
  ],
  [CLOSE.versionTooOld, { code: "version", message: "This agent is too old for the relay. Install a newer version." }],
  [
    CLOSE.otherInstallation,
    {
      code: "other_installation",
      message:
        "Another machine uses this device key and is online (or another agent here, with a copy of this one's state). Stop it, or start with --takeover.",
    },
  ],
]);

export class TunnelClient {
  readonly done: Promise<Done>;
  readonly #options: TunnelClientOptions;
  readonly #backoff = new Backoff();
  #finish: (done: Done) => void = () => undefined;
  #socket: WebSocket | null = null;
  #link: Link | null = null;
  #generation: number | null = null;
  #onlineAt = 0;
  #isStopped = false;
  #unwatch: () => void = () => undefined;
  #redial: Timer | null = null;
  #welcomeTimer: Timer | null = null;
  #pingTimer: Timer | null = null;
  #pongTimer: Timer | null = null;
  #drainTimer: Timer | null = null;

  constructor(options: TunnelClientOptions) {
    this.#options = options;
    this.done = new Promise((resolve) => {
      this.#finish = resolve;
    });
  }

  get status(): { link: "offline" | "connecting" | "online" | "stopped"; generation: number | null } {
    const link = this.#isStopped ? "stopped" : this.#link ? "online" : this.#socket ? "connecting" : "offline";
    return { link, generation: this.#link ? this.#generation : null };
  }

  start(): void {
    if (this.#isStopped) return;
    this.#unwatch = (this.#options.watch ?? watchForWake)(() => this.#woken());
    this.#dial();
  }

  /** Says bye and closes. Resolves when the socket is gone. */
  async stop(reason: string): Promise<void> {
    const socket = this.#socket;
    const isGone = socket
      ? new Promise<void>((resolve) => {
          socket.once("close", () => resolve());
        })
      : Promise.resolve();
    this.#link?.send({ type: "bye", reason: reason.slice(0, 256) });
    this.#end({ code: "stopped", message: reason });
    if (!socket) return;
    if (socket.readyState === socket.OPEN) socket.close(CLOSE.normal, "stopped");
    else socket.terminate();
    const timer = setTimeout(() => socket.terminate(), AGENT.stopMs);
    await isGone;
    clearTimeout(timer);
  }

  #dial(): void {
    this.#redial = null;
    const { relay, deviceKey, maxFrameBytes, log } = this.#options;
    const url = new URL("/tunnel", relay);
    url.protocol = relay.protocol === "https:" ? "wss:" : "ws:";
    log({ type: "connecting", url: url.origin });
    const socket = new WebSocket(url, [SUBPROTOCOL], {
      headers: { authorization: `Bearer ${deviceKey}` },
      perMessageDeflate: false,
      followRedirects: false,
      handshakeTimeout: AGENT.dialMs,
      ...routeTo(url),
      // Room above the negotiated size, so that the answer to a breach is a code of ours.
      maxPayload: maxFrameBytes * 2,
    });
    this.#socket = socket;
    let problem = "the connection was lost";
    let status = 0;
    socket.on("unexpected-response", (request, response) => {
      status = response.statusCode ?? 0;
      problem = `the relay answered with HTTP ${status}`;
      response.resume();
      request.destroy();
      this.#closed(socket, 1006, problem, status);
    });
    socket.on("error", (error: NodeJS.ErrnoException) => {
      if (status === 0) problem = unreachable(error.code ?? "handshake failed");
    });
    socket.on("open", () => this.#opened(socket));
    socket.on("message", (data, isBinary) => this.#guard(socket, () => this.#message(socket, data, isBinary)));
    socket.on("close", (code, reason) => {
      const text = cleanText(reason.toString("utf8"), TEXT.closeReasonBytes);
      this.#closed(socket, code, code === 1006 ? problem : `closed with ${code}${text === "" ? "" : `: ${text}`}`, status);
    });
  }

  /** A handler that throws must not take the agent along. */
  #guard(socket: WebSocket, work: () => void): void {
    try {
      work();
    } catch (error) {
      const name = error instanceof Error ? error.name : "error";
      this.#options.log({ type: "warning", message: `a message of the relay could not be handled (${name})` });
      socket.close(CLOSE.badFrame, "not handled");
    }
  }

  #opened(socket: WebSocket): void {
    socket.send(JSON.stringify(this.#options.listener.hello()));
    this.#welcomeTimer = setTimeout(() => socket.terminate(), TUNNEL.helloMs);
  }

  #message(socket: WebSocket, data: RawData, isBinary: boolean): void {
    if (socket !== this.#socket) return;
    this.#alive();
    const bytes = Buffer.isBuffer(data) ? data : Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data);
    const max = this.#link?.maxFrameBytes ?? this.#options.maxFrameBytes;
    if (bytes.length > max) {
      socket.close(CLOSE.frameTooLarge, `over ${max} bytes`);
      return;
    }
    const message = isBinary ? bytes : bytes.toString("utf8");
    if (message === PONG_TEXT) return;
    const decoded = decodeRelayMessage(message);
    if (!decoded.ok) {
      this.#options.log({ type: "warning", message: `the relay sent a frame that breaks the protocol: ${decoded.problem}` });
      socket.close(CLOSE.badFrame, decoded.problem.slice(0, 100));
      return;
    }
    if (decoded.frame !== null) this.#frame(socket, decoded.frame, decoded.payload);
  }

  #frame(socket: WebSocket, frame: RelayFrame, payload: Payload | undefined): void {
    const isWelcome = frame.type === "welcome";
    if (isWelcome === (this.#link !== null)) {
      socket.close(CLOSE.badFrame, isWelcome ? "a second welcome" : "no welcome yet");
    } else if (isWelcome) this.#welcome(socket, frame);
    else if (frame.type === "drain") this.#drain(socket);
    else this.#options.listener.frame(frame, payload);
  }

  #welcome(socket: WebSocket, welcome: Welcome): void {
    const { log, listener, maxFrameBytes } = this.#options;
    if (this.#welcomeTimer) clearTimeout(this.#welcomeTimer);
    const limits = {
      maxFrameBytes: Math.min(maxFrameBytes, welcome.limits.maxFrameBytes),
      maxResultBytes: Math.min(CALL.maxResultBytes, welcome.maxResultBytes),
    };
    const link = new Link(socket, limits, () => this.#guard(socket, () => listener.drained()));
    this.#link = link;
    this.#generation = welcome.generation;
    this.#onlineAt = Date.now();
    this.#pingTimer = setInterval(() => this.#ping(socket), TUNNEL.pingMs);
    log({ type: "online", generation: welcome.generation, device: cleanText(welcome.device), mcpUrl: cleanText(welcome.mcpUrl, 2048) });
    listener.online(link, welcome);
  }

  #ping(socket: WebSocket, pongMs: number = AGENT.pongMs): void {
    if (socket.readyState !== socket.OPEN) return;
    socket.send(PING_TEXT);
    this.#pongTimer ??= setTimeout(() => socket.terminate(), pongMs);
  }

  /** After a sleep or in another network: a link is tried at once, and a redial does not wait for its turn. */
  #woken(): void {
    if (this.#isStopped) return;
    this.#backoff.reset();
    if (this.#link && this.#socket) this.#ping(this.#socket, AGENT.wakePongMs);
    // A dial that is under way may be one of the old network.
    else if (this.#socket) this.#socket.terminate();
    else if (this.#redial) {
      clearTimeout(this.#redial);
      this.#dial();
    }
  }

  /** Anything that arrives shows that the relay lives. */
  #alive(): void {
    if (this.#pongTimer) clearTimeout(this.#pongTimer);
    this.#pongTimer = null;
  }

  /** The relay is about to go: what runs goes on, and the next link takes it up. */
  #drain(socket: WebSocket): void {
    this.#drainTimer ??= setTimeout(() => socket.close(CLOSE.normal, "drained"), TUNNEL.drainMs + AGENT.stopMs);
  }

  #closed(socket: WebSocket, code: number, reason: string, status: number): void {
    if (socket !== this.#socket) return;
    this.#socket = null;
    const wasOnline = this.#link !== null;
    this.#link = null;
    this.#clearTimers();
    if (wasOnline) {
      this.#backoff.lasted(Date.now() - this.#onlineAt);
      this.#options.listener.offline();
    }
    if (this.#isStopped) return;
    if (status === 401 || status === 403) {
      this.#end({
        code: "not_authorised",
        message: "The relay does not accept this device key. `longline device add` or `rotate-key` makes one.",
      });
      return;
    }
    if (closeAction(code) === "stop") {
      this.#end(STOPS.get(code) ?? { code: "refused", message: `The relay refuses this agent for good (${reason}).` });
      return;
    }
    // A link that was up and broke is redialled at once; one that never came up is not.
    const isQuick = wasOnline && closeAction(code) === "redial";
    const retryInMs = isQuick ? this.#backoff.redial() : this.#backoff.next();
    this.#options.log({ type: "offline", reason, retryInMs });
    this.#redial = setTimeout(() => this.#dial(), retryInMs);
  }

  #end(done: Done): void {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#unwatch();
    this.#options.log({ type: "offline", reason: done.message, retryInMs: null });
    if (this.#redial) clearTimeout(this.#redial);
    this.#finish(done);
  }

  #clearTimers(): void {
    for (const timer of [this.#welcomeTimer, this.#pongTimer, this.#drainTimer]) if (timer) clearTimeout(timer);
    if (this.#pingTimer) clearInterval(this.#pingTimer);
    this.#welcomeTimer = this.#pongTimer = this.#drainTimer = this.#pingTimer = null;
  }
}

function unreachable(code: string): string {
  const refused = proxyRefusal(code);
  if (refused !== undefined) return `the proxy between here and the relay refused the connection (HTTP ${refused})`;
  return `the relay cannot be reached (${cleanText(code, 64)})`;
}
