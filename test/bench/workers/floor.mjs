// The floor: the least that this design can do on this runtime. A Worker passes the body to an object, the object to
// the agent over a hibernating WebSocket, and the answer back. No MCP, no authentication, no storage.
//
//   GET  /tunnel/DEVICE          the agent's WebSocket
//   POST /call/DEVICE/SIZE       one answer of SIZE bytes in one message
//   POST /events/DEVICE/COUNT    COUNT events and an answer, as SSE
//   POST /chunks/DEVICE/SIZE     SIZE bytes in binary messages
import { DurableObject } from "cloudflare:workers";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

export class Tunnel extends DurableObject {
  #waiting = new Map();
  #last = 0;
  #socket;

  async fetch() {
    const { 0: client, 1: server } = new WebSocketPair();
    this.ctx.acceptWebSocket(server);
    this.#socket = server;
    return new Response(null, { status: 101, webSocket: client });
  }

  call(kind, size, body) {
    this.#last += 1;
    const { promise, resolve } = Promise.withResolvers();
    this.#waiting.set(this.#last, { resolve, controller: null });
    this.#socket ??= this.ctx.getWebSockets()[0];
    this.#socket.send(`${this.#last} ${kind} ${size}\n${body}`);
    return promise;
  }

  // A message is `ID KIND\n` and a payload; the kind `end` is the last of its call.
  async webSocketMessage(_socket, message) {
    if (typeof message === "string") {
      const cut = message.indexOf("\n");
      this.#answer(message.slice(0, cut), message.slice(cut + 1), (payload) => encoder.encode(`data: ${payload}\n\n`));
    } else {
      const bytes = new Uint8Array(message);
      const cut = bytes.indexOf(10);
      this.#answer(decoder.decode(bytes.subarray(0, cut)), bytes.subarray(cut + 1), (payload) => payload);
    }
  }

  #answer(head, payload, encode) {
    const [id, kind] = head.split(" ");
    const waiting = this.#waiting.get(Number(id));
    if (waiting === undefined) return;
    const isLast = kind === "end";
    if (isLast) this.#waiting.delete(Number(id));
    if (waiting.controller !== null) {
      waiting.controller.enqueue(encode(payload));
      if (isLast) waiting.controller.close();
    } else if (isLast) {
      waiting.resolve({ first: payload, rest: null });
    } else {
      const rest = new ReadableStream({ type: "bytes", start: (controller) => void (waiting.controller = controller) });
      waiting.resolve({ first: payload, rest });
    }
  }
}

export default {
  async fetch(request, env, ctx) {
    const [, kind, device, size] = new URL(request.url).pathname.split("/");
    const stub = env.TUNNEL.getByName(device);
    if (kind === "tunnel") return stub.fetch(request);
    const { first, rest } = await stub.call(kind, Number(size), await request.text());
    if (rest === null) return new Response(first, { headers: { "content-type": "application/json" } });
    const { readable, writable } = new IdentityTransformStream();
    const pump = async () => {
      const writer = writable.getWriter();
      await writer.write(typeof first === "string" ? encoder.encode(`data: ${first}\n\n`) : first);
      writer.releaseLock();
      await rest.pipeTo(writable);
    };
    ctx.waitUntil(pump());
    return new Response(readable, { headers: { "content-type": kind === "events" ? "text/event-stream" : "application/json" } });
  },
};
