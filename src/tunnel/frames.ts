/**
 * The frames of tunnel protocol version 1: the only definition, shared by Worker, object and agent.
 * A frame is a header (one line of JSON, strict here) and an optional payload of text or bytes that crosses
 * edge and object unparsed. docs/protocol.md lists every frame with an example that a test parses.
 */
import { z } from "zod";
import { REASON_NAMES } from "../errors.ts";

export const SUBPROTOCOL = "longline.v1";
export const PROTOCOL_VERSION = 1;
/** The fixed text the agent sends and the platform answers while the object sleeps. No frame can equal it. */
export const PING_TEXT = "ping";
export const PONG_TEXT = "pong";
/** Name of the byte stream that carries a catalogue; a call's stream is named by its call id. */
export const CATALOGUE_STREAM = "catalogue";

/** A call id: `c_` and 128 bits in base64url. */
export const CallIdPattern = /^c_[A-Za-z0-9_-]{22}$/;
const CallId = z.string().regex(CallIdPattern);
const StreamName = z.union([CallId, z.literal(CATALOGUE_STREAM)]);
const Count = z.int().nonnegative();
/** Position of an event, ask or outcome within its call, from 1. A replay repeats the number. */
const Seq = z.int().positive();
const Short = z.string().max(256);
const JsonObject = z.record(z.string(), z.unknown());

export const Limits = z.strictObject({
  maxFrameBytes: z.int().min(4096),
  maxConcurrentCalls: z.int().positive(),
});
export type Limits = z.infer<typeof Limits>;

/** What the agent knows of one upstream; `status` shows it. */
export const UpstreamState = z.strictObject({
  alias: Short,
  state: z.enum(["starting", "ready", "crashed", "stopped"]),
  era: z.enum(["modern", "legacy", "dual"]).nullable(),
  lastRoundTripMs: z.number().nonnegative().nullable(),
  /** Epoch ms of the last real round trip. */
  lastRoundTripAt: z.number().nullable(),
  /** Last error, cleaned and bounded, for a person. */
  problem: z.string().max(2000).nullable(),
});
export type UpstreamState = z.infer<typeof UpstreamState>;

/** The caller as the device sees it: never the token. */
export const Caller = z.strictObject({ grant: Short, label: Short, member: Short });
export type Caller = z.infer<typeof Caller>;

/** The MCP client behind a call, as it declared itself. */
export const ClientFacts = z.strictObject({
  era: z.enum(["modern", "legacy"]),
  /** Negotiated or declared revision, a date string. */
  protocol: Short,
  capabilities: JsonObject,
  info: JsonObject.optional(),
});
export type ClientFacts = z.infer<typeof ClientFacts>;

const optional = { optional: z.literal(true).optional() };

// ---- agent → relay -------------------------------------------------------------------------------------

export const Hello = z.strictObject({
  type: z.literal("hello"),
  protocol: z.strictObject({ min: z.int().positive(), max: z.int().positive() }),
  agent: z.strictObject({ name: Short, version: Short }),
  /** Random and stored beside the key: names the machine. */
  installation: Short,
  /** Random per process: names the run. */
  instance: Short,
  limits: Limits,
  /** Digest of the agent's catalogue, null while it has none yet. */
  catalogue: Short.nullable(),
  /** Calls whose outcome the agent still holds or runs. */
  held: z.array(CallId).max(1000),
  /** Input requests that wait for an answer. */
  asks: z.array(z.strictObject({ callId: CallId, askId: Short })).max(1000),
  upstreams: z.array(UpstreamState).max(100),
  /** Replace a living other installation. */
  takeover: z.boolean().optional(),
  ...optional,
});

/** Payload: `{ discover, tools, resources, resourceTemplates, prompts }` as text, or chunks of it when `bytes` is given. */
export const CatalogueFrame = z.strictObject({
  type: z.literal("catalogue"),
  digest: Short,
  /** Payload bytes that follow as chunks; absent when the payload is in this message. */
  bytes: Count.optional(),
  ...optional,
});

export const Ack = z.strictObject({ type: z.literal("ack"), callId: CallId, ...optional });

/** Payload: the notification's params as text, without `progressToken`. */
export const Event = z.strictObject({
  type: z.literal("event"),
  callId: CallId,
  seq: Seq,
  method: z.enum(["notifications/progress", "notifications/message"]),
  ...optional,
});

/** Payload: the input request's params as text. */
export const Ask = z.strictObject({
  type: z.literal("ask"),
  callId: CallId,
  seq: Seq,
  /** Unique within the call; names the answer. */
  askId: Short,
  method: z.enum(["elicitation/create", "sampling/createMessage", "roots/list"]),
  ...optional,
});

/** Payload: the result object as text without the members lifted into this header, or chunks of it when `bytes` is given. */
export const Result = z.strictObject({
  type: z.literal("result"),
  callId: CallId,
  seq: Seq,
  /** Revision spoken with the upstream. */
  protocol: Short,
  /** Payload bytes that follow as chunks; absent when the payload is in this message. */
  bytes: Count.optional(),
  meta: JsonObject.optional(),
  resultType: Short.optional(),
  ttlMs: z.unknown().optional(),
  cacheScope: z.unknown().optional(),
  /**
   * Set when `structuredContent` is not an object: the byte in the payload where its member begins (its comma, or
   * the key when it is the only member). It is then the last member, so that it can be cut off for a legacy caller.
   */
  structuredAt: Count.optional(),
  ...optional,
});

/** A JSON-RPC error of the upstream. Payload: `error.data` as text, if any. */
export const UpstreamError = z.strictObject({
  type: z.literal("error"),
  callId: CallId,
  seq: Seq,
  origin: z.literal("upstream"),
  protocol: Short,
  code: z.int(),
  message: z.string().max(8192),
  ...optional,
});

/** A failure on our side of the upstream. */
export const AgentError = z.strictObject({
  type: z.literal("error"),
  callId: CallId,
  seq: Seq,
  origin: z.literal("agent"),
  reason: z.enum(REASON_NAMES),
  outcome: z.enum(["not_started", "unknown"]),
  /** What happened, for a person; bounded and free of secrets. */
  message: z.string().max(2000),
  data: JsonObject.optional(),
  ...optional,
});

export const Changed = z.strictObject({
  type: z.literal("changed"),
  what: z.enum(["tools", "prompts", "resources", "resource"]),
  /** With `resource`: which one. */
  uri: z.string().max(8192).optional(),
  /** With `resource`: it changed in the instance that this grant has for itself, and concerns nobody else. */
  grant: Short.optional(),
  ...optional,
});

/** Bytes of a payload, from `offset`. Sent as a binary message, so that a cut may fall inside a character. */
export const Chunk = z.strictObject({ type: z.literal("chunk"), stream: StreamName, offset: Count, ...optional });

/** The receiver of a stream takes `bytes` more. */
export const Credit = z.strictObject({
  type: z.literal("credit"),
  stream: StreamName,
  bytes: z.int().positive(),
  /** For a request that is sent again: how much of it is there from an earlier link. */
  offset: z.int().positive().optional(),
  ...optional,
});
export type Credit = z.infer<typeof Credit>;

export const Bye = z.strictObject({ type: z.literal("bye"), reason: Short, ...optional });

export const Pong = z.strictObject({
  type: z.literal("pong"),
  probeId: Short,
  upstreams: z.array(UpstreamState).max(100),
  ...optional,
});

// ---- relay → agent -------------------------------------------------------------------------------------

export const Welcome = z.strictObject({
  type: z.literal("welcome"),
  protocol: z.int().positive(),
  generation: z.int().positive(),
  limits: Limits,
  /** Largest payload of one call's answer, bytes. */
  maxResultBytes: z.int().positive(),
  /** Epoch ms at the relay. */
  serverTime: z.number(),
  device: Short,
  mcpUrl: z.string().max(2048),
  /** Whether the relay wants the catalogue named in `hello`. */
  catalogue: z.enum(["send", "known"]),
  ...optional,
});

/** Payload: the params that remain after `name`, `uri` or `ref` and `_meta`, as text, or chunks of it when `bytes` is given. */
export const Call = z.strictObject({
  type: z.literal("call"),
  callId: CallId,
  method: Short,
  /** `params.name` or `params.uri`. */
  target: z.string().max(8192).optional(),
  /** `params.ref` of completion/complete. */
  ref: JsonObject.optional(),
  /** Other names of the target by which the relay decided too: without each prefix that the catalogue names. */
  names: z.array(z.string().max(8192)).max(100).optional(),
  timeoutMs: z.int().positive(),
  /** Bytes of the answer that may be sent before the first credit. */
  credit: Count,
  caller: Caller,
  client: ClientFacts,
  /** The client's `_meta` without the revision's own keys and without the progress token. */
  meta: JsonObject.optional(),
  /** The client asked for progress. */
  progress: z.boolean().optional(),
  /** Lowest level of log notifications the caller wants; absent means none. */
  logLevel: Short.optional(),
  /** `Mcp-Param-*` headers, by lower-case name without the prefix. */
  paramHeaders: z.record(z.string(), z.string()).optional(),
  bytes: Count.optional(),
  ...optional,
});

/** Continue the outcome of a call on a new link: events after `seq`, and its payload from `offset`. */
export const Attach = z.strictObject({
  type: z.literal("attach"),
  callId: CallId,
  /** Last position the edge has; 0 for none. */
  seq: Count,
  offset: Count,
  credit: Count,
  ...optional,
});

export const CancelReason = z.enum(["caller_left", "caller_asked", "deadline", "revoked", "expired"]);
export type CancelReason = z.infer<typeof CancelReason>;
export const Cancel = z.strictObject({ type: z.literal("cancel"), callId: CallId, reason: CancelReason, ...optional });

/** Payload: the client's result or `{ code, message }` as text. */
export const Answer = z.strictObject({
  type: z.literal("answer"),
  callId: CallId,
  askId: Short,
  kind: z.enum(["result", "error"]),
  ...optional,
});

export const Delivered = z.strictObject({ type: z.literal("delivered"), callIds: z.array(CallId).min(1).max(1000), ...optional });
export const Probe = z.strictObject({ type: z.literal("probe"), probeId: Short, ...optional });
export const Drain = z.strictObject({ type: z.literal("drain"), reason: Short, ...optional });

export const AgentFrame = z.discriminatedUnion("type", [
  Hello,
  CatalogueFrame,
  Ack,
  Event,
  Ask,
  Result,
  z.discriminatedUnion("origin", [UpstreamError, AgentError]),
  Changed,
  Chunk,
  Credit,
  Bye,
  Pong,
]);
export type AgentFrame = z.infer<typeof AgentFrame>;

export const RelayFrame = z.discriminatedUnion("type", [Welcome, Call, Attach, Cancel, Answer, Delivered, Credit, Chunk, Probe, Drain]);
export type RelayFrame = z.infer<typeof RelayFrame>;

export type Hello = z.infer<typeof Hello>;
export type CatalogueFrame = z.infer<typeof CatalogueFrame>;
export type Event = z.infer<typeof Event>;
export type Ask = z.infer<typeof Ask>;
export type Result = z.infer<typeof Result>;
export type UpstreamError = z.infer<typeof UpstreamError>;
export type AgentError = z.infer<typeof AgentError>;
export type Call = z.infer<typeof Call>;
export type Welcome = z.infer<typeof Welcome>;
export type Answer = z.infer<typeof Answer>;

export const AGENT_FRAME_TYPES = new Set([
  "hello",
  "catalogue",
  "ack",
  "event",
  "ask",
  "result",
  "error",
  "changed",
  "chunk",
  "credit",
  "bye",
  "pong",
]);
export const RELAY_FRAME_TYPES = new Set([
  "welcome",
  "call",
  "attach",
  "cancel",
  "answer",
  "delivered",
  "credit",
  "chunk",
  "probe",
  "drain",
]);

const BASE64URL = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/** Mints a call id: `c_` and 22 random characters of base64url, six bits each. */
export function newCallId(): string {
  let id = "c_";
  for (const byte of crypto.getRandomValues(new Uint8Array(22))) id += BASE64URL[byte & 63] ?? "";
  return id;
}
