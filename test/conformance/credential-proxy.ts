/**
 * A loopback HTTP proxy in front of a relay, for clients that cannot send a token: it adds the Authorization header and
 * maps /mcp to one device's path. Its own Host and Origin become the relay's; a foreign one passes unchanged, so that the
 * relay's own checks decide.
 */
import http from "node:http";
import type { AddressInfo } from "node:net";

export interface CredentialProxy {
  /** MCP URL for the client, on `localhost`. */
  url: string;
  close(): Promise<void>;
}

/** Starts the proxy for one device's MCP URL and token, on a free loopback port. */
export async function startCredentialProxy(mcpUrl: string, token: string): Promise<CredentialProxy> {
  const target = new URL(mcpUrl);
  const server = http.createServer((request, response) => {
    const own = new Set([`localhost:${port}`, `127.0.0.1:${port}`]);
    const headers = { ...request.headers, authorization: `Bearer ${token}` };
    if (own.has(headers.host ?? "")) headers.host = target.host;
    if (headers.origin && own.has(headers.origin.replace(/^http:\/\//, ""))) headers.origin = target.origin;
    const path = (request.url ?? "/").replace(/^\/mcp(?=$|[/?])/, target.pathname);
    const upstream = http.request(
      { host: target.hostname, port: target.port, path, method: request.method, headers, agent: false },
      (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(response);
        answer.on("error", () => response.destroy());
      },
    );
    upstream.on("error", () => (response.headersSent ? response.destroy() : response.writeHead(502).end()));
    response.on("close", () => upstream.destroy());
    request.pipe(upstream);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://localhost:${port}/mcp`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
