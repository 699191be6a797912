/**
 * Starts workerd through miniflare. The Worker listens on a direct socket: requests reach it without miniflare's own
 * entry in between, with the Host header and the WebSocket upgrade as they came.
 */
import { join } from "node:path";
import type { Readable } from "node:stream";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import {
  Miniflare,
  type Request as MiniflareRequest,
  Response as MiniflareResponse,
  type WorkerOptions as MiniflareWorker,
} from "miniflare";
import { SERVE, TUNNEL } from "../limits.ts";
import { cleanText } from "../policy/clean-text.ts";
import type { WorkerConfig } from "./wrangler-config.ts";

/** Part of every object's path on disk: it must never change. */
const WORKER = "relay";

/** Bindings that the relay's own process uses, by their names in `wrangler.toml`. */
const BINDINGS = { database: "DB", objects: "TUNNEL" } as const;

/** A database binding of the runtime, as far as this module's users need it. */
export interface Database {
  prepare(sql: string): Statement;
  batch(statements: Statement[]): Promise<unknown>;
}

/** A prepared statement of `Database`. */
export interface Statement {
  bind(...values: unknown[]): Statement;
  all(): Promise<{ results: Record<string, unknown>[] }>;
}

/** What a runtime needs: the Worker's code and bindings, where it keeps data, and where its output goes. */
export interface RuntimeOptions {
  config: WorkerConfig;
  dataDir: string;
  /** Receives each line the Worker or workerd prints. */
  log: (line: string) => void;
}

/** The Worker's part of the options: its code, its variables and its socket. */
export interface WorkerOptions {
  code: string;
  vars: Record<string, string>;
  /** Answers for the files beside the Worker. */
  assets: (request: Request) => Promise<Response>;
  host: string;
  port: number;
  /** Called when workerd ends by itself. */
  onExit: () => void;
}

/** A running workerd. */
export interface Runtime {
  /** Tells every connected agent that the relay is about to go, and lets what is in flight end, for a limited time. */
  drain(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts the relay's Worker and resolves when its socket listens. */
export async function startRuntime(options: RuntimeOptions, worker: WorkerOptions): Promise<Runtime> {
  let isStopping = false;
  const onEnd = (): void => {
    if (!isStopping) worker.onExit();
  };
  const mf = newMiniflare(options, onEnd, {
    name: WORKER,
    modules: [{ type: "ESModule", path: "worker.js", contents: worker.code }],
    compatibilityDate: options.config.compatibilityDate,
    compatibilityFlags: options.config.compatibilityFlags,
    bindings: { ...options.config.vars, ...worker.vars },
    ...storageBindings(options.config),
    serviceBindings: {
      ...assetsBinding(options.config, worker.assets),
      // A wake URL may be a program of this machine; only src/auth/wake-post.ts uses this way.
      LOOPBACK: { network: { allow: ["local"] } },
    },
    // SECURITY: an OAuth client says where its metadata document is; the compatibility flag alone does not keep workerd
    // from fetching it from this machine or its network.
    outboundService: { network: { allow: ["public"], tlsOptions: { trustBrowserCas: true } } },
    unsafeDirectSockets: [{ host: worker.host, port: worker.port }],
  });
  const stop = async (): Promise<void> => {
    isStopping = true;
    await mf.dispose();
  };
  await mf.ready.catch(async (error: unknown) => {
    await stop();
    throw error;
  });
  return { drain: async () => await drainObjects(mf), stop };
}

/** The methods of an object that a drain uses. */
interface Drained {
  drain(stops: boolean): Promise<number>;
  endCalls(): Promise<number>;
}

/**
 * Tells every device's object that the relay stops, and asks those with calls in flight, or with listeners that were not told
 * yet, until there are none, at most for TUNNEL.drainMs.
 */
async function drainObjects(mf: Miniflare): Promise<void> {
  const until = Date.now() + TUNNEL.drainMs;
  const database = await mf.getD1Database(BINDINGS.database, WORKER);
  const { results } = await database
    .prepare("SELECT id FROM devices WHERE born_at IS NOT NULL AND removed_at IS NULL")
    .all<{ id: string }>();
  const namespace = await mf.getDurableObjectNamespace(BINDINGS.objects, WORKER);
  // SAFETY: the class of this binding; miniflare's own type knows no methods of it.
  let busy = results.map(({ id }) => namespace.get(namespace.idFromName(id)) as unknown as Drained);
  for (;;) {
    const left = await Promise.all(busy.map(async (object) => await object.drain(true)));
    busy = busy.filter((_object, index) => (left[index] ?? 0) > 0);
    if (busy.length === 0 || Date.now() >= until) break;
    await sleep(SERVE.pollMs);
  }
  const ended = await Promise.all(busy.map(async (object) => await object.endCalls()));
  // What their callers are told has to leave the Worker before the Worker ends.
  if (ended.some((count) => count > 0)) await sleep(SERVE.lastWordsMs);
}

/** Runs `use` with each database of the data directory, in a runtime that serves nobody. */
export async function withDatabases(
  options: RuntimeOptions,
  use: (database: Database, migrationsDir: string) => Promise<void>,
): Promise<void> {
  const mf = newMiniflare(options, () => undefined, {
    name: WORKER,
    modules: [{ type: "ESModule", path: "idle.js", contents: "export default { fetch: () => new Response(null, { status: 404 }) };" }],
    compatibilityDate: options.config.compatibilityDate,
    d1Databases: storageBindings(options.config).d1Databases,
  });
  try {
    for (const { binding, migrationsDir } of options.config.databases) await use(await mf.getD1Database(binding, WORKER), migrationsDir);
  } finally {
    await mf.dispose();
  }
}

/** Bindings that keep data. Ids follow the binding, not `wrangler.toml`, where a deploy may write an account's own. */
export function storageBindings(config: WorkerConfig) {
  return {
    durableObjects: Object.fromEntries(config.objects.map((o) => [o.binding, { className: o.className, useSQLite: o.sqlite }])),
    d1Databases: byBinding(config.databases.map((d) => d.binding)),
    kvNamespaces: byBinding(config.namespaces),
  };
}

/** The files beside the Worker are answered by this process. */
function assetsBinding({ assets }: WorkerConfig, answer: WorkerOptions["assets"]) {
  if (assets === undefined) return {};
  return {
    [assets]: async (request: MiniflareRequest): Promise<MiniflareResponse> => {
      const answered = await answer(new Request(request.url, { headers: [...request.headers] }));
      return new MiniflareResponse(answered.status === 304 ? null : await answered.text(), {
        status: answered.status,
        headers: [...answered.headers],
      });
    },
  };
}

function byBinding(names: string[]): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name, name.toLowerCase()]));
}

/** miniflare with what both uses share. Its own signal listeners exit at once, so they are removed again. */
function newMiniflare(options: RuntimeOptions, onEnd: () => void, worker: MiniflareWorker): Miniflare {
  const before = new Map(SIGNALS.map((signal) => [signal, process.listeners(signal)]));
  const mf = new Miniflare({
    workers: [worker],
    host: "127.0.0.1",
    port: 0,
    cf: false,
    defaultPersistRoot: options.dataDir,
    durableObjectsPersist: join(options.dataDir, "do"),
    d1Persist: join(options.dataDir, "d1"),
    kvPersist: join(options.dataDir, "kv"),
    handleRuntimeStdio: (stdout: Readable, stderr: Readable) => {
      // SECURITY: workerd quotes a request that it cannot read, before any of our code has seen it.
      for (const stream of [stdout, stderr])
        createInterface(stream).on("line", (line) => options.log(cleanText(line, SERVE.logLineLength)));
      stdout.once("end", onEnd);
    },
  });
  for (const signal of SIGNALS) {
    for (const listener of process.listeners(signal)) {
      if (before.get(signal)?.includes(listener) !== true) process.removeListener(signal, listener);
    }
  }
  return mf;
}

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
