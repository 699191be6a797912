/** An agent's socket as a test plays it: frames in and out, one wait at a time, each with a deadline. */
import { env } from "cloudflare:workers";
import type { CallRequest, DeviceTunnelRpc } from "../../../durable/rpc.ts";
import type { Grant } from "../../../src/policy/grant.ts";
import { type AgentFrame, CATALOGUE_STREAM, newCallId, type RelayFrame } from "../../../src/tunnel/frames.ts";
import { decodeRelayMessage, encode, payloadText } from "../../../src/tunnel/codec.ts";
import { within } from "../../support/deadline.ts";

/** The object's RPC surface as the Worker sees it, and the handle that the tests' tools want. */
export type Stub = DeviceTunnelRpc & DurableObjectStub;
type Frame<T extends RelayFrame["type"]> = Extract<RelayFrame, { type: T }>;
type Hello = Extract<AgentFrame, { type: "hello" }>;
interface Received {
  frame: RelayFrame;
  payload: string | Uint8Array | undefined;
}

/** ms a test waits for something that has to happen. */
export const SOON_MS = 4_000;

/** A fresh device object, not yet dialled into. */
export function newDevice(): { deviceId: string; stub: Stub } {
  const deviceId = crypto.randomUUID();
  return { deviceId, stub: stubOf(deviceId) };
}

/** A stub that has seen no failure. */
export function stubOf(deviceId: string): Stub {
  // SAFETY: a stub of DeviceTunnel; the platform's own type of it loses the methods' results.
  return env.TUNNEL.getByName(deviceId) as unknown as Stub;
}

/** The upgrade that the Worker makes after it has checked a device key. */
export function dialRequest(deviceId: string, name = "pi"): Request {
  const facts = { deviceId, name, mcpUrl: `https://relay.test/mcp/${name}` };
  return new Request("https://object/tunnel", {
    headers: { Upgrade: "websocket", "Sec-WebSocket-Protocol": "longline.v1", "longline-facts": JSON.stringify(facts) },
  });
}

export class FakeAgent {
  readonly socket: WebSocket;
  readonly closed: Promise<{ code: number; reason: string }>;
  #received: Received[] = [];
  #waiting: (() => void) | undefined;
  #texts: string[] = [];
  #isGreeted = false;
  /** Answers to `settled` that came. */
  #credits = 0;

  constructor(socket: WebSocket) {
    this.socket = socket;
    const closed = Promise.withResolvers<{ code: number; reason: string }>();
    this.closed = closed.promise;
    socket.addEventListener("message", (event) => this.#onMessage(event.data));
    socket.addEventListener("close", (event) => closed.resolve({ code: event.code, reason: event.reason }));
    socket.binaryType = "arraybuffer";
    socket.accept();
  }

  /** Opens a socket to the object. */
  static async dial(deviceId: string): Promise<FakeAgent> {
    const response = await stubOf(deviceId).fetch(dialRequest(deviceId));
    if (response.webSocket === null) throw new Error(`no socket: ${response.status}`);
    return new FakeAgent(response.webSocket);
  }

  /** Opens a socket and says hello; resolves with the agent once it was welcomed. */
  static async connect(deviceId: string, hello: Partial<Hello> = {}): Promise<{ agent: FakeAgent; welcome: Frame<"welcome"> }> {
    const agent = await FakeAgent.dial(deviceId);
    agent.hello(hello);
    return { agent, welcome: (await agent.next("welcome")).frame };
  }

  hello(hello: Partial<Hello> = {}): void {
    this.#isGreeted = true;
    this.send({
      type: "hello",
      protocol: { min: 1, max: 1 },
      agent: { name: "longline", version: "0.1.0" },
      installation: "machine-1",
      instance: "run-1",
      limits: { maxFrameBytes: 262_144, maxConcurrentCalls: 64 },
      catalogue: null,
      held: [],
      asks: [],
      upstreams: [],
      ...hello,
    });
  }

  send(frame: AgentFrame, payload?: string | Uint8Array): void {
    this.socket.send(encode(frame, payload));
  }

  /** The next frame of a type; frames of other types before it stay for later. */
  async next<T extends RelayFrame["type"]>(type: T): Promise<{ frame: Frame<T>; payload: string; bytes: Uint8Array }> {
    const found = await within(SOON_MS, `a ${type} frame`, this.#wait(type));
    const bytes = typeof found.payload === "string" ? new TextEncoder().encode(found.payload) : (found.payload ?? new Uint8Array());
    // SAFETY: found by its type.
    return { frame: found.frame as Frame<T>, payload: typeof found.payload === "string" ? found.payload : "", bytes };
  }

  /** Frames of a type that came and were not taken. */
  seen(type: RelayFrame["type"]): RelayFrame[] {
    return this.#received.filter((received) => received.frame.type === type).map((received) => received.frame);
  }

  /**
   * The object has taken everything this agent sent, and what it sent before that has arrived. The announcement of a
   * catalogue is the one frame that the object answers at once; the text `ping` is answered by the platform.
   */
  async settled(): Promise<void> {
    if (!this.#isGreeted) return this.isAlive();
    this.send({ type: "catalogue", digest: "settled", bytes: 1 });
    await within(
      SOON_MS,
      "an answer of the object",
      this.#until(() => this.#credits > 0),
    );
    this.#credits -= 1;
  }

  /** The socket is open: the platform answers for it. */
  async isAlive(): Promise<void> {
    this.socket.send("ping");
    await within(
      SOON_MS,
      "a pong text",
      this.#until(() => this.#texts.length > 0),
    );
    this.#texts = [];
  }

  /** Answers the next probe. */
  async answerProbe(): Promise<void> {
    const { frame } = await this.next("probe");
    this.send({ type: "pong", probeId: frame.probeId, upstreams: [] });
  }

  /** Answers a call with a result in one message. */
  answer(callId: string, payload = `{"content":[]}`, seq = 1): void {
    this.send({ type: "result", callId, seq, protocol: "2026-07-28", resultType: "complete" }, payload);
  }

  async #wait(type: RelayFrame["type"]): Promise<Received> {
    await this.#until(() => this.#received.some((received) => received.frame.type === type));
    const at = this.#received.findIndex((received) => received.frame.type === type);
    const [found] = this.#received.splice(at, 1);
    if (found === undefined) throw new Error("taken by somebody else");
    return found;
  }

  async #until(isThere: () => boolean): Promise<void> {
    while (!isThere()) {
      await new Promise<void>((resolve) => {
        this.#waiting = resolve;
      });
    }
  }

  #onMessage(data: unknown): void {
    if (typeof data === "string" && !data.startsWith("{")) this.#texts.push(data);
    else {
      const decoded = decodeRelayMessage(typeof data === "string" ? data : new Uint8Array(data as ArrayBuffer));
      if (!decoded.ok) throw new Error(`relay sent a bad frame: ${decoded.problem}`);
      if (decoded.frame?.type === "credit" && decoded.frame.stream === CATALOGUE_STREAM && decoded.frame.bytes === 1) this.#credits += 1;
      else if (decoded.frame !== null) this.#received.push({ frame: decoded.frame, payload: decoded.payload });
    }
    this.#waiting?.();
  }
}

/** A full grant that is good for an hour. */
export function grantOf(change: Partial<Grant> = {}): Grant {
  return {
    id: `g_${crypto.randomUUID()}`,
    label: "Ada's laptop",
    member: "m_1",
    rights: {},
    caps: { callsPerMinute: null, inFlight: 8, parked: 4, listeners: 16 },
    expiresAt: Date.now() + 3_600_000,
    pausedAt: null,
    revokedAt: null,
    revision: 1,
    ...change,
  };
}

/** A call of a modern client. */
export function requestOf(grant: string, change: Partial<CallRequest> = {}): CallRequest {
  return {
    callId: newCallId(),
    grant,
    method: "tools/call",
    target: "lamp",
    client: { era: "modern", protocol: "2026-07-28", capabilities: {} },
    payload: `{"arguments":{}}`,
    canStream: true,
    ...change,
  };
}

/** A message as header and payload. */
export function read(message: string | Uint8Array): { frame: Record<string, unknown>; payload: string } {
  const text = typeof message === "string" ? message : payloadText(message);
  const end = text.indexOf("\n");
  return { frame: JSON.parse(end < 0 ? text : text.slice(0, end)) as Record<string, unknown>, payload: end < 0 ? "" : text.slice(end + 1) };
}
