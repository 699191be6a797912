/** Sends requests to the edge as the route does, over a FakeTunnel, and reads what comes back. */
import { seal, unseal } from "../../src/auth/sealing.ts";
import type { Switches } from "../../src/mcp/classify.ts";
import type { EdgeContext } from "../../src/mcp/context.ts";
import { DeliveredIds } from "../../src/mcp/delivered.ts";
import { handleMcp, refuseEarly } from "../../src/mcp/edge.ts";
import { acceptsEventStream, readMcpHeaders } from "../../src/mcp/headers.ts";
import type { EdgeTunnel } from "../../src/mcp/tunnel-access.ts";
import type { ListenReply } from "../../src/mcp/listen-socket.ts";
import type { ListenFacts } from "../../src/tunnel/notices.ts";
import { FakeTunnel } from "./fake-tunnel.ts";

const ROOT_KEY = "A".repeat(43);
export const MODERN = "2026-07-28";
export const BOTH = "application/json, text/event-stream";
const META = "io.modelcontextprotocol";

/** `_meta` of a modern request. */
export function modernMeta(more: Record<string, unknown> = {}): Record<string, unknown> {
  return { [`${META}/protocolVersion`]: MODERN, [`${META}/clientCapabilities`]: {}, ...more };
}

/** A complete modern request: body and headers. */
export function modern(
  method: string,
  params: Record<string, unknown> = {},
  id: unknown = "a7",
): { body: Record<string, unknown>; headers: Record<string, string> } {
  const { _meta, ...rest } = params;
  const name = rest["name"] ?? rest["uri"];
  return {
    body: { jsonrpc: "2.0", id, method, params: { ...rest, _meta: modernMeta(_meta as Record<string, unknown> | undefined) } },
    headers: {
      "mcp-protocol-version": MODERN,
      "mcp-method": method,
      ...(typeof name === "string" ? { "mcp-name": name } : {}),
    },
  };
}

export interface Sent {
  body?: unknown;
  /** Body as text, sent as it is. */
  text?: string | Uint8Array;
  headers?: Record<string, string>;
  method?: string;
  signal?: AbortSignal;
}

export interface Read {
  status: number;
  headers: Headers;
  text: string;
  /** The JSON body, or the events' JSON. */
  json: unknown;
  events: unknown[];
  comments: number;
}

export class EdgeHarness {
  readonly tunnel: FakeTunnel;
  /** Stubs handed out when the edge asks for a fresh one. */
  fresh: EdgeTunnel;
  grant = "g1";
  deviceId = "d1";
  switches: Switches = {};
  readonly delivered = new DeliveredIds();
  isBorn = true;
  keepAliveMs = 60_000;
  now = 1_000_000;
  /** Waits of the edge's own: over at once unless a test holds them. */
  pause: () => Promise<void> = async () => undefined;
  /** Opens listeners; a test says how. */
  listen: (facts: ListenFacts) => Promise<ListenReply> = () => Promise.reject(new Error("nobody listens in this test"));
  readonly reported: unknown[] = [];
  readonly #background: Promise<unknown>[] = [];

  constructor(tunnel: FakeTunnel = new FakeTunnel()) {
    this.tunnel = tunnel;
    this.fresh = tunnel;
  }

  /** One HTTP request, answered by the edge. */
  async send({ body, text, headers = {}, method = "POST", signal }: Sent): Promise<Response> {
    const content = text ?? (body === undefined ? undefined : JSON.stringify(body));
    const request = new Request("https://relay.test/mcp/pi", {
      method,
      headers: { accept: BOTH, ...(content === undefined ? {} : { "content-type": "application/json" }), ...headers },
      ...(content === undefined ? {} : { body: content }),
      ...(signal === undefined ? {} : { signal }),
    });
    const mcp = readMcpHeaders(request.headers);
    return refuseEarly(request, mcp) ?? handleMcp(this.#context(request));
  }

  /** Sends and reads to the end. */
  async exchange(sent: Sent): Promise<Read> {
    return read(await this.send(sent));
  }

  /** Waits for everything the edge left running. */
  async settled(): Promise<void> {
    await Promise.all(this.#background);
  }

  #context(request: Request): EdgeContext {
    return {
      request,
      headers: readMcpHeaders(request.headers),
      grant: this.grant,
      deviceId: this.deviceId,
      access: {
        tunnel: this.tunnel,
        fresh: async () => this.fresh,
        listen: (facts) => this.listen(facts),
        pause: () => this.pause(),
        report: (error) => this.reported.push(error),
      },
      isBorn: this.isBorn,
      canStream: acceptsEventStream(request.headers.get("accept")),
      keepAliveMs: this.keepAliveMs,
      switches: this.switches,
      delivered: this.delivered,
      waitUntil: (work) => this.#background.push(work),
      seal: (text) => seal(ROOT_KEY, "request-state", this.deviceId, text),
      unseal: (sealed) => unseal(ROOT_KEY, "request-state", this.deviceId, sealed),
      unauthorised: () => new Response("{}", { status: 401, headers: { "www-authenticate": "Bearer" } }),
      insufficientScope: (scopes, body) =>
        new Response(body, { status: 403, headers: { "www-authenticate": `Bearer scope="${scopes.join(" ")}"` } }),
      now: () => this.now,
    };
  }
}

/** Reads a response to its end. */
export async function read(response: Response): Promise<Read> {
  const text = await response.text();
  const isStream = response.headers.get("content-type") === "text/event-stream";
  const blocks = isStream ? text.split("\n\n").filter((block) => block !== "") : [];
  const events = blocks.filter((block) => block.startsWith("data: ")).map((block) => parsed(block.slice("data: ".length)));
  return {
    status: response.status,
    headers: response.headers,
    text,
    json: isStream ? undefined : parsed(text),
    events,
    comments: blocks.filter((block) => block.startsWith(":")).length,
  };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
