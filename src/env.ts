/** The Worker's bindings and their validation. `wrangler.toml` is the one source of binding names. */
import { z } from "zod";
import type { DeviceTunnelRpc } from "../durable/rpc.ts";
import type { TokenHolder } from "./db/owner-tokens.ts";

/** A stub as the Worker sees it: the RPC surface, and `fetch` for WebSocket upgrades only. */
export type TunnelStub = DeviceTunnelRpc & { fetch(request: Request): Promise<Response> };

export interface Env {
  TUNNEL: { getByName(name: string): TunnelStub };
  DB: D1Database;
  /** 32 random bytes, base64url: seals signing keys. The only secret of a relay. */
  LONGLINE_ROOT_KEY: string;
  /** Public origins, comma-separated, the first canonical. */
  LONGLINE_ORIGINS: string;
  /** "embedded" on `longline serve`, "cloudflare" otherwise. */
  LONGLINE_RUNTIME: string;
}

const Origin = z.string().refine((text) => {
  try {
    return new URL(text).origin === text;
  } catch {
    return false;
  }
}, "must be an origin such as https://relay.example");

export const Config = z.object({
  rootKey: z.string().regex(/^[A-Za-z0-9_-]{43}$/, "LONGLINE_ROOT_KEY must be 32 bytes in base64url"),
  origins: z.array(Origin).min(1, "LONGLINE_ORIGINS must name at least one origin"),
  runtime: z.enum(["embedded", "cloudflare"]),
});
export type Config = z.infer<typeof Config>;

/** Reads the configuration. Throws with the name of the first variable that is wrong. */
export function readConfig(env: Env): Config {
  return Config.parse({
    rootKey: env.LONGLINE_ROOT_KEY,
    origins: env.LONGLINE_ORIGINS.split(",")
      .map((o) => o.trim())
      .filter((o) => o !== ""),
    runtime: env.LONGLINE_RUNTIME,
  });
}

const configs = new WeakMap<Env, Config>();

/** The configuration of these bindings, read once per isolate. Throws as `readConfig` does. */
export function configOf(env: Env): Config {
  const known = configs.get(env);
  if (known !== undefined) return known;
  const config = readConfig(env);
  configs.set(env, config);
  return config;
}

/** The environment of every Hono app of the Worker. */
export interface AppEnv {
  Bindings: Env;
  Variables: {
    /** Minted here for each request; a client's own header is never taken over. */
    requestId: string;
    /** The public origin this request was sent to, one that the relay accepts. */
    origin: string;
    /** Set by the owner middleware: the person behind the owner token. */
    member: TokenHolder;
  };
}
