/** A loopback TCP proxy that can delay, freeze and cut the connections it carries. */
import net from "node:net";

export interface TcpProxy {
  port: number;
  /** Added to every byte, each way, from now on; ms. */
  delayMs: number;
  /** While true, bytes are held back both ways, and no connection ends. */
  frozen: boolean;
  /** Ends every connection at once, as a lost link does. */
  cut(): void;
  connections(): number;
  close(): Promise<void>;
}

/** A loopback port nobody listens on at the moment. */
export async function freePort(): Promise<number> {
  const server = net.createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as net.AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Starts a proxy on a free loopback port towards another loopback port. */
export async function startTcpProxy(targetPort: number, delayMs = 0): Promise<TcpProxy> {
  const pairs = new Set<[net.Socket, net.Socket]>();
  const proxy: TcpProxy = {
    port: 0,
    delayMs,
    frozen: false,
    cut() {
      for (const [a, b] of pairs) {
        a.resetAndDestroy();
        b.resetAndDestroy();
      }
    },
    connections: () => pairs.size,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        proxy.frozen = false;
        for (const [a, b] of pairs) {
          a.destroy();
          b.destroy();
        }
      }),
  };
  const server = net.createServer({ noDelay: true }, (client) => {
    const target = net.connect({ host: "127.0.0.1", port: targetPort, noDelay: true });
    const pair: [net.Socket, net.Socket] = [client, target];
    pairs.add(pair);
    carry(proxy, client, target);
    carry(proxy, target, client);
    for (const socket of pair) socket.on("close", () => pairs.delete(pair));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  proxy.port = (server.address() as net.AddressInfo).port;
  return proxy;
}

/** Moves bytes in order; each leaves `delayMs` after it came, and none while the proxy is frozen. */
function carry(proxy: TcpProxy, from: net.Socket, to: net.Socket): void {
  const queue: { at: number; bytes: Buffer | null }[] = [];
  let timer: NodeJS.Timeout | undefined;
  const pump = (): void => {
    timer = undefined;
    while (queue[0] && !proxy.frozen && queue[0].at <= Date.now()) {
      const { bytes } = queue.shift() ?? { bytes: null };
      if (to.destroyed) return;
      if (bytes === null) to.end();
      else to.write(bytes);
    }
    if (queue[0]) timer = setTimeout(pump, proxy.frozen ? 20 : Math.max(1, queue[0].at - Date.now()));
  };
  const push = (bytes: Buffer | null): void => {
    queue.push({ at: Date.now() + proxy.delayMs, bytes });
    if (!timer) pump();
  };
  from.on("data", push);
  from.on("end", () => push(null));
  from.on("error", () => to.destroy());
  from.on("close", (hadError) => {
    if (hadError) to.destroy();
  });
  to.on("close", () => {
    clearTimeout(timer);
    from.destroy();
  });
}
