/** An agent's upgrade as the Worker hands it over, after it has verified the device key. Nothing of the agent's own request is in it. */
import { z } from "zod";
import { SUBPROTOCOL } from "../src/tunnel/frames.ts";
import type { Desk } from "./desk.ts";
import { planHello } from "./hello.ts";
import { acceptAgent, limitWaiting } from "./sockets.ts";

const FACTS_HEADER = "longline-facts";

/** What the Worker says of a device it has authenticated. */
const DeviceFacts = z.strictObject({ deviceId: z.string(), name: z.string(), mcpUrl: z.string() });
export type DeviceFacts = z.infer<typeof DeviceFacts>;

/** The device behind an upgrade, or the status that refuses the request. Exactly one path is known. */
export function readDialIn(request: Request): { facts: DeviceFacts } | { status: number } {
  if (new URL(request.url).pathname !== "/tunnel") return { status: 404 };
  if (request.headers.get("Upgrade")?.toLowerCase() !== "websocket") return { status: 426 };
  const facts = readFacts(request.headers.get(FACTS_HEADER));
  return facts === null ? { status: 400 } : { facts };
}

function readFacts(header: string | null): DeviceFacts | null {
  try {
    const parsed = DeviceFacts.safeParse(JSON.parse(header ?? "null"));
    return parsed.success ? parsed.data : null;
  } catch {
    return null; // Not JSON: the Worker made the header, so this is a bug there, answered with 400.
  }
}

/** Accepts the socket. It counts for nothing before its hello, and has a limited time for that. */
export function acceptDialIn(desk: Desk): Response {
  const { 0: client, 1: server } = new WebSocketPair();
  acceptAgent(desk.ctx, server, desk.now());
  limitWaiting(desk.ctx);
  planHello(desk);
  return new Response(null, { status: 101, webSocket: client, headers: { "Sec-WebSocket-Protocol": SUBPROTOCOL } });
}
