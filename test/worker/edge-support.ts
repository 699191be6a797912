/** A scripted agent on a real tunnel socket, for tests of the edge over the real object. */
import { exports } from "cloudflare:workers";
import { decodeRelayMessage, encode, payloadText } from "../../src/tunnel/codec.ts";
import type { AgentFrame, Call, RelayFrame } from "../../src/tunnel/frames.ts";

const ORIGIN = "https://relay.test";
export const VERSION = "2026-07-28";

export interface Received {
  frame: RelayFrame;
  payload: string;
}

const CATALOGUE = {
  discover: { capabilities: { tools: {}, logging: {} }, serverInfo: { name: "kitchen-pi", version: "4.2.0" } },
  tools: [
    { name: "echo", inputSchema: { type: "object", properties: { room: { type: "string", "x-mcp-header": "Room" } } } },
    { name: "other", inputSchema: { type: "object" } },
  ],
  resources: [],
  resourceTemplates: [],
  prompts: [],
};

/** One agent: says hello, hands over its catalogue, answers calls by `onCall`. */
export class ScriptedAgent {
  readonly received: Received[] = [];
  onCall: (call: Call, payload: string) => void = (call) => this.result(call.callId, { content: [{ type: "text", text: "ok" }] });
  readonly #socket: WebSocket;
  readonly #watchers = new Set<() => void>();

  constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.accept();
    socket.addEventListener("message", ({ data }) => this.#take(data as string | ArrayBuffer));
    this.send({
      type: "hello",
      protocol: { min: 1, max: 1 },
      agent: { name: "scripted", version: "0" },
      installation: "i1",
      instance: crypto.randomUUID(),
      limits: { maxFrameBytes: 262_144, maxConcurrentCalls: 8 },
      catalogue: "digest-1",
      held: [],
      asks: [],
      upstreams: [],
    });
  }

  send(frame: AgentFrame, payload?: string | Uint8Array): void {
    this.#socket.send(encode(frame, payload));
  }

  result(callId: string, payload: unknown, more: Record<string, unknown> = {}): void {
    this.send({ type: "result", callId, seq: 50, protocol: VERSION, ...more }, JSON.stringify(payload));
  }

  close(): void {
    this.#socket.close(1000);
  }

  /** The first message that satisfies `is`, now or within five seconds. */
  async until(is: (message: Received) => boolean): Promise<Received> {
    const limit = AbortSignal.timeout(5_000);
    for (;;) {
      const found = this.received.find(is);
      if (found !== undefined) return found;
      limit.throwIfAborted();
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          this.#watchers.delete(wake);
          resolve();
        };
        this.#watchers.add(wake);
        limit.addEventListener("abort", wake, { once: true });
      });
    }
  }

  #take(data: string | ArrayBuffer): void {
    const decoded = decodeRelayMessage(typeof data === "string" ? data : new Uint8Array(data));
    if (!decoded.ok || decoded.frame === null) return;
    const message = { frame: decoded.frame, payload: payloadText(decoded.payload) };
    if (message.frame.type === "welcome" && message.frame.catalogue === "send") {
      this.send({ type: "catalogue", digest: "digest-1" }, JSON.stringify(CATALOGUE));
    }
    if (message.frame.type === "probe") this.send({ type: "pong", probeId: message.frame.probeId, upstreams: [] });
    if (message.frame.type === "call") {
      if (message.frame.method.endsWith("/list")) {
        const [kind] = message.frame.method.split("/");
        this.result(message.frame.callId, { [kind ?? ""]: CATALOGUE[kind as "tools"] });
      } else this.onCall(message.frame, message.payload);
    }
    this.received.push(message);
    for (const watcher of this.#watchers) watcher();
  }
}

/** Connects an agent with its device key. */
export async function connect(deviceKey: string): Promise<ScriptedAgent> {
  const response = await exports.default.fetch(`${ORIGIN}/tunnel`, {
    headers: { Upgrade: "websocket", "Sec-WebSocket-Protocol": "longline.v1", Authorization: `Bearer ${deviceKey}` },
  });
  if (response.webSocket === null) throw new Error(`dialling in gave ${response.status}`);
  const agent = new ScriptedAgent(response.webSocket);
  await agent.until(({ frame }) => frame.type === "welcome");
  return agent;
}

/** One caller of one device. */
export class Caller {
  readonly #url: string;
  readonly #token: string;

  constructor(mcpUrl: string, token: string) {
    this.#url = mcpUrl;
    this.#token = token;
  }

  send(body: unknown, headers: Record<string, string> = {}, init: RequestInit = {}): Promise<Response> {
    return exports.default.fetch(this.#url, {
      method: "POST",
      headers: {
        authorization: `Bearer ${this.#token}`,
        accept: "application/json, text/event-stream",
        "content-type": "application/json",
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
      ...init,
    });
  }

  /** A modern request. */
  modern(method: string, params: Record<string, unknown> = {}, headers: Record<string, string> = {}, id: unknown = 1): Promise<Response> {
    const { meta = {}, ...rest } = params;
    const name = rest["name"] ?? rest["uri"];
    const envelope = { "io.modelcontextprotocol/protocolVersion": VERSION, "io.modelcontextprotocol/clientCapabilities": {} };
    return this.send(
      { jsonrpc: "2.0", id, method, params: { ...rest, _meta: { ...envelope, ...(meta as object) } } },
      { "mcp-protocol-version": VERSION, "mcp-method": method, ...(typeof name === "string" ? { "mcp-name": name } : {}), ...headers },
    );
  }

  /** A legacy request in a session. */
  legacy(session: string, method: string, params: Record<string, unknown> = {}, id: unknown = 1): Promise<Response> {
    return this.send({ jsonrpc: "2.0", id, method, params }, { "mcp-session-id": session });
  }

  /** Opens a session and gives its id. */
  async open(version: string, capabilities: Record<string, unknown> = {}): Promise<string> {
    const params = { protocolVersion: version, capabilities, clientInfo: { name: "old", version: "1" } };
    const response = await this.send({ jsonrpc: "2.0", id: 0, method: "initialize", params });
    await response.body?.cancel();
    return response.headers.get("mcp-session-id") ?? "";
  }
}

/** The JSON of all events of a stream. */
export async function eventsOf(response: Response): Promise<unknown[]> {
  const blocks = (await response.text()).split("\n\n");
  return blocks.filter((block) => block.startsWith("data: ")).map((block) => JSON.parse(block.slice("data: ".length)) as unknown);
}
