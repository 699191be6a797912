/**
 * What crosses between Worker and DeviceTunnel. Expected outcomes are values; the object throws only for bugs and
 * for its own loss. Everything public on DeviceTunnel is this interface.
 */
import type { Failure } from "../src/errors.ts";
import type { Grant } from "../src/policy/grant.ts";
import type { CancelReason, ClientFacts, UpstreamState } from "../src/tunnel/frames.ts";
import type { LiveCall } from "../src/tunnel/live.ts";

/** One request to forward, in canonical form. */
export interface CallRequest {
  callId: string;
  /** Grant id from the verified token. */
  grant: string;
  method: string;
  target?: string;
  ref?: Record<string, unknown>;
  /** A modern or sessionless client as it declared itself; absent when `session` is given. */
  client?: ClientFacts;
  session?: SessionUse;
  meta?: Record<string, unknown>;
  progress?: boolean;
  logLevel?: string;
  paramHeaders?: Record<string, string>;
  /** Params without target and `_meta`, as JSON text; empty when they come as `body`. */
  payload: string;
  /** Params that do not fit one message, as a stream that the object reads when it has room. */
  body?: RequestBody;
  /** The client's JSON-RPC id as JSON text, only to find the call a legacy `notifications/cancelled` names. */
  clientId?: string;
  /** True when the edge can stream (SSE); false for a client that takes JSON only: it gets no events. */
  canStream: boolean;
  /** Where to post when the device is away, as its owner set it. */
  wakeUrl?: string;
  /** Earlier calls whose outcome is written: told on the way, this saves the RPC of `delivered`. */
  delivered?: readonly string[];
}

/** A large payload on its way to the object. */
export interface RequestBody {
  /** Its length in UTF-8. */
  bytes: number;
  stream: ReadableStream<Uint8Array>;
}

/** What the edge knows of a call that it attaches to, for an object that lost it. `at` is when it was made (epoch ms). */
export type AskedCall = Pick<CallRequest, "method" | "target" | "client"> & { at: number };

export interface SessionUse {
  id: string;
  /** The `MCP-Protocol-Version` header, if any; it has to equal the session's version. */
  headerVersion?: string;
  /** The device's `sessionExpiry` is "strict": a session beyond its idle time does not wake. */
  strict?: true;
}

/** What a session tells the edge, so that it can shape bytes. */
export interface SessionFacts {
  version: string;
  capabilities: Record<string, unknown>;
}

/** Why a request is not forwarded. The edge turns each kind into its status and bytes. */
export type Refusal =
  /** Unknown, revoked, paused or expired grant: 401. */
  | { kind: "grant" }
  /** Beyond the grant: 403 insufficient_scope. */
  | { kind: "scope"; scopes: string[] }
  /** Excluded by the grant: answered like a thing that does not exist. */
  | { kind: "absent" }
  /** A header contradicts the body or the tool's schema: 400, -32020. */
  | { kind: "header"; message: string }
  /** The params themselves are wrong: -32602. */
  | { kind: "params"; message: string }
  /** Unknown session (404), or a version header that is not the session's (400). */
  | { kind: "session"; why: "unknown" | "version" }
  /** A method the device does not offer: -32601. */
  | { kind: "method" }
  /** A failure of ours: HTTP 200 with a JSON-RPC error. */
  | { kind: "failure"; failure: Failure };

/**
 * The answer to a call. `first` is one tunnel message as the agent sent it (header line, payload). `rest` holds the
 * messages after it, each as a 4-byte big-endian length and the message bytes, and is null when `first` is the outcome
 * and complete. A failure of ours after `first` is a last record: an `error` frame with origin "agent", also when the
 * chunks of an outcome are not complete. Cancelling `rest` means that nobody is attached (any more). A record of no
 * bytes holds no message: it is there to find a reader that is gone, and to be skipped.
 *
 * A list from the catalogue is a `result` whose `protocol` is "catalogue" and whose `meta` says `dev.longline/offline`.
 */
export type CallReply =
  | { ok: true; first: string | Uint8Array; rest: ReadableStream<Uint8Array> | null; session?: SessionFacts }
  | { ok: false; refusal: Refusal; session?: SessionFacts };

/** The device as `initialize` and `server/discover` show it, already filtered for the grant. */
export interface DeviceView {
  /** False while the device is away: the answer comes from the catalogue. */
  online: boolean;
  /** False when the device never sent a catalogue. */
  known: boolean;
  capabilities: Record<string, unknown>;
  serverInfo: { name: string; version: string; [key: string]: unknown };
  instructions?: string;
}

export type Reply<T> = ({ ok: true } & T) | { ok: false; refusal: Refusal };

export interface SessionInit {
  version: string;
  capabilities: Record<string, unknown>;
  clientInfo?: Record<string, unknown>;
}

export interface DeviceStatus {
  online: boolean;
  generation: number;
  agentVersion: string | null;
  /** Epoch ms of the last sign of life of the link. */
  lastSeenAt: number | null;
  upstreams: UpstreamState[];
  lastCallAt: number | null;
  sessions: number;
  inFlight: number;
  /** Set when another installation tried to use the same key. */
  rival: { at: number } | null;
}

/** The id under which the edge sends a server request of a legacy session, and by which its answer is found. */
export function askKeyOf(callId: string, askId: string): string {
  return `${callId}:${askId}`;
}

/** The two halves of an ask key; null for anything else. */
export function readAskKey(askKey: string): { callId: string; askId: string } | null {
  const colon = askKey.indexOf(":");
  return colon < 0 ? null : { callId: askKey.slice(0, colon), askId: askKey.slice(colon + 1) };
}

/** A tool as the consent page shows it. The hints are the device's own claims. */
export interface OfferedTool {
  name: string;
  title?: string;
  description?: string;
  readOnly: boolean;
  destructive: boolean;
}

/** What an owner can change of a device while its object lives. */
export interface DeviceChange {
  name?: string;
  mcpUrl?: string;
  /** Epoch ms, or null to let it run again. */
  pausedAt?: number | null;
}

/** The RPC surface of DeviceTunnel. */
export interface DeviceTunnelRpc {
  call(request: CallRequest): Promise<CallReply>;
  /** Takes up a call again after the object was lost: frames after `seq`, the outcome's payload from `offset`. */
  attach(grant: string, callId: string, seq: number, offset: number, asked?: AskedCall): Promise<CallReply>;
  /**
   * Continues a parked call with the client's answers: results as JSON text, by ask id. Asks that are still open come
   * again before anything else, also when no answer was usable. `asked` names the asks that the client was shown: when
   * none of them is open any more, its answers are to an earlier round and refused.
   */
  resume(grant: string, callId: string, answers: Record<string, string>, asked?: readonly string[]): Promise<CallReply>;
  cancel(callId: string, reason: CancelReason): Promise<void>;
  /**
   * The edge reads no further although the call goes on: a modern client has to answer first, or nobody is there any
   * more. Cancelling `rest` says the same, but the object hears that only with its next record. Has to be awaited
   * before anybody can `resume`.
   */
  detach(callId: string): Promise<void>;
  /** The edge has written the outcome to its response. */
  delivered(callId: string): Promise<void>;

  describe(grant: string): Promise<Reply<{ view: DeviceView }>>;
  openSession(grant: string, init: SessionInit): Promise<Reply<{ sessionId: string; view: DeviceView }>>;
  /** Checks a session and marks its use; for messages that are not forwarded (ping, notifications, GET). */
  useSession(grant: string, session: SessionUse): Promise<Reply<{ session: SessionFacts }>>;
  endSession(grant: string, sessionId: string): Promise<Reply<{}>>;
  setLogLevel(grant: string, session: SessionUse, level: string): Promise<Reply<{}>>;
  /** `notifications/cancelled` of a legacy session; `requestId` is JSON text. Unknown ids are ignored. */
  cancelInSession(grant: string, session: SessionUse, requestId: string): Promise<Reply<{}>>;
  /** A client's response to a server request, by the id the edge sent it under. Unknown ids are dropped. */
  answerInSession(grant: string, session: SessionUse, askKey: string, kind: "result" | "error", payload: string): Promise<Reply<{}>>;

  putGrant(grant: Grant): Promise<void>;
  /** Takes over what the owner changed of the device; what is left out stays. */
  configure(change: DeviceChange): Promise<void>;
  /** The tools as last known, whatever grant may use them; null when the device never said. */
  offeredTools(): Promise<OfferedTool[] | null>;
  /** One tool of the catalogue as the device defines it, as JSON text; null when it is not there. */
  offeredTool(name: string): Promise<string | null>;
  /** Name and digest of each tool's definition: whoever remembers them sees what is new or changed. */
  toolDigests(): Promise<[string, string][] | null>;
  /** The calls in flight: all, or those of one member's grants. */
  liveCalls(member: string | null): Promise<LiveCall[]>;
  status(): Promise<DeviceStatus>;
  /** Closes the tunnel for good; for a revoked key or a removed device. */
  closeTunnel(reason: "revoked" | "removed"): Promise<void>;
  /** The relay is about to be replaced, or `stops`: the agent is told, new calls are refused, and listeners end if it stops. Gives the calls in flight and the listeners that are to end. */
  drain(stops: boolean): Promise<number>;
  /** The time of a drain is over: callers of what is still in flight are told that the relay ends. Gives their number. */
  endCalls(): Promise<number>;
  /** Deletes everything the object holds. */
  destroy(): Promise<void>;
}
