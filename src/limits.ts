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
  /** Bytes of a larger body that are read and dropped, so that its sender gets to the 413, and ms that may take. */
  dropBytes: 32 * MIB,
  dropMs: 5 * SECOND_MS,
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
  /** ms by which a look at the deadlines can be late before it counts as the relay's own delay, not the agent's. */
  lateMs: 500,
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
  /** Bytes of a chunk's own header, at most: its stream name and an offset of up to eleven digits. */
  chunkHeaderBytes: 96,
  /** Bytes of an answer's own header, at most: a call id and an ask id of 256 characters that JSON may escape. */
  answerHeaderBytes: 2 * KIB,
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
  /** Bytes of answers that the object holds for all calls together, or has lent to the agent to send. */
  heldBytes: 8 * MIB,
  /** Bytes of requests, questions and answers to them that the object holds for all calls together; one of the largest kind fits. */
  heldRequestBytes: 8 * MIB,
  /** ms that a large request may take from the edge to its object. */
  bodyMs: 10 * SECOND_MS,
  /** ms between the agent's fixed `ping` texts, answered by the platform while the object sleeps. */
  pingMs: 60 * SECOND_MS,
  /** ms of silence after which the object probes before it uses a link. */
  probeAfterMs: 90 * SECOND_MS,
  /** ms the agent has to answer a probe. */
  probeMs: 3 * SECOND_MS,
  /** ms an agent has to send `hello` after the upgrade. */
  helloMs: 10 * SECOND_MS,
  /** Agents that may dial in at once in one isolate; more are turned away and come again after their backoff. */
  dialsAtOnce: 32,
  /** Sockets of one device that may be between upgrade and `hello`; the oldest gives way. */
  waitingSockets: 4,
  /** Bytes per second of the slowest link that counts as alive: what is on the way extends the time for an `ack`. */
  slowBytesPerSecond: 32 * KIB,
  /** ms after which presence and grants are synchronised again when D1 did not answer. */
  syncRetryMs: 30 * SECOND_MS,
  /** ms that a caller with an unknown grant waits for the grants that a new link pulls from D1. */
  syncWaitMs: 5 * SECOND_MS,
  /** ms that the clocks of the edge and of an object may differ. */
  clockSkewMs: 10 * SECOND_MS,
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
  /** ms an outcome is kept that nobody fetches, and that the id of an ended call is known. */
  keepMs: 10 * MINUTE_MS,
  /** ms that an id without an end is known: longer than any call takes. */
  begunMs: 1 * DAY_MS,
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
  /** ms of the sliding window that calls per minute are counted in. */
  rateWindowMs: 1 * MINUTE_MS,
  inFlight: 8,
  parked: 4,
  listeners: 16,
  /** Listeners that a grant can be given at most: each holds a socket at the object. */
  maxListeners: 256,
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

/** Listeners for change notices: `subscriptions/listen`, and the stream of a legacy session. */
export const LISTEN = {
  /** Resources that one listener or session may be subscribed to. */
  resources: 256,
  /** Characters of the resources one listener names, all together: they travel in a header of the upgrade. */
  resourceChars: 32 * KIB,
  /** ms a new listener or subscriber waits for the device to take a subscription; one that is away takes it later. */
  subscribeMs: 5 * SECOND_MS,
  /** ms the object has to open a listener; longer than it waits for the device. */
  openMs: 10 * SECOND_MS,
  /** Characters of notices that wait for a reader who takes none; more ends the listener. */
  waitingChars: 256 * KIB,
  /** ms a reader has to take the end of its stream. */
  endMs: 5 * SECOND_MS,
  /** Tries to find the object again after it was lost, and ms between them. */
  reopenTries: 5,
  reopenPauseMs: 200,
  /** Bytes the agent may send in answer to a subscription of the relay itself. */
  answerBytes: 16 * KIB,
  /** Updated resources an agent remembers while no link is there. */
  missed: 1_000,
} as const;

/** The console's pages. */
export const CONSOLE = {
  /** Characters of one text of a result that are shown, and of one image in Base64; what is larger is said to be. */
  resultChars: 200_000,
  imageChars: 8 * MIB,
  /** Characters of a tool's description. */
  descriptionChars: 4_000,
  /** ms that the grant lives with which an owner tries tools, and ms it must have left to be used again. */
  grantMs: 1 * DAY_MS,
  grantLeftMs: 1 * HOUR_MS,
  /** Rows of the audit on one page. */
  auditRows: 50,
  /** Hours and days that the plots cover. */
  plotHours: 48,
  plotDays: 30,
} as const;

/** Calls shown as they happen. */
export const LIVE = {
  /** People who watch one device at once. */
  watchers: 32,
  /** Calls in flight that are listed when somebody begins to watch. */
  calls: 100,
  /** ms between two progress messages of one call: more than eyes take in. */
  progressMs: 100,
  /** ms between two looks whether whoever watches is still signed in and may see the device. The object is not asked. */
  checkMs: 1 * MINUTE_MS,
  /** Messages that wait for a page that takes none; more ends the stream. */
  waiting: 1_000,
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
  /** ms after which a start that goes on is told of, and again. */
  startNoticeMs: 5 * SECOND_MS,
  /** ms a per-grant instance stays without a call. */
  idleMs: 5 * MINUTE_MS,
  /** Per-grant instances of one upstream. */
  instances: 8,
  /** Bytes of one line or HTTP body from an upstream; more ends that call, not the upstream. */
  maxMessageBytes: 40 * MIB,
  /** ms an idle connection to an HTTP upstream is kept; as long as the SDK's own client keeps one. */
  idleSocketMs: 4 * SECOND_MS,
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
  /** Bytes of one request in chunks that the relay may have on the way. */
  requestWindowBytes: 512 * KIB,
  /** Bytes of requests that arrive in chunks, all calls together. */
  assembleBytes: 32 * MIB,
  /** ms between two looks for outcomes that nobody fetched. */
  sweepMs: 30 * SECOND_MS,
  /** Bytes of a message kept free for the header of a chunk. */
  chunkHeaderBytes: 256,
  /** ms between two looks whether the machine slept or changed its network, and ms by which its clock then was off. */
  watchMs: 5 * SECOND_MS,
  jumpMs: 10 * SECOND_MS,
  /** ms the relay has to answer a ping after that: a link that is dead then should not keep callers waiting. */
  wakePongMs: 5 * SECOND_MS,
  /** ms that calls in flight have to end in an orderly stop. */
  stopMs: 2 * SECOND_MS,
} as const;

/** The device's own policy, its questions to a person, and its log of calls. */
export const POLICY = {
  /** s a person has to answer, unless the config says otherwise: an answer still reaches clients that give up after 60 s. */
  askSeconds: 50,
  /** s that the config may give a person at most; the call's own time limit ends a question too. */
  maxAskSeconds: 3_600,
  /** Questions that wait behind the one that is shown; more calls are refused. */
  waitingQuestions: 16,
  /** Characters of a call's arguments that are shown to the person. */
  shownArguments: 2_000,
  /** Rules of the config. */
  rules: 200,
  /** Bytes of the log of calls before it becomes its one predecessor. */
  logBytes: 4 * MIB,
  /** Characters of arguments in the log, when the config asks for them. */
  loggedArguments: 4_096,
  /** ms between two looks whether somebody stopped all calls; a new call looks by itself. */
  stopPollMs: 250,
} as const;

/** Tools inside the agent. Sizes and times that the config can set are what holds when it does not. */
export const TOOLS = {
  /** s a shell command may run, and the most that the config can say. */
  shellSeconds: 60,
  maxShellSeconds: 86_400,
  /** Bytes of each of a command's two outputs that are kept for the result; a result of both still fits a call. */
  shellOutputBytes: 1 * MIB,
  maxShellOutputBytes: 8 * MIB,
  /** ms and bytes that output is gathered before it is told, so that a chatty command does not become a flood. */
  streamMs: 100,
  streamBytes: 8 * KIB,
  /** Pixels of a screenshot's longer side: models scale down what is larger. */
  screenshotSide: 1_568,
  minScreenshotSide: 64,
  maxScreenshotSide: 8_192,
  /** Bytes of a screenshot; some clients refuse larger images. */
  screenshotBytes: 1_000_000,
  minScreenshotBytes: 10_000,
  maxScreenshotBytes: 16 * MIB,
  /** Pixels of a captured screen: four screens of 8K. */
  capturePixels: 4 * 7_680 * 4_320,
  /** Bytes a capture program may give. */
  captureBytes: 256 * MIB,
  /** ms a helper program (capture, clipboard, battery) may take. */
  helperMs: 15 * SECOND_MS,
  /** Bytes of what a helper program may say where nothing is expected. */
  helperMessageBytes: 64 * KIB,
  /** ms after which a program that opens an address and still runs counts as having opened it. */
  openMs: 3 * SECOND_MS,
  /** Bytes of text on the clipboard, both ways. */
  clipboardBytes: 1 * MIB,
  /** Characters of an address to open. */
  urlLength: 8_192,
  /** Events of the agent that a support bundle holds, and bytes of the end of the call log. */
  bundleEvents: 500,
  bundleLogBytes: 256 * KIB,
} as const;

/** The agent's configuration file. */
export const CONFIG = {
  /** Bytes of the file; more is not a configuration. */
  maxBytes: 1 * MIB,
  /** ms after the last change of the file before it is read: editors write in several steps. */
  settleMs: 100,
  /** ms that calls of an upstream have to end when the configuration takes it away. */
  drainMs: 5 * SECOND_MS,
  /** Mistakes that are shown at once. */
  mistakes: 30,
  /** Different letters up to which a name is taken for a slip of another. */
  slips: 2,
} as const;

/** Tools that the configuration describes. */
export const DECLARED = {
  /** ms for one run unless set, and at most. */
  timeoutMs: 1 * MINUTE_MS,
  maxTimeoutMs: 60 * MINUTE_MS,
  /** Bytes of output unless set, and at most; a result in base64 has to stay below the cap of a call. */
  outputBytes: 1 * MIB,
  maxOutputBytes: 20 * MIB,
  /** Characters of what failed that are passed on. */
  errorLength: 2_000,
  /** Characters of one argument in a command line; the system takes 128 KiB. */
  argumentLength: 100_000,
} as const;

/** Event feeds. */
export const FEED = {
  /** Messages a resource holds; the oldest give way. */
  messages: 100,
  /** Bytes of one message, and of all that are held. */
  messageBytes: 64 * KIB,
  heldBytes: 1 * MIB,
  /** ms between two notices of the same feed, so that a busy one does not flood its subscribers. */
  noticeMs: 200,
  /** ms between two pings of a WebSocket, one of which may stay unanswered. */
  pingMs: 30 * SECOND_MS,
  /** ms for the connection and the first answer. */
  connectMs: 15 * SECOND_MS,
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
  /** Characters of a prefix before an upstream's names, and prefixes of one device. */
  prefix: 64,
  prefixes: 100,
  /** Characters of a foreign name in a message. */
  shown: 128,
  /** Bits of a secret: device keys, owner tokens. */
  secretBits: 256,
  /** Bits of a random id; unique, but no secret. */
  idBits: 128,
} as const;

/** Public API. */
export const API = {
  /** Origins that can be added to those of the configuration. */
  origins: 20,
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

/** Signing in at a browser, invitations, and what an unauthenticated stranger may cost. */
export const WEB = {
  /** ms after which a person has to sign in again. */
  sessionMs: 7 * DAY_MS,
  /** Characters of a path to go on to after signing in; an OAuth authorization request has to fit. */
  nextLength: 8 * KIB,
  /** ms that a set-up link can be used. */
  setupMs: 1 * HOUR_MS,
  /** ms that an invitation can be taken unless its author says otherwise, and at most. */
  inviteMs: 7 * DAY_MS,
  maxInviteMs: 90 * DAY_MS,
  /** Characters of a person's name. */
  nameLength: 100,
  /** Bytes of a form. */
  maxFormBytes: 16 * KIB,
  /** ms that a sign-in at an outside issuer may take. */
  oidcMs: 10 * MINUTE_MS,
  /** ms an outside issuer has to answer. */
  issuerMs: 10 * SECOND_MS,
  /** s of clock difference to an outside issuer that is forgiven. */
  issuerSkewSeconds: 30,
} as const;

/** The authorization server. The library's own store counts in seconds. */
export const OAUTH = {
  /** s an access token lives; a client renews it with its refresh token. */
  accessTokenSeconds: 3_600,
  /** s a registration by RFC 7591 is kept without a token request; the library renews it at half of that. */
  registrationSeconds: 90 * 24 * 3_600,
  /** s that the library's store needs at least: a grant with less left issues nothing. */
  minLifeSeconds: 60,
  /** ms a person has to decide on the consent page. */
  consentMs: 10 * MINUTE_MS,
  /** ms in which a refresh token that was just used gives the same answer again, so that parallel refreshes agree. */
  sameAnswerMs: 1 * MINUTE_MS,
  /** ms after which a refresh that never finished no longer holds up the next one. */
  refreshClaimMs: 15 * SECOND_MS,
  /** ms between two looks for the answer of a refresh that runs elsewhere. */
  refreshPollMs: 50,
  /** ms that a used code or refresh token is remembered, so that its reuse is noticed. */
  usedMs: 30 * DAY_MS,
  /** ms within which a scope that was declined is not asked for again. */
  declinedMs: 10 * MINUTE_MS,
  /** Bytes of one token, revocation or registration request. */
  maxBodyBytes: 32 * KIB,
  /** Redirect URIs of one registered client, and characters of one. */
  redirectUris: 20,
  redirectUriLength: 2_048,
  /** Characters of a client's name as it is shown and stored. */
  clientNameLength: 100,
  /** Characters of a `state`: it comes back in a URL. */
  stateLength: 4_096,
  /** Scopes of one request that are looked at. */
  scopes: 64,
  /** Days of access that the consent page offers, the first preselected. */
  lifeDays: [90, 30, 7, 1],
} as const;

/** Pairing (RFC 8628). */
export const PAIRING = {
  /** ms a code lives. */
  lifeMs: 10 * MINUTE_MS,
  /** Wrong characters of the agent's screen after which a code is dead. */
  wrongTries: 5,
  /** Devices that can wait at the same time, on the whole relay. */
  pending: 20,
  /** Of these, from one address where it is known, so that one stranger cannot take every place. */
  pendingPerAddress: 5,
  /** Letters of a user code, of an alphabet of 20: 34 bits, guessed only by somebody who is signed in. */
  codeLength: 8,
  /** Characters on the agent's screen that the owner repeats. */
  screenLength: 2,
  /** ms between two questions of an agent whether it was approved. */
  pollMs: 3 * SECOND_MS,
  /** Characters of the name a device may ask for. */
  nameLength: 63,
} as const;

/**
 * What strangers may cost, per isolate: docs/adr/0030-what-is-counted-exactly.md. What has to be exact is in PAIRING and
 * counted by D1.
 */
export const ABUSE = {
  /** Requests in a minute: of one address where it is known, else of the whole relay. */
  perMinute: {
    /** Tokens, keys and codes that opened nothing. */
    failures: { address: 20, relay: 600 },
    /** Requests to a device without any credential, as every client's first one is. */
    unauthenticated: { address: 120, relay: 6_000 },
    /** Pairings begun. */
    pairings: { address: 5, relay: 30 },
    /** Polls of devices that wait to be paired: twenty of them, each every three seconds, and some air. */
    polls: { address: 120, relay: 1_200 },
    /** OAuth clients registered. */
    registrations: { address: 10, relay: 60 },
    /** Authorization requests of people who are not signed in: each reads a client, or fetches its document. */
    authorizations: { address: 30, relay: 300 },
    /** Codes, refresh tokens and clients that opened nothing. A service sends those of all its people from few addresses. */
    exchanges: { address: 60, relay: 600 },
    /** Codes looked up and links opened. */
    codes: { address: 30, relay: 300 },
  },
  /** Addresses that are remembered at once. */
  rememberedKeys: 10_000,
} as const;

/** What the owner changes of a device. */
export const DEVICE = {
  /** ms that a former name's URL works after a rename. */
  formerNameMs: 30 * DAY_MS,
  /** ms that an older device key works beside a newer one that nobody has used yet. */
  keyOverlapMs: 24 * HOUR_MS,
  /** Characters of a note on a grant. */
  noteLength: 1_000,
} as const;

/** The audit: one row per call. */
export const AUDIT = {
  /** Rows of one batch, and ms a row waits for others. */
  batchRows: 100,
  delayMs: 250,
  /** ms D1 has to take a batch before the object keeps it. */
  writeMs: 5 * SECOND_MS,
  /** ms between two tries to hand kept rows to D1. */
  retryMs: 30 * SECOND_MS,
  /** Rows an object keeps while D1 is away; the oldest give way. */
  keptRows: 10_000,
  /** Calls of the last minute that a waking object reads to go on counting; a cap above this is not worth more. */
  countedRows: 10_000,
  /** Refused attempts per minute of one grant that become rows; more of them say nothing new. */
  refusedPerMinute: 30,
  /** ms of the windows in which attempts without a credential that opens anything are counted together. */
  strangerWindowMs: 10 * MINUTE_MS,
  /** ms between two writes of such counts by one isolate. A Worker may go on for 30 s after its answer. */
  strangerDelayMs: 5 * SECOND_MS,
  /** Characters of a method, target or client name. */
  textLength: 256,
  /** Days that rows are kept unless set, and at most. */
  keepDays: 90,
  maxKeepDays: 3_650,
  /** ms between two sweeps of one writer, and rows of one sweep. */
  sweepMs: 1 * HOUR_MS,
  sweepRows: 1_000,
  /** Rows of one answer unless asked for otherwise, and at most. */
  listRows: 100,
  maxListRows: 10_000,
} as const;

/** The embedded relay, `longline serve`. */
export const SERVE = {
  /** Port of a first start without `--port`, when it is free; later starts use the one kept in the data directory. */
  defaultPort: 8787,
  /** ms the runtime has to answer its first health check. */
  readyMs: 20 * SECOND_MS,
  /** ms a start waits for the port of a relay that was killed; its runtime ends within about a second. */
  portFreeMs: 5 * SECOND_MS,
  /** Characters of one line of the runtime's log; a line of ours holds at most a few values of API.logValueLength. */
  logLineLength: 16_384,
  /** ms between two looks at something outside the process. */
  pollMs: 100,
  /** ms that the last words to callers have to leave a runtime that ends. */
  lastWordsMs: 250,
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
  /** ms between two looks of a terminal's state line, and between two lines about the progress of one call in a log. */
  repaintMs: 1 * SECOND_MS,
  progressMs: 1 * SECOND_MS,
  /** Characters per line when stdout is not a terminal. */
  columns: 100,
  /** ms between two looks for new audit rows, and rows of one look. */
  followMs: 1 * SECOND_MS,
  followRows: 1_000,
  /** ms a deployed relay has to answer: a new certificate takes its time; ms between two looks. */
  deployHealthMs: 3 * MINUTE_MS,
  deployPollMs: 2 * SECOND_MS,
  /** ms between two looks whether calls are still in flight before an upgrade. */
  drainPollMs: 500,
} as const;

/** Waking a device that sleeps. */
export const WAKE = {
  /** ms between two posts to one device's wake URL. */
  pauseMs: 1 * MINUTE_MS,
  /** ms that calls wait for the device after one. */
  waitMs: 20 * SECOND_MS,
  /** ms the wake service has to answer. */
  postMs: 5 * SECOND_MS,
} as const;

/** `longline doctor`. */
export const DOCTOR = {
  /** ms for each step towards the relay. */
  stepMs: 10 * SECOND_MS,
  /** ms of clock difference that is worth a word, and that is a fault: certificates and tokens have dates. */
  skewMs: 30 * SECOND_MS,
  badSkewMs: 5 * MINUTE_MS,
  /** ms of life a certificate of the relay should still have. */
  certificateMs: 7 * DAY_MS,
  /** ms an upstream has to start and answer. */
  upstreamMs: 30 * SECOND_MS,
} as const;

/** `longline connect`, the client's side over stdio. */
export const CONNECT = {
  /** ms a relay that is away, or restarts, is tried again for one message. */
  patienceMs: 30 * SECOND_MS,
  /** ms without a byte after which a stream counts as lost; a relay writes a comment at least every 15 s. */
  silentMs: 60 * SECOND_MS,
  /** ms before the session's own stream is opened again, and at most. */
  streamPauseMs: 1 * SECOND_MS,
  streamPauseMaxMs: 30 * SECOND_MS,
  /** ms that requests in flight have to end when the client left, and ms to end the session; clients kill after 2 s. */
  endMs: 1 * SECOND_MS,
  goodbyeMs: 500,
  /** ms a person has to sign in. */
  signInMs: 10 * MINUTE_MS,
  /** ms of life an access token must still have to be used. */
  freshMs: 60 * SECOND_MS,
  /** Subscriptions that are made again in a new session. */
  subscriptions: 256,
} as const;
