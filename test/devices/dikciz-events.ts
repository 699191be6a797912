/** The phone's WebSocket for launcher events and commands: a protocol of its own beside MCP. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { WebSocketServer, type WebSocket } from "ws";
import { readObject, type Json } from "./json.ts";
import type { DikcizTools } from "./dikciz-tools.ts";

const MAX_CLIENTS = 4;
const MAX_FRAME_BYTES = 8 * 1024 * 1024;
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const PATH = "/v1/automation";

export interface DikcizEvents {
  url: string;
  /** Tells every client that said hello. */
  emit(event: string, fields: Json): void;
  stop(): Promise<void>;
}

/** Listens on a port of its own. `isAllowed` is asked at the handshake and again for every message. */
export async function startEvents(
  tools: DikcizTools,
  isAllowed: (authorization: string | undefined) => Promise<boolean>,
): Promise<DikcizEvents> {
  const server = createServer((_request, response) => response.writeHead(404, { connection: "close" }).end());
  const sockets = new WebSocketServer({ noServer: true, maxPayload: MAX_FRAME_BYTES, perMessageDeflate: false });
  const greeted = new Set<WebSocket>();
  let revision = 0;
  server.on("upgrade", (request, socket, head) => {
    const { authorization } = request.headers;
    void isAllowed(authorization).then((allowed) => {
      // A fifth client is closed without an answer.
      if (request.url !== PATH || !allowed || sockets.clients.size >= MAX_CLIENTS) return socket.destroy();
      return sockets.handleUpgrade(request, socket, head, (client) => serve(client, () => isAllowed(authorization)));
    });
  });

  function serve(client: WebSocket, mayGoOn: () => Promise<boolean>): void {
    const send = (message: Json): void => client.send(JSON.stringify(message));
    client.on("close", () => greeted.delete(client));
    client.on("error", () => client.terminate());
    client.on("message", (data: Buffer, isBinary) => {
      const message = isBinary ? undefined : readObject(data.toString("utf8"));
      if (message === undefined) client.close(1003);
      else void answer(message, mayGoOn).then(send);
    });

    async function answer(message: Json, mayGoOn: () => Promise<boolean>): Promise<Json> {
      const { requestId, type, ...fields } = message;
      const refused = (code: string): Json => ({ type: "error", requestId, code, message: code.replaceAll("_", " ") });
      if (!(await mayGoOn())) return refused("remote_auth_required");
      if (typeof requestId !== "string" || !UUID.test(requestId) || typeof type !== "string") return refused("validation_failed");
      if (type === "hello") return hello(requestId, fields);
      if (!greeted.has(client)) return refused("hello_required");
      const name = type.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
      if (!tools.has(name)) return refused("unknown_command");
      const outcome = await tools.run(name, fields, { line: () => undefined, signal: new AbortController().signal });
      return outcome.isError ? { type: "error", requestId, ...outcome.data } : { type: "result", requestId, ...outcome.data };
    }

    function hello(requestId: string, fields: Json): Json {
      const isKnown = fields["protocolVersion"] === 1 && Object.keys(fields).length === 1;
      if (!isKnown) return { type: "error", requestId, code: "protocol_mismatch", message: "protocol mismatch" };
      greeted.add(client);
      return { type: "result", requestId, revision, snapshot: { screen: "home", selectedPageId: "1H1V" } };
    }
  }

  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}${PATH}`,
    emit: (event, fields) => {
      revision += 1;
      for (const client of greeted) client.send(JSON.stringify({ type: "event", event, revision, fields }));
    },
    stop: () =>
      new Promise((resolve) => {
        for (const client of sockets.clients) client.terminate();
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
