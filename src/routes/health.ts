/** `GET /health`: the relay runs. Reads nothing, so that it answers while D1 does not. */
import { Hono } from "hono";
import { type AppEnv, configOf } from "../env.ts";
import { VERSION } from "../version.ts";

/** The health route. `time` is epoch ms: the embedded runtime sends no Date. */
export function healthRoutes(): Hono<AppEnv> {
  return new Hono<AppEnv>().get("/health", (c) =>
    c.json({ ok: true, version: VERSION, runtime: configOf(c.env).runtime, time: Date.now() }),
  );
}
