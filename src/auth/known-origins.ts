/**
 * Keeps the configuration's list of public origins joined with those of D1. Read once before an isolate's first request,
 * then beside the requests, so that no call waits for D1.
 */
import { waitUntil } from "cloudflare:workers";
import type { MiddlewareHandler } from "hono";
import { listOrigins } from "../db/origins.ts";
import { type AppEnv, type Env, joinOrigins } from "../env.ts";
import { EDGE } from "../limits.ts";
import { log } from "../log.ts";

/** Epoch ms of the last read, by bindings. */
const readAt = new WeakMap<Env, number>();

/** Reads the recorded origins now. */
export async function readOrigins(env: Env): Promise<void> {
  readAt.set(env, Date.now());
  const rows = await listOrigins(env.DB);
  const before = rows.filter((row) => row.position < 0).map((row) => row.origin);
  const behind = rows.filter((row) => row.position >= 0).map((row) => row.origin);
  joinOrigins(env, before, behind);
}

async function readQuietly(env: Env): Promise<void> {
  // Without D1 the relay answers on its configured origins, and looks again after the same time.
  await readOrigins(env).catch((error: unknown) => log("warn", "origins.not-read", { error }));
}

/** Before Host and Origin are looked at. */
export const knownOrigins: MiddlewareHandler<AppEnv> = async (c, next) => {
  const last = readAt.get(c.env);
  if (last === undefined) await readQuietly(c.env);
  else if (Date.now() - last >= EDGE.registryCacheMs) waitUntil(readQuietly(c.env));
  await next();
};
