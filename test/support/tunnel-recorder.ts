/** A place for an agent to dial that passes every message of the tunnel on to a relay, both ways, and keeps a copy. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { WebSocket, WebSocketServer } from "ws";

export interface TunnelRecorder {
  /** Where the agent dials. */
  url: string;
  /** Everything that was said, one message a line. */
  frames(): string;
  stop(): Promise<void>;
}

/** Records the tunnels to the relay at `relayUrl`. */
export async function recordTunnel(relayUrl: string): Promise<TunnelRecorder> {
  const said: string[] = [];
  const open = new Set<WebSocket>();
  const http = createServer();
  const server = new WebSocketServer({ server: http, handleProtocols: ([first]) => first ?? false });
  server.on("connection", (agent, request) => {
    const relay = new WebSocket(new URL("/tunnel", relayUrl), agent.protocol, {
      headers: { authorization: request.headers.authorization ?? "" },
    });
    const early: [Buffer, boolean][] = [];
    relay.on("open", () => {
      for (const [data, binary] of early.splice(0)) relay.send(data, { binary });
    });
    agent.on("message", (data: Buffer, binary) => {
      said.push(data.toString("utf8"));
      if (relay.readyState === relay.OPEN) relay.send(data, { binary });
      else early.push([data, binary]);
    });
    relay.on("message", (data: Buffer, binary) => {
      said.push(data.toString("utf8"));
      agent.send(data, { binary });
    });
    for (const [one, other] of [
      [agent, relay],
      [relay, agent],
    ] as const) {
      open.add(one);
      one.on("error", () => other.terminate());
      one.on("close", () => {
        open.delete(one);
        other.close();
      });
    }
  });
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}`,
    frames: () => said.join("\n"),
    stop: async () => {
      for (const socket of open) socket.terminate();
      server.close();
      await new Promise((resolve) => http.close(resolve));
    },
  };
}
