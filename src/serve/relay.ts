/** The embedded relay: the same Worker as on Cloudflare, on workerd, with its data in one directory. */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ApiError } from "../errors.ts";
import { SERVE, TUNNEL } from "../limits.ts";
import { serveAgentFile } from "./agent-file.ts";
import { workerBundle } from "./bundle.ts";
import { openDataDir, type DataDir } from "./data-dir.ts";
import { applyMigrations } from "./migrate.ts";
import { ensureOwner } from "./owner.ts";
import { packageRoot } from "./package-root.ts";
import { choosePort, HOST, portTaken } from "./port.ts";
import { startRuntime, withDatabases, type Runtime, type RuntimeOptions } from "./runtime.ts";
import { systemCode } from "./secret-file.ts";
import { watchWorkerd } from "./watcher.ts";
import { readWorkerConfig } from "./wrangler-config.ts";

/** How to start an embedded relay. */
export interface RelayOptions {
  dataDir: string;
  /** Undefined or 0: the port of an earlier start, or a free one. */
  port?: number | undefined;
  /** Public origins, the first canonical; the loopback one always follows. */
  origins?: readonly string[] | undefined;
  /** Further variables of the Worker, checked already. */
  vars?: Record<string, string> | undefined;
  /** Path of the Worker's entry, instead of the one in `wrangler.toml`. */
  main?: string | undefined;
  /** Receives one line at a time: what the Worker prints, and warnings. */
  log: (line: string) => void;
  /** Called when the runtime ends by itself. */
  onExit: () => void;
}

/** A relay that answers. */
export interface RelayHandle {
  /** The canonical origin. */
  url: string;
  /** Where it listens on this machine. */
  localUrl: string;
  ownerToken: string;
  consoleUrl: string;
  stop(): Promise<void>;
}

/** Starts the relay and resolves when it answers; on any failure nothing is left running or locked. */
export async function startRelay(options: RelayOptions): Promise<RelayHandle> {
  const data = await openDataDir(options.dataDir, options.log);
  let runtime: Runtime | undefined;
  const end = async (): Promise<void> => {
    await runtime?.stop();
    data.lock.release();
  };
  const stop = async (): Promise<void> => {
    await drained(runtime, options.log);
    await end();
  };
  try {
    const started = await startIn(data, options);
    runtime = started.runtime;
    await waitUntilHealthy(started.localUrl);
    await data.rememberPort(started.port);
    data.lock.publish(started.localUrl);
    const { url, localUrl } = started;
    return { url, localUrl, ownerToken: data.ownerToken, consoleUrl: `${url}/console`, stop };
  } catch (error) {
    await end();
    throw error;
  }
}

/** Agents hear of the end before it comes. A runtime that cannot do that any more is ended all the same. */
async function drained(runtime: Runtime | undefined, log: (line: string) => void): Promise<void> {
  const late = new AbortController();
  const limit = sleep(2 * TUNNEL.drainMs, undefined, { signal: late.signal }).catch(() => undefined);
  await Promise.race([runtime?.drain().catch(() => log("The agents could not be told that the relay ends.")), limit]);
  late.abort();
}

async function startIn(data: DataDir, options: RelayOptions): Promise<{ runtime: Runtime; url: string; localUrl: string; port: number }> {
  const root = packageRoot();
  const config = await readWorkerConfig(join(root, "wrangler.toml"));
  const runtimeOptions: RuntimeOptions = { config, dataDir: data.path, log: options.log };
  // A relay that was killed may hold its port for another second.
  const port = await choosePort({ asked: options.port, kept: data.port, waitMs: data.lock.tookOver ? SERVE.portFreeMs : 0 });
  if (data.port !== undefined && data.port !== port) {
    options.log(`The relay moves from port ${data.port} to ${port}: clients, agents and tokens that name the old address stop working.`);
  }
  watchWorkerd(root, options.log);
  const [code] = await Promise.all([
    workerBundle(root, options.main ?? config.main),
    prepareDatabases(root, runtimeOptions, data.ownerToken),
  ]);
  const localUrl = `http://${HOST}:${port}`;
  const origins = [...(options.origins ?? []), localUrl];
  const vars = {
    ...options.vars,
    LONGLINE_ROOT_KEY: data.rootKey,
    LONGLINE_ORIGINS: origins.join(","),
    LONGLINE_RUNTIME: "embedded",
  };
  const assets = serveAgentFile(root);
  const runtime = await startRuntime(runtimeOptions, { code, vars, assets, host: HOST, port, onExit: options.onExit }).catch(
    (error: unknown) => {
      // Somebody took the port between the choice and the start.
      throw systemCode(error) === "ERR_ADDRESS_IN_USE" ? portTaken(port) : error;
    },
  );
  return { runtime, url: origins[0] ?? localUrl, localUrl, port };
}

async function prepareDatabases(root: string, options: RuntimeOptions, ownerToken: string): Promise<void> {
  await withDatabases(options, async (database, migrationsDir) => {
    await applyMigrations(database, join(root, migrationsDir));
    await ensureOwner(database, ownerToken, Date.now());
  });
}

/** Asks `/health` until the Worker says it is well; a relay that listens but cannot answer counts as failed. */
async function waitUntilHealthy(url: string): Promise<void> {
  const until = AbortSignal.timeout(SERVE.readyMs);
  let last = "no answer";
  while (!until.aborted) {
    const response = await fetch(`${url}/health`, { signal: until, redirect: "manual" }).catch(() => undefined);
    await response?.body?.cancel();
    if (response?.ok === true) return;
    if (response !== undefined) last = `HTTP ${response.status}`;
    await sleep(SERVE.pollMs, undefined, { signal: until }).catch(() => undefined);
  }
  throw new ApiError("failed", `The relay started but is not healthy (${last}). Its log above says why.`);
}
