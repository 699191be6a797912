/** Driving the app with the real registry and objects that only take notes, so that each half can be made to fail. */
import { createExecutionContext, waitOnExecutionContext } from "cloudflare:test";
import { env } from "cloudflare:workers";
import type { DeviceStatus, OfferedTool } from "../../durable/rpc.ts";
import { createApp } from "../../src/app.ts";
import { hashSecret, mintOwnerToken, randomId } from "../../src/auth/secrets.ts";
import { insertMember, type Role } from "../../src/db/members.ts";
import { insertOwnerToken } from "../../src/db/owner-tokens.ts";
import type { Env, TunnelStub } from "../../src/env.ts";

export const ORIGIN = "https://relay.test";

export const STATUS: DeviceStatus = {
  online: true,
  generation: 3,
  agentVersion: "0.1.0",
  lastSeenAt: 1_700_000_000_000,
  upstreams: [{ alias: "main", state: "ready", era: "modern", lastRoundTripMs: 12, lastRoundTripAt: 1_700_000_000_000, problem: null }],
  lastCallAt: 1_700_000_000_001,
  sessions: 2,
  inFlight: 1,
  rival: null,
};

/** Stand-ins for device objects. `notes` has one line per call in order; a method in `failing` throws. */
export class NotingObjects {
  readonly notes: { id: string; method: string; argument: unknown }[] = [];
  readonly failing = new Set<string>();
  /** The tools of every device. */
  tools: OfferedTool[] | null = null;
  /** Runs before a call is answered. */
  before: (method: string) => Promise<void> = async () => {};

  /** Where objects were asked for, when a place was named. */
  readonly jurisdictions: string[] = [];

  jurisdiction(name: string): this {
    this.jurisdictions.push(name);
    return this;
  }

  getByName(id: string): TunnelStub {
    const note = async (method: string, argument: unknown): Promise<void> => {
      this.notes.push({ id, method, argument });
      await this.before(method);
      if (this.failing.has(method)) throw new Error("the object is out of reach");
    };
    const stub: Partial<TunnelStub> = {
      putGrant: (grant) => note("putGrant", grant),
      configure: (change) => note("configure", change),
      offeredTools: async () => {
        await note("offeredTools", undefined);
        return this.tools;
      },
      closeTunnel: (reason) => note("closeTunnel", reason),
      destroy: () => note("destroy", undefined),
      drain: async () => {
        await note("drain", undefined);
        return 2;
      },
      offeredTool: async () => null,
      toolDigests: async () => null,
      liveCalls: async () => [],
      status: async () => {
        await note("status", undefined);
        return STATUS;
      },
      fetch: async (request) => {
        await note("fetch", { url: request.url, headers: Object.fromEntries(request.headers) });
        const [client, server] = Object.values(new WebSocketPair());
        server?.accept();
        return new Response(null, { status: 101, webSocket: client ?? null, headers: { "Sec-WebSocket-Protocol": "longline.v1" } });
      },
    };
    return stub as TunnelStub;
  }

  methods(): string[] {
    return this.notes.map((note) => note.method);
  }
}

export interface Relay {
  env: Env;
  objects: NotingObjects;
  /** Sends a request to the app; a path goes to the canonical origin. */
  send(path: string, init?: RequestInit): Promise<Response>;
  /** The same with an owner's token, and a JSON body when one is given. */
  asOwner(method: string, path: string, body?: unknown): Promise<Response>;
}

/** Adds a person with a token for the API. */
export async function memberWithToken(role: Role): Promise<{ token: string; memberId: string }> {
  const token = mintOwnerToken();
  const memberId = randomId();
  await insertMember(env.DB, { id: memberId, name: role, role, createdAt: Date.now() });
  await insertOwnerToken(env.DB, { hash: await hashSecret(token), memberId, label: "test", createdAt: Date.now() });
  return { token, memberId };
}

/** Adds a person with a token for the API; returns the token. */
export async function tokenFor(role: Role): Promise<string> {
  return (await memberWithToken(role)).token;
}

/** A relay over the test's D1, with objects that take notes. */
export async function startRelay(overrides: Partial<Env> = {}): Promise<Relay> {
  const app = createApp();
  const objects = new NotingObjects();
  const relayEnv: Env = {
    TUNNEL: objects,
    PAIRING: env.PAIRING,
    DB: env.DB,
    OAUTH_KV: env.OAUTH_KV,
    LONGLINE_ROOT_KEY: env.LONGLINE_ROOT_KEY,
    LONGLINE_ORIGINS: env.LONGLINE_ORIGINS,
    LONGLINE_RUNTIME: env.LONGLINE_RUNTIME,
    ...overrides,
  };
  const ownerToken = await tokenFor("owner");
  const send = async (path: string, init?: RequestInit): Promise<Response> => {
    const context = createExecutionContext();
    const response = await app.fetch(new Request(new URL(path, ORIGIN), init), relayEnv, context);
    await waitOnExecutionContext(context);
    return response;
  };
  const asOwner = (method: string, path: string, body?: unknown): Promise<Response> =>
    send(path, {
      method,
      headers: { Authorization: `Bearer ${ownerToken}` },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
  return { env: relayEnv, objects, send, asOwner };
}

/** A device name nobody else in this file uses. */
export function freshName(): string {
  return `dev-${crypto.randomUUID().slice(0, 8)}`;
}

export interface NewDevice {
  device: string;
  id: string;
  deviceKey: string;
  mcpUrl: string;
}

/** Adds a device by the API. */
export async function addDevice(relay: Relay, name = freshName()): Promise<NewDevice> {
  const response = await relay.asOwner("POST", "/api/devices", { name });
  if (response.status !== 201) throw new Error(`adding ${name} gave ${response.status}`);
  return response.json();
}

/** Dials in as an agent does. */
export function dial(relay: Relay, deviceKey: string, headers: Record<string, string> = {}): Promise<Response> {
  return relay.send("/tunnel", {
    headers: { Upgrade: "websocket", "Sec-WebSocket-Protocol": "longline.v1", Authorization: `Bearer ${deviceKey}`, ...headers },
  });
}

export interface NewToken {
  token: string;
  grant: string;
  mcpUrl: string;
  expiresAt: number;
}

/** Creates a token by the API. */
export async function addToken(relay: Relay, device: string, body: Record<string, unknown> = { for: "a test" }): Promise<NewToken> {
  const response = await relay.asOwner("POST", `/api/devices/${device}/tokens`, body);
  if (response.status !== 201) throw new Error(`a token for ${device} gave ${response.status}`);
  return response.json();
}

/** The code of an error answer. */
export async function errorCode(response: Response): Promise<string> {
  const { error } = await response.json<{ error: { code: string } }>();
  return error.code;
}
