/**
 * The relay's half of the tunnel, for tests of the agent: a WebSocket server that says welcome, collects what each
 * agent socket sends, and sends whatever a test wants, well-formed or not.
 */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { WebSocketServer, type WebSocket } from "ws";
import { CALL, TUNNEL } from "../../src/limits.ts";
import { decodeAgentMessage, encode, payloadText, type Message, type Payload } from "../../src/tunnel/codec.ts";
import { newCallId, PING_TEXT, PONG_TEXT, SUBPROTOCOL, type AgentFrame, type Call, type RelayFrame } from "../../src/tunnel/frames.ts";
import { within } from "./deadline.ts";

const WAIT_MS = 15_000;

export interface FakeRelayOptions {
  maxFrameBytes?: number;
  maxResultBytes?: number;
  catalogue?: "send" | "known";
  /** Answers the upgrade with this status instead of a socket. */
  refuse?: number;
  /** Leaves the agent's `ping` unanswered and says no welcome. */
  isSilent?: boolean;
}

export type AgentMessage = Message<AgentFrame> & { bytes: number; isBinary: boolean };

/** One agent socket as the relay sees it. */
export class AgentSocket {
  readonly socket: WebSocket;
  readonly headers: Record<string, string | string[] | undefined>;
  readonly messages: AgentMessage[] = [];
  readonly closed: Promise<{ code: number; reason: string }>;
  /** The first frame that no agent may send. */
  problem: string | null = null;
  #waiting: (() => void)[] = [];

  constructor(socket: WebSocket, headers: Record<string, string | string[] | undefined>) {
    this.socket = socket;
    this.headers = headers;
    this.closed = new Promise((resolve) => {
      socket.on("close", (code, reason) => resolve({ code, reason: reason.toString() }));
    });
    socket.on("message", (data: Buffer, isBinary) => {
      const text = isBinary ? data : data.toString("utf8");
      if (text === PING_TEXT) socket.send(PONG_TEXT);
      else this.#take(text, data.length, isBinary);
    });
  }

  /** The next message that fits and was not taken yet. */
  async next<T extends AgentFrame["type"]>(
    type: T,
    fits: (frame: Extract<AgentFrame, { type: T }>) => boolean = () => true,
  ): Promise<AgentMessage & { frame: Extract<AgentFrame, { type: T }> }> {
    const look = async () => {
      for (;;) {
        const index = this.messages.findIndex(
          (message) => message.frame.type === type && fits(message.frame as Extract<AgentFrame, { type: T }>),
        );
        const [found] = index < 0 ? [] : this.messages.splice(index, 1);
        if (found) return found as AgentMessage & { frame: Extract<AgentFrame, { type: T }> };
        await new Promise<void>((resolve) => this.#waiting.push(resolve));
      }
    };
    return await within(WAIT_MS, `a ${type} frame`, look());
  }

  /** The outcome of a call: its result or error frame, with the payload put together from chunks, credit given freely. */
  async outcome(callId: string): Promise<{ frame: Extract<AgentFrame, { type: "result" | "error" }>; payload: string }> {
    const look = async () => {
      for (;;) {
        const message = this.messages.find(({ frame }) => (frame.type === "result" || frame.type === "error") && frame.callId === callId);
        if (message) return message;
        await new Promise<void>((resolve) => this.#waiting.push(resolve));
      }
    };
    const message = await within(WAIT_MS, `the outcome of ${callId}`, look());
    this.messages.splice(this.messages.indexOf(message), 1);
    const frame = message.frame as Extract<AgentFrame, { type: "result" | "error" }>;
    if (frame.type === "error" || frame.bytes === undefined) return { frame, payload: payloadText(message.payload) };
    return { frame, payload: (await this.chunks(callId, frame.bytes)).toString("utf8") };
  }

  /** Bytes of a stream from `from` to `bytes`, in order, with credit for all of it. */
  async chunks(stream: string, bytes: number, from = 0): Promise<Buffer> {
    const parts: Buffer[] = [];
    let at = from;
    if (bytes > at) this.send({ type: "credit", stream, bytes: bytes - at });
    while (at < bytes) {
      const { frame, payload } = await this.next("chunk", (chunk) => chunk.stream === stream);
      if (frame.offset !== at) throw new Error(`chunk at ${frame.offset} instead of ${at}`);
      const piece = Buffer.from(payload as Uint8Array);
      parts.push(piece);
      at += piece.length;
    }
    return Buffer.concat(parts);
  }

  send(frame: RelayFrame, payload?: Payload): void {
    this.socket.send(encode(frame, payload));
  }

  /** Sends a call and returns its id. */
  call(call: Partial<Call> & { method: string }, params: unknown = {}): string {
    const frame = callFrame(call);
    this.send(frame, typeof params === "string" ? params : JSON.stringify(params));
    return frame.callId;
  }

  /** Ends the TCP connection without a goodbye. */
  cut(): void {
    this.socket.terminate();
  }

  #take(message: string | Uint8Array, bytes: number, isBinary: boolean): void {
    const decoded = decodeAgentMessage(message);
    if (!decoded.ok) this.problem ??= decoded.problem;
    else if (decoded.frame !== null) this.messages.push({ frame: decoded.frame, payload: decoded.payload, bytes, isBinary });
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const wake of waiting) wake();
  }
}

export class FakeRelay {
  readonly #server: Server;
  readonly #sockets: WebSocketServer;
  readonly agents: AgentSocket[] = [];
  options: FakeRelayOptions;
  /** Requests for an upgrade so far. */
  dials = 0;
  #waiting: (() => void)[] = [];
  #taken = 0;
  #generation = 0;

  private constructor(options: FakeRelayOptions) {
    this.options = options;
    this.#server = createServer((_request, response) => response.writeHead(404).end());
    this.#sockets = new WebSocketServer({ noServer: true, maxPayload: 2 * TUNNEL.maxFrameBytes, perMessageDeflate: false });
    this.#server.on("upgrade", (request, socket, head) => {
      this.dials += 1;
      const { refuse } = this.options;
      if (refuse !== undefined) {
        socket.end(`HTTP/1.1 ${refuse} No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`);
        this.#wake();
        return;
      }
      this.#sockets.handleUpgrade(request, socket, head, (ws) => this.#accept(ws, request.headers));
    });
  }

  static async start(options: FakeRelayOptions = {}): Promise<FakeRelay> {
    const relay = new FakeRelay(options);
    await new Promise<void>((resolve) => {
      relay.#server.listen(0, "127.0.0.1", resolve);
    });
    return relay;
  }

  get url(): URL {
    return new URL(`http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`);
  }

  /** The next agent that dialled in, after its hello and our welcome. */
  async agent(): Promise<{ agent: AgentSocket; hello: Extract<AgentFrame, { type: "hello" }> }> {
    const look = async () => {
      while (this.agents.length <= this.#taken) await new Promise<void>((resolve) => this.#waiting.push(resolve));
      const agent = this.agents[this.#taken];
      this.#taken += 1;
      if (!agent) throw new Error("no agent");
      return agent;
    };
    const agent = await within(WAIT_MS, "an agent", look());
    const { frame: hello } = await agent.next("hello");
    return { agent, hello };
  }

  /** Resolves when there were that many dials. */
  async dialled(count: number): Promise<void> {
    const look = async () => {
      while (this.dials < count) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    };
    await within(WAIT_MS, `${count} dials`, look());
  }

  async stop(): Promise<void> {
    for (const client of this.#sockets.clients) client.terminate();
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
    });
  }

  #accept(socket: WebSocket, headers: Record<string, string | string[] | undefined>): void {
    const agent = new AgentSocket(socket, headers);
    this.agents.push(agent);
    const isSubprotocol = socket.protocol === SUBPROTOCOL;
    if (isSubprotocol && this.options.isSilent !== true) {
      // After hello, as a relay does: the first message is always one.
      socket.once("message", () => this.#welcome(agent));
    }
    this.#wake();
  }

  #welcome(agent: AgentSocket): void {
    this.#generation += 1;
    agent.send({
      type: "welcome",
      protocol: 1,
      generation: this.#generation,
      limits: { maxFrameBytes: this.options.maxFrameBytes ?? TUNNEL.maxFrameBytes, maxConcurrentCalls: TUNNEL.maxConcurrentCalls },
      maxResultBytes: this.options.maxResultBytes ?? CALL.maxResultBytes,
      serverTime: Date.now(),
      device: "test",
      mcpUrl: "http://relay.test/mcp/test",
      catalogue: this.options.catalogue ?? "send",
    });
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const wake of waiting) wake();
  }
}

/** A call frame with everything a relay fills in. */
export function callFrame(call: Partial<Call> & { method: string }): Call {
  return {
    type: "call",
    callId: newCallId(),
    timeoutMs: CALL.timeoutMs,
    credit: TUNNEL.initialCreditBytes,
    caller: { grant: "g1", label: "tests", member: "m1" },
    client: { era: "modern", protocol: "2026-07-28", capabilities: {} },
    ...call,
  };
}

/** A legacy client's facts. */
export function legacyClient(capabilities: Record<string, unknown> = {}): Call["client"] {
  return { era: "legacy", protocol: "2025-11-25", capabilities };
}
