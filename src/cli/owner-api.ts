/** The relay's owner API, as the commands use it. Answers are checked: a relay may be older or newer than the command. */
import { z } from "zod";
import { API_ERRORS, ApiError, type ApiErrorCode } from "../errors.ts";
import { CLI } from "../limits.ts";
import { cleanText } from "../agent/clean-text.ts";
import { DeviceSettings, type DeviceSettingsChange } from "../policy/device-settings.ts";

const AddedDevice = z.looseObject({ device: z.string(), id: z.string(), deviceKey: z.string(), mcpUrl: z.string() });
export type AddedDevice = z.infer<typeof AddedDevice>;

const ChangedDevice = z.looseObject({ device: z.string(), settings: DeviceSettings });
export type ChangedDevice = z.infer<typeof ChangedDevice>;

const DeviceState = z.enum(["online", "offline", "never", "paused", "revoked"]);

const Upstream = z.looseObject({
  alias: z.string(),
  state: z.string(),
  era: z.string().nullish(),
  lastRoundTripMs: z.number().nullish(),
  lastRoundTripAt: z.number().nullish(),
  problem: z.string().nullish(),
});

const DeviceStatus = z.looseObject({
  device: z.string(),
  state: DeviceState,
  generation: z.number(),
  agentVersion: z.string().nullable(),
  lastSeenAt: z.number().nullable(),
  upstreams: z.array(Upstream),
  lastCallAt: z.number().nullable(),
  sessions: z.number(),
  inFlight: z.number(),
  rivalAt: z.number().nullish(),
  settings: DeviceSettings.optional(),
});
export type DeviceStatus = z.infer<typeof DeviceStatus>;

const Device = z.looseObject({ device: z.string(), state: DeviceState, lastSeenAt: z.number().nullable(), mcpUrl: z.string() });
export type Device = z.infer<typeof Device>;

const CreatedToken = z.looseObject({ token: z.string(), grant: z.string(), mcpUrl: z.string(), expiresAt: z.number() });
export type CreatedToken = z.infer<typeof CreatedToken>;

const Patterns = z.array(z.string()).optional();
const TokenRow = z.looseObject({
  grant: z.string(),
  device: z.string(),
  for: z.string(),
  rights: z.looseObject({ tools: Patterns, resources: Patterns, prompts: Patterns }),
  createdAt: z.number(),
  expiresAt: z.number(),
  state: z.enum(["active", "paused", "expired", "revoked"]),
});
export type TokenRow = z.infer<typeof TokenRow>;

/** What `token create` asks for; what is left out gets the relay's default. */
export interface TokenRequest {
  for: string;
  tools?: string[] | undefined;
  resources?: string[] | undefined;
  prompts?: string[] | undefined;
  expiresMs?: number | undefined;
  callsPerMinute?: number | undefined;
  inFlight?: number | undefined;
  parked?: number | undefined;
  listeners?: number | undefined;
  note?: string | undefined;
  /** Member id. */
  member?: string | undefined;
}

const ErrorBody = z.looseObject({ error: z.looseObject({ code: z.string(), message: z.string() }) });

/** A relay's owner API. `relay` is its origin; the token travels in the Authorization header only. */
export class OwnerApi {
  readonly relay: URL;
  readonly #token: string;

  constructor(relay: URL, token: string) {
    this.relay = relay;
    this.#token = token;
  }

  /** One request to the API; the answer has to have `shape`. For commands with a corner of the API to themselves. */
  async request<T>(shape: z.ZodType<T>, method: string, path: string, body?: unknown): Promise<T> {
    return await this.#ask(shape, method, path, body);
  }

  async addDevice(name: string): Promise<AddedDevice> {
    return await this.#ask(AddedDevice, "POST", "/api/devices", { name });
  }

  async listDevices(): Promise<Device[]> {
    return (await this.#ask(z.looseObject({ devices: z.array(Device) }), "GET", "/api/devices")).devices;
  }

  async changeDevice(name: string, change: DeviceSettingsChange): Promise<ChangedDevice> {
    return await this.#ask(ChangedDevice, "PATCH", `/api/devices/${encodeURIComponent(name)}`, change);
  }

  async removeDevice(name: string): Promise<void> {
    await this.#ask(z.unknown(), "DELETE", `/api/devices/${encodeURIComponent(name)}`);
  }

  async deviceStatus(name: string): Promise<DeviceStatus> {
    return await this.#ask(DeviceStatus, "GET", `/api/devices/${encodeURIComponent(name)}/status`);
  }

  async status(): Promise<DeviceStatus[]> {
    return await this.#ask(z.array(DeviceStatus), "GET", "/api/status");
  }

  async createToken(device: string, request: TokenRequest): Promise<CreatedToken> {
    return await this.#ask(CreatedToken, "POST", `/api/devices/${encodeURIComponent(device)}/tokens`, request);
  }

  async listTokens(device?: string): Promise<TokenRow[]> {
    const query = device === undefined ? "" : `?device=${encodeURIComponent(device)}`;
    return (await this.#ask(z.looseObject({ tokens: z.array(TokenRow) }), "GET", `/api/tokens${query}`)).tokens;
  }

  async revokeToken(grant: string): Promise<void> {
    await this.#ask(z.unknown(), "DELETE", `/api/tokens/${encodeURIComponent(grant)}`);
  }

  async #ask<T>(shape: z.ZodType<T>, method: string, path: string, body?: unknown): Promise<T> {
    const response = await this.#send(method, path, body);
    const text = await response.text().catch((error: unknown) => {
      throw unreachable(this.relay, error);
    });
    if (!response.ok) throw refusal(this.relay, response.status, text);
    const parsed = shape.safeParse(parseJson(text));
    if (!parsed.success)
      throw new ApiError(
        "failed",
        `${this.relay.origin} gave an answer that this version does not understand. Use the same version of Longline on both sides.`,
      );
    return parsed.data;
  }

  async #send(method: string, path: string, body: unknown): Promise<Response> {
    const init: RequestInit = {
      method,
      headers: {
        authorization: `Bearer ${this.#token}`,
        accept: "application/json",
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      // SECURITY: a redirect is an answer to report, never a place to take the token to.
      redirect: "manual",
      signal: AbortSignal.timeout(CLI.requestMs),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    };
    return await fetch(new URL(path, this.relay), init).catch((error: unknown) => {
      throw unreachable(this.relay, error);
    });
  }
}

function unreachable(relay: URL, cause: unknown): ApiError {
  return new ApiError("relay_unreachable", `No relay answers at ${relay.origin}. Start it with \`longline serve\`, or check --relay.`, {
    cause,
  });
}

/** The relay's own error when it sent one; otherwise one that fits the status. */
function refusal(relay: URL, status: number, text: string): ApiError {
  const body = ErrorBody.safeParse(parseJson(text));
  if (body.success && isKnownCode(body.data.error.code)) {
    return new ApiError(body.data.error.code, cleanText(body.data.error.message));
  }
  // A gateway in front of the relay speaks for a relay that is away.
  if (status === 502 || status === 503 || status === 504) return unreachable(relay, undefined);
  return new ApiError("failed", `${relay.origin} answered with HTTP ${status}. Is it a Longline relay?`);
}

function isKnownCode(code: string): code is ApiErrorCode {
  return Object.hasOwn(API_ERRORS, code);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // What is not JSON fits no shape, and is reported as such.
    return undefined;
  }
}
