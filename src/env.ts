/** The Worker's bindings and their validation. `wrangler.toml` is the one source of binding names. */
import { z } from "zod";
import type { DeviceTunnelRpc } from "../durable/rpc.ts";
import type { TokenHolder } from "./db/owner-tokens.ts";
import { ApiError } from "./errors.ts";
import { readSignInConfig, type SignInConfig, type SignInVariables } from "./policy/sign-in-config.ts";

/** A stub as the Worker sees it: the RPC surface, and `fetch` for WebSocket upgrades only. */
export type TunnelStub = DeviceTunnelRpc & { fetch(request: Request): Promise<Response> };

interface TunnelNamespace {
  getByName(name: string): TunnelStub;
}

export interface Env extends SignInVariables {
  /** Reached through `tunnelOf` alone. */
  TUNNEL: TunnelNamespace & { jurisdiction(name: string): TunnelNamespace };
  /** Records of devices that wait to be paired; reached through src/auth/pairing-object.ts alone. */
  PAIRING: DurableObjectNamespace;
  DB: D1Database;
  /** The authorization server's store. Read and written on the OAuth routes only, never on a call. */
  OAUTH_KV: KVNamespace;
  /** Files beside the Worker: the agent. Absent where none was built. */
  ASSETS?: { fetch(request: Request): Promise<Response> };
  /** Embedded only: this machine's own addresses, for wake URLs. What the Worker fetches otherwise is public. */
  LOOPBACK?: { fetch(request: Request): Promise<Response> };
  /** 32 random bytes, base64url: seals signing keys. The only secret of a relay. */
  LONGLINE_ROOT_KEY: string;
  /** Public origins, comma-separated, the first canonical. */
  LONGLINE_ORIGINS: string;
  /** Cloudflare only: the jurisdiction all objects stay in; chosen before the first device, because it names other objects. */
  LONGLINE_JURISDICTION?: DurableObjectJurisdiction;
  /** "embedded" on `longline serve`, "cloudflare" otherwise. */
  LONGLINE_RUNTIME: string;
  /** Embedded only: the header in which a trusted proxy names the client's address. */
  LONGLINE_PROXY_HEADER?: string;
}

/** A fresh stub of a device's object, in the relay's jurisdiction. */
export function tunnelOf({ TUNNEL, LONGLINE_JURISDICTION: jurisdiction }: Env, deviceId: string): TunnelStub {
  return (jurisdiction === undefined ? TUNNEL : TUNNEL.jurisdiction(jurisdiction)).getByName(deviceId);
}

/** A public origin, exactly as browsers write it. */
export const Origin = z.string().refine((text) => {
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
  signIn: z.custom<SignInConfig>(),
  proxyHeader: z
    .string()
    .regex(/^[A-Za-z0-9-]{1,64}$/, "LONGLINE_PROXY_HEADER must be the name of a header")
    .optional(),
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
    signIn: readSignInConfig(env),
    ...(env.LONGLINE_PROXY_HEADER === undefined || env.LONGLINE_PROXY_HEADER === "" ? {} : { proxyHeader: env.LONGLINE_PROXY_HEADER }),
  });
}

const configs = new WeakMap<Env, Config>();

/** The configuration of these bindings, read once per isolate. Throws as `readConfig` does. */
export function configOf(env: Env): Config {
  const known = configs.get(env);
  if (known !== undefined) return known;
  const config = checkedConfig(env);
  configs.set(env, config);
  return config;
}

/** A relay that is configured wrongly answers nothing else: it says what to set, never to what it is set. */
function checkedConfig(env: Env): Config {
  try {
    return readConfig(env);
  } catch (error) {
    const message = error instanceof z.ZodError ? error.issues[0]?.message : error instanceof Error ? error.message : undefined;
    throw new ApiError("internal", `The configuration of this relay is wrong. ${message ?? "A variable is missing"}.`, { cause: error });
  }
}

/** Puts the recorded origins around the configured ones; what is known already stays where it is. */
export function joinOrigins(env: Env, before: readonly string[], behind: readonly string[]): void {
  const base = readConfig(env);
  const origins = [...new Set([...before, ...base.origins, ...behind])];
  // The list keeps its identity while it says the same: what was made of it is kept by it.
  if (configOf(env).origins.join(" ") !== origins.join(" ")) configs.set(env, { ...base, origins });
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
