/** A loopback TCP proxy that can delay, freeze, throttle and cut the connections it carries. */
import net from "node:net";

export interface TcpProxy {
  port: number;
  /** Added to every byte, each way, from now on; ms. */
  delayMs: number;
  /** While true, bytes are held back both ways, and no connection ends. */
  frozen: boolean;
  /** Bytes that each direction of a connection carries per second; Infinity for no limit. */
  bytesPerSecond: number;
  /** Ends every connection at once, as a lost link does. */
  cut(): void;
  connections(): number;
  close(): Promise<void>;
}

/** Bytes a direction holds before its source has to wait, so that a slow reader is felt at the other end. */
const HELD_BYTES = 256 * 1024;
/** ms between two looks of a direction that waits for room, rate or the end of a freeze. */
const LOOK_MS = 20;

/** Below the ports that systems give to outgoing connections, any of which could take a port between two looks. */
const QUIET_PORTS = { from: 20_000, count: 12_000 };

/** A loopback port that nobody listens on at the moment, and that no outgoing connection takes. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = QUIET_PORTS.from + Math.floor(Math.random() * QUIET_PORTS.count);
    const server = net.createServer();
    const isFree = await new Promise<boolean>((resolve) => {
      server.once("error", () => resolve(false));
      server.listen(port, "127.0.0.1", () => resolve(true));
    });
    if (!isFree) continue;
    await new Promise((resolve) => server.close(resolve));
    return port;
  }
}

/** Starts a proxy on a free loopback port towards another loopback port. */
export async function startTcpProxy(targetPort: number, delayMs = 0): Promise<TcpProxy> {
  const pairs = new Set<[net.Socket, net.Socket]>();
  const proxy: TcpProxy = {
    port: 0,
    delayMs,
    frozen: false,
    bytesPerSecond: Infinity,
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

/** Moves bytes in order; each leaves `delayMs` after it came at the earliest, as fast as the rate and the reader allow. */
function carry(proxy: TcpProxy, from: net.Socket, to: net.Socket): void {
  const queue: { at: number; bytes: Buffer | null }[] = [];
  let held = 0;
  /** Bytes that may leave now, when there is a rate. */
  let allowance = 0;
  let filledAt = Date.now();
  let timer: NodeJS.Timeout | undefined;

  const fill = (now: number): void => {
    const rate = proxy.bytesPerSecond;
    // At most what two looks bring, so that a pause does not become a burst.
    allowance =
      rate === Infinity
        ? Infinity
        : Math.min(Math.max(1, (rate * LOOK_MS * 2) / 1000), (allowance === Infinity ? 0 : allowance) + (rate * (now - filledAt)) / 1000);
    filledAt = now;
  };
  const pump = (): void => {
    timer = undefined;
    fill(Date.now());
    while (queue[0] && !proxy.frozen && queue[0].at <= Date.now() && !to.destroyed) {
      const { at, bytes } = queue[0];
      if (bytes === null) {
        queue.shift();
        to.end();
        continue;
      }
      if (to.writableNeedDrain || allowance < 1) break;
      queue.shift();
      const now = allowance < bytes.length ? bytes.subarray(0, Math.floor(allowance)) : bytes;
      if (now.length < bytes.length) queue.unshift({ at, bytes: bytes.subarray(now.length) });
      allowance -= now.length;
      held -= now.length;
      to.write(now);
    }
    if (held < HELD_BYTES && from.isPaused()) from.resume();
    if (!queue[0] || to.destroyed) return;
    const wait = queue[0].at - Date.now();
    timer = setTimeout(pump, proxy.frozen || wait <= 0 ? LOOK_MS : wait);
  };
  const push = (bytes: Buffer | null): void => {
    queue.push({ at: Date.now() + proxy.delayMs, bytes });
    held += bytes?.length ?? 0;
    if (held >= HELD_BYTES) from.pause();
    if (!timer) pump();
  };
  to.on("drain", () => {
    clearTimeout(timer);
    pump();
  });
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
