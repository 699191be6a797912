/**
 * Every number of the relay and the agent, each with its unit and its reason. The receiver enforces them;
 * `welcome` tells the agent those it has to keep.
 */

const KIB = 1024;
const MIB = 1024 * KIB;
const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** What the public MCP endpoint accepts. */
export const EDGE = {
  /** Bytes of one request body; larger is 413. A request is the only thing that is assembled whole. */
  maxRequestBytes: 8 * MIB,
  /** Bytes of all request headers together, name and value. Cloudflare stops at 16 KiB on older plans. */
  maxHeaderBytes: 16 * KIB,
  /** Nesting of a request body. JSON.parse itself survives more; our own walks must not overflow the stack. */
  maxJsonDepth: 128,
  /** Characters of a JSON-RPC string id. */
  maxIdLength: 1024,
  /** Characters of a compact JWT; ours are about 500. Checked before any cryptography. */
  maxTokenLength: 4096,
  /** Elements of a 2025-03-26 batch. */
  maxBatch: 32,
  /** Elements of one batch that run at the same time; fewer than a grant's calls in flight. */
  batchLanes: 4,
  /** ms the edge waits for the outcome before it commits to SSE. */
  commitAfterMs: 1 * SECOND_MS,
  /** ms between SSE comments on Cloudflare, where the platform reports a client that left. */
  keepAliveMs: 15 * SECOND_MS,
  /** ms between SSE comments on the embedded relay, where only a failed write shows that the client left. */
  embeddedKeepAliveMs: 5 * SECOND_MS,
  /** Tries to attach to a call again after the object was lost, and ms between them. */
  attachTries: 3,
  attachPauseMs: 100,
  /** Verified tokens an isolate remembers, so that a busy caller is not verified on every call. */
  verifiedTokens: 1_000,
  /** ms that a signing key or device row read from D1 is believed by an isolate. */
  registryCacheMs: 30 * SECOND_MS,
  /** ms between two reads of the signing keys because of an unknown key id, so that forged ids do not become D1 reads. */
  unknownKeyMs: 1 * SECOND_MS,
  /** Born device ids an isolate remembers. */
  bornDevices: 10_000,
  /** Characters of a scope in a challenge; a longer one is left out, so that a tool name cannot fill the header. */
  scopeLength: 512,
  /** s that a browser may keep the answer to a preflight. Browsers stop at 2 h. */
  preflightSeconds: 7_200,
} as const;

/** One call, from edge to upstream. */
export const CALL = {
  /** ms a call may run, from receipt; a device setting can change it. */
  timeoutMs: 300 * SECOND_MS,
  /** ms a call may wait for a person to answer an input request. */
  inputTimeoutMs: 10 * MINUTE_MS,
  /** ms the agent has to acknowledge a call; a frozen peer is found by this. */
  ackMs: 4 * SECOND_MS,
  /** ms after which the agent acknowledges by a frame of its own; an earlier event or outcome acknowledges too. */
  ackDelayMs: 20,
  /** ms a call without anybody attached is kept for. */
  attachWindowMs: 40 * SECOND_MS,
  /** ms beyond the call's own deadline that the object waits for the agent's own timeout error. */
  deadlineGraceMs: 2 * SECOND_MS,
  /** ms that a large outcome may stand still, at the agent or at the reader, once it began to flow. */
  stallMs: 60 * SECOND_MS,
  /** ms between empty records on a reply that stands still: only a write shows that its reader is gone. */
  replyBeatMs: 10 * SECOND_MS,
  /** ms that a parked call which waited too long is remembered, so that a late retry hears why. */
  expiredMs: 1 * HOUR_MS,
  /** Bytes of one result: what an agent may send for one call. */
  maxResultBytes: 32 * MIB,
  /** ms within which several server requests of a legacy upstream join one input_required. */
  askJoinMs: 20,
} as const;

/** The tunnel between agent and object. */
export const TUNNEL = {
  /** Bytes of one message, both ways; an agent may ask for less, down to minFrameBytes. */
  maxFrameBytes: 256 * KIB,
  /** Bytes a board may negotiate down to. */
  minFrameBytes: 4 * KIB,
  /** Bytes of one frame header; what does not fit belongs into a payload. */
  maxHeaderBytes: 64 * KIB,
  /** Calls at once that an agent offers unless it says otherwise, and the most a relay uses. */
  maxConcurrentCalls: 64,
  /** Bytes of a call's answer that the agent may send before the first credit. */
  initialCreditBytes: 96 * KIB,
  /**
   * Bytes above that which a call's window has, and by which it is refilled: so a reader that keeps up always leaves
   * credit for one whole message of `initialCreditBytes`.
   */
  creditSlackBytes: 8 * KIB,
  /** Bytes a single call may have on the way at most. */
  maxWindowBytes: 1 * MIB,
  /** Bytes the object holds for all calls together. */
  heldBytes: 8 * MIB,
  /** ms between the agent's fixed `ping` texts, answered by the platform while the object sleeps. */
  pingMs: 60 * SECOND_MS,
  /** ms of silence after which the object probes before it uses a link. */
  probeAfterMs: 90 * SECOND_MS,
  /** ms the agent has to answer a probe. */
  probeMs: 3 * SECOND_MS,
  /** ms an agent has to send `hello` after the upgrade. */
  helloMs: 10 * SECOND_MS,
  /** Sockets of one device that may be between upgrade and `hello`; the oldest gives way. */
  waitingSockets: 4,
  /** Bytes per second of the slowest link that counts as alive: what is on the way extends the time for an `ack`. */
  slowBytesPerSecond: 32 * KIB,
  /** ms after which presence and grants are synchronised again when D1 did not answer. */
  syncRetryMs: 30 * SECOND_MS,
  /** ms that a caller with an unknown grant waits for the grants that a new link pulls from D1. */
  syncWaitMs: 5 * SECOND_MS,
  /** ms between `drain` and the end of a relay that shuts down in order. */
  drainMs: 5 * SECOND_MS,
  /** Delivered call ids that are told in one frame at most. */
  deliveredBatch: 100,
  /** ms a delivered call id waits for others to be told with. */
  deliveredDelayMs: 250,
} as const;

/** Full-jitter backoff of the agent: delay = random(0, min(cap, base * 2^attempt)), never below `floorMs`. */
export const BACKOFF = {
  baseMs: 500,
  capMs: 30 * SECOND_MS,
  /** ms a link must have lasted before the attempt counter starts again. */
  stableMs: 30 * SECOND_MS,
  /** ms within which an agent redials after 1001, 1006 or 1012, jittered. */
  redialMs: 1 * SECOND_MS,
} as const;

/** The agent's journal of calls. */
export const JOURNAL = {
  entries: 1_000,
  outcomeBytes: 64 * MIB,
  keepMs: 10 * MINUTE_MS,
} as const;

/** The object's fair queue in front of a busy agent. */
export const QUEUE = {
  waiting: 16,
  waitMs: 5 * SECOND_MS,
  /** ms a caller is told to wait when its own calls in flight are the limit. */
  retryAfterMs: 1 * SECOND_MS,
} as const;

/** Caps of a grant unless its owner sets others. */
export const GRANT = {
  inFlight: 8,
  parked: 4,
  listeners: 16,
  /** ms until a new token expires. */
  expiresMs: 90 * DAY_MS,
  /** Patterns in one list of a grant, and characters of one pattern. */
  patterns: 200,
  patternLength: 256,
  labelLength: 100,
} as const;

/** Legacy sessions of one device. */
export const SESSION = {
  perGrant: 8,
  perDevice: 64,
  /** ms without a request after which a session falls asleep. */
  idleMs: 10 * MINUTE_MS,
  /** ms that a sleeping session can still be woken. */
  asleepMs: 1 * DAY_MS,
  /** Rows kept for sleeping sessions of one grant. */
  asleepPerGrant: 32,
  /** ms between two writes of a session's last use. */
  touchMs: 1 * MINUTE_MS,
  /** Bytes of one session's stored capabilities and client info. */
  recordBytes: 16 * KIB,
} as const;

/** The device's catalogue. */
export const CATALOGUE = {
  maxBytes: 4 * MIB,
  maxTools: 2_000,
  /** Bytes of one SQLite value; the platform stops at 2 MB. */
  pieceBytes: 1 * MIB,
  /** ms a `server/discover` answer may be kept by a client. */
  discoverTtlMs: 60 * SECOND_MS,
  /** ms that a description waits for the first catalogue of a device that has just come online. */
  firstWaitMs: 10 * SECOND_MS,
  /** Pages the agent follows in one list. */
  maxPages: 200,
} as const;

/** The agent's upstreams. */
export const UPSTREAM = {
  /** ms an upstream has to answer the era probe. */
  probeMs: 5 * SECOND_MS,
  /** ms an upstream has to finish its handshake or lists. */
  startMs: 60 * SECOND_MS,
  /** ms a per-grant instance stays without a call. */
  idleMs: 5 * MINUTE_MS,
  /** Per-grant instances of one upstream. */
  instances: 8,
  /** Bytes of one line or HTTP body from an upstream; more ends that call, not the upstream. */
  maxMessageBytes: 40 * MIB,
  /** Bytes of stderr kept to explain a crash. */
  stderrBytes: 4 * KIB,
  /** ms between EOF and TERM, and between TERM and KILL. */
  stopMs: 2 * SECOND_MS,
  /** ms after its exit in which output of a child that is already in the pipe is still read. */
  exitDrainMs: 200,
  /** ms an upstream has to answer a readiness check, so that the agent's own `pong` is in time. */
  pingMs: 1_500,
  /** Nesting of a message from an upstream; the scanner keeps a stack, clients may recurse. */
  maxJsonDepth: 1_024,
  /** ms after a start in which a legacy upstream's notices of changed lists are compared before they are believed. */
  settleMs: 1 * SECOND_MS,
  /** ms within which several notices of changed lists cause one refresh. */
  refreshMs: 50,
  /** Bytes that may wait for an upstream that does not read its input. */
  maxQueuedBytes: 16 * MIB,
  /** Rounds of input a modern upstream may ask of one legacy caller, so that a loop ends. */
  inputRounds: 32,
  /** ms before a request is sent again that a modern upstream answered with state only, and before an SSE stream is resumed. */
  retryMs: 1 * SECOND_MS,
  /** ms that a server can make the agent wait before it resumes a stream. */
  maxRetryMs: 30 * SECOND_MS,
  /** Characters of a message from an upstream that end up in an error. */
  errorLength: 8_192,
} as const;

/** The agent's own bounds. */
export const AGENT = {
  /** ms the relay has to answer the fixed `ping`. */
  pongMs: 10 * SECOND_MS,
  /** ms for the TCP, TLS and WebSocket handshake. */
  dialMs: 15 * SECOND_MS,
  /** Bytes written to the socket and not yet taken by the system, above which chunks wait. */
  sendQueueBytes: 1 * MIB,
  /** Bytes of events and asks of one call kept for a replay; the oldest events go first. */
  eventBytes: 1 * MIB,
  /** Bytes of requests that arrive in chunks, all calls together. */
  assembleBytes: 32 * MIB,
  /** ms between two looks for outcomes that nobody fetched. */
  sweepMs: 30 * SECOND_MS,
  /** Bytes of a message kept free for the header of a chunk. */
  chunkHeaderBytes: 256,
  /** ms that calls in flight have to end in an orderly stop. */
  stopMs: 2 * SECOND_MS,
} as const;

/** Bounds of text that came from somebody else before it is shown or stored. */
export const TEXT = {
  label: 100,
  message: 500,
  closeReasonBytes: 123,
} as const;

/** Names and keys. */
export const NAMES = {
  /** Characters of a device name. */
  device: 63,
  /** Bits of a secret: device keys, owner tokens. */
  secretBits: 256,
  /** Bits of a random id; unique, but no secret. */
  idBits: 128,
} as const;

/** Public API. */
export const API = {
  maxBodyBytes: 64 * KIB,
  listRows: 1_000,
  /** ms a device's object has to answer a command of the owner. */
  objectMs: 5 * SECOND_MS,
  /** Objects asked at once for a list of devices; a Worker holds six connections open without waiting. */
  objectsAtOnce: 6,
  /** ms of the longest life a token can be given. */
  maxExpiresMs: 3_650 * DAY_MS,
  /** Characters of one value in a log line. */
  logValueLength: 500,
} as const;

/** The embedded relay, `longline serve`. */
export const SERVE = {
  /** Port of a first start without `--port`, when it is free; later starts use the one kept in the data directory. */
  defaultPort: 8787,
  /** ms the runtime has to answer its first health check. */
  readyMs: 20 * SECOND_MS,
  /** ms a start waits for the port of a relay that was killed; its runtime ends within about a second. */
  portFreeMs: 5 * SECOND_MS,
  /** ms between two looks at something outside the process. */
  pollMs: 100,
  /** ms between two looks whether the npm script that started a command is still there. */
  parentMs: 500,
  /** ms from a stop signal to the end of the process, whatever still hangs. */
  stopMs: 15 * SECOND_MS,
} as const;

/** The `longline` command. */
export const CLI = {
  /** ms a request to a relay may take. */
  requestMs: 30 * SECOND_MS,
  /** ms `npm start` waits for its own agent to be online. */
  onlineMs: 30 * SECOND_MS,
  /** ms its agent has to stop before it is ended. */
  agentStopMs: 5 * SECOND_MS,
  /** ms of life a kept token must still have to be shown again. */
  renewTokenMs: 1 * DAY_MS,
  /** Characters per line when stdout is not a terminal. */
  columns: 100,
} as const;
