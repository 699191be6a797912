/**
 * The way from a caller who wants to listen to the device's object: an upgrade made here, with facts made here. Nothing
 * the client sent passes.
 */
import type { Refusal } from "../../durable/rpc.ts";
import { type Env, tunnelOf } from "../env.ts";
import type { ListenReply, ListenSocket } from "../mcp/listen-socket.ts";
import { asciiJson, LISTEN_HEADER, LISTEN_PATH, type ListenFacts } from "../tunnel/notices.ts";

/** Code of a connection that broke (RFC 6455 §7.4.1). */
const LOST = 1006;

/** Opens a listener's socket at a device's object. Rejects when the object is lost. */
export async function listenAt(env: Env, deviceId: string, facts: ListenFacts): Promise<ListenReply> {
  const headers = { Upgrade: "websocket", [LISTEN_HEADER]: asciiJson(facts) };
  const response = await tunnelOf(env, deviceId).fetch(new Request(`https://object${LISTEN_PATH}`, { headers }));
  if (response.webSocket !== null) return { ok: true, socket: listenSocket(response.webSocket) };
  if (response.status !== 200) throw new Error(`the object refused a listener with ${response.status}`);
  // What the object says there is a refusal, by its own type.
  return { ok: false, refusal: (await response.json<{ refusal: Refusal }>()).refusal };
}

function listenSocket(socket: WebSocket): ListenSocket {
  const close = (): void => {
    try {
      socket.close(1000);
    } catch {
      // Closed already, which is what was wanted.
    }
  };
  return {
    take: (onMessage, onClose) => {
      socket.addEventListener("message", ({ data }) => onMessage(data));
      socket.addEventListener("close", ({ code }) => {
        close(); // Both sides have to close.
        onClose(code);
      });
      // An error is followed by a close, or is one.
      socket.addEventListener("error", () => onClose(LOST));
      socket.accept();
    },
    close,
  };
}
