/** Closed loops: each connection sends its next request when it has the answer to the last one. */
import { setTimeout as sleep } from "node:timers/promises";
import { Connection, type Exchange, type Target } from "./http-connection.ts";
import { quantile } from "./statistics.ts";

/** What a loop measured. Times in ms. */
export interface LoopResult {
  calls: number;
  perSecond: number;
  bytesPerSecond: number;
  p50: number;
  p99: number;
}

/** How long a loop runs, and what its answers look like. */
export interface LoopOptions {
  connections: number;
  durationMs: number;
  /** Stops a connection after so many calls, whatever time is left. */
  maxCalls?: number;
  /** Bytes of each answer's body: anything else is an error, which ends the run. */
  expectBytes?: number;
}

/** Fails unless an exchange is the answer that was asked for. */
export function mustSucceed(exchange: Exchange, expectBytes?: number): Exchange {
  const isError = exchange.status !== 200 || exchange.head.includes('"error":{') || exchange.head.includes('"isError":true');
  if (isError || (expectBytes !== undefined && exchange.bytes !== expectBytes)) {
    throw new Error(`a call failed: HTTP ${exchange.status}, ${exchange.bytes} bytes: ${exchange.head.slice(0, 300)}`);
  }
  return exchange;
}

/** One call on a connection of its own. */
export async function callOnce(target: Target, onBody?: (bytes: Buffer) => void): Promise<Exchange> {
  const connection = await Connection.open(target.port);
  try {
    return mustSucceed(await connection.exchange(target.request, onBody));
  } finally {
    connection.close();
  }
}

/** Runs one closed loop. */
export async function closedLoop(target: Target, options: LoopOptions): Promise<LoopResult> {
  const connections = await Promise.all(Array.from({ length: options.connections }, () => Connection.open(target.port)));
  const times: number[] = [];
  let bytes = 0;
  const startedAt = performance.now();
  const until = startedAt + options.durationMs;
  const run = async (connection: Connection): Promise<void> => {
    for (let call = 0; call < (options.maxCalls ?? Infinity) && (call === 0 || performance.now() < until); call += 1) {
      const from = performance.now();
      const exchange = mustSucceed(await connection.exchange(target.request), options.expectBytes);
      times.push(performance.now() - from);
      bytes += exchange.bytes;
    }
  };
  try {
    await Promise.all(connections.map(run));
  } finally {
    for (const connection of connections) connection.close();
  }
  const seconds = (performance.now() - startedAt) / 1000;
  times.sort((a, b) => a - b);
  return {
    calls: times.length,
    perSecond: times.length / seconds,
    bytesPerSecond: bytes / seconds,
    p50: quantile(times, 0.5),
    p99: quantile(times, 0.99),
  };
}

/** Lets caches fill and code be compiled before anything counts. */
export async function warmUp(target: Target, durationMs: number): Promise<void> {
  await closedLoop(target, { connections: 16, durationMs });
  await sleep(20);
}
