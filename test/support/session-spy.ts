/** A reverse proxy in front of a relay that notes the session ids the relay hands out: what a client behind stdio never shows. */
import { createServer, request as httpRequest } from "node:http";
import type { AddressInfo } from "node:net";

export interface SessionSpy {
  url: string;
  /** Session ids of the relay's answers, each once, in order. */
  sessions: string[];
  /** Says where the relay listens. */
  target(url: string): void;
  stop(): Promise<void>;
}

/** Starts the proxy on a free loopback port. */
export async function startSessionSpy(): Promise<SessionSpy> {
  let target = new URL("http://127.0.0.1:1");
  const sessions: string[] = [];
  const server = createServer((request, response) => {
    const { method, headers, url } = request;
    const onward = httpRequest({ host: target.hostname, port: target.port, method, headers, path: url }, (answer) => {
      const id = answer.headers["mcp-session-id"];
      if (typeof id === "string" && !sessions.includes(id)) sessions.push(id);
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    // It knows nothing of WebSockets.
    onward.on("upgrade", (_answer, socket) => {
      socket.destroy();
      response.writeHead(502).end();
    });
    onward.on("error", () => response.destroy());
    response.on("close", () => onward.destroy());
    request.pipe(onward);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    sessions,
    target: (url) => void (target = new URL(url)),
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
