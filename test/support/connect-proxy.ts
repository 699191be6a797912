/** An HTTP proxy on loopback that knows CONNECT only, and where the names it is asked for really are. */
import { createServer } from "node:http";
import { connect, type AddressInfo, type Socket } from "node:net";

export interface ConnectProxy {
  /** Host and port. */
  host: string;
  /** Targets that were asked for, such as `relay.test:443`. */
  asked: string[];
  stop(): Promise<void>;
}

/** Starts a proxy. `ports` says which loopback port a target stands for; `credentials` (`name:password`) are demanded when given. */
export async function startConnectProxy(ports: ReadonlyMap<string, number>, credentials?: string): Promise<ConnectProxy> {
  const asked: string[] = [];
  const open = new Set<Socket>();
  const server = createServer((_request, response) => response.writeHead(405).end());
  server.on("connect", (request, client: Socket) => {
    const target = request.url ?? "";
    asked.push(target);
    client.on("error", () => undefined);
    const given = Buffer.from((request.headers["proxy-authorization"] ?? "").replace("Basic ", ""), "base64").toString();
    const port = ports.get(target);
    const refusal = credentials !== undefined && given !== credentials ? 407 : port === undefined ? 403 : undefined;
    if (refusal !== undefined || port === undefined) {
      client.end(`HTTP/1.1 ${refusal ?? 403} No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`);
      return;
    }
    const onward = connect(port, "127.0.0.1", () => {
      client.write("HTTP/1.1 200 OK\r\n\r\n");
      client.pipe(onward).pipe(client);
    });
    for (const socket of [client, onward]) {
      open.add(socket);
      socket.on("close", () => open.delete(socket));
    }
    onward.on("error", () => client.destroy());
    client.on("close", () => onward.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of open) socket.destroy();
        server.closeAllConnections();
      }),
  };
}
