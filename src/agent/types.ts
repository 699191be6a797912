/** What the agent is started with and what it tells: the surface towards the command line and the tests. */
import type { UpstreamState } from "../tunnel/frames.ts";
import type { Asker } from "./ask/question.ts";
import type { LocalPolicy } from "./local-policy.ts";

/** How calls of different callers share an upstream (design section 6, "Upstream instances"). */
export type Isolation = "grant" | "shared";

/** What is put before an upstream's names towards clients; without it they stay as they are. */
export interface Naming {
  /** Before names of tools and prompts. */
  prefix?: string;
  /** Before addresses of resources; they must stay addresses, such as `files+file:///a`. */
  resourcePrefix?: string;
}

export interface StdioConfig extends Naming {
  kind: "stdio";
  alias: string;
  command: string;
  args: readonly string[];
  /** Added to the allow-listed environment. */
  env?: Readonly<Record<string, string>>;
  cwd?: string;
  isolation?: Isolation;
}

export interface HttpConfig extends Naming {
  kind: "http";
  alias: string;
  url: URL;
  /** The upstream's own credentials; never a caller's. */
  headers?: Readonly<Record<string, string>>;
  isolation?: Isolation;
}

export interface BuiltinConfig {
  kind: "builtin";
  alias: string;
  tools: readonly BuiltinTool[];
  /** Shown as the server's name and version. */
  serverInfo?: { name: string; version: string };
  instructions?: string;
  /** What the tools were made from: only another value makes a configuration another one. */
  settings?: unknown;
  /** Values the tools were given that are nobody else's business. */
  secrets?: readonly string[];
}

/** One tool that the configuration describes. */
export interface DeclaredConfig {
  kind: "declared";
  alias: string;
  tool: DeclaredTool;
}

/** A stream of JSON messages that becomes a resource. */
export interface FeedConfig {
  kind: "feed";
  alias: string;
  /** ws, wss: a WebSocket. http, https: server-sent events. */
  url: URL;
  uri: string;
  title?: string;
  description?: string;
  headers?: Readonly<Record<string, string>>;
  /** Said on a WebSocket as soon as it is open; a text `{uuid}` becomes a random one. */
  hello?: Readonly<Record<string, unknown>>;
}

export type UpstreamConfig = StdioConfig | HttpConfig | BuiltinConfig | DeclaredConfig | FeedConfig;

/** How a tool of the agent's own is listed. */
interface ListedTool {
  name: string;
  title?: string;
  description: string;
  inputSchema: Record<string, unknown>;
  outputSchema?: Record<string, unknown>;
  annotations?: Record<string, unknown>;
}

/** A tool made of a command or a request. Arguments are checked against its schema first. */
export interface DeclaredTool extends ListedTool {
  run: DeclaredCommand | DeclaredRequest;
  result: ResultMapping;
  timeoutMs: number;
  /** Bytes of its output. */
  maxOutputBytes: number;
}

export interface DeclaredCommand {
  kind: "command";
  /** Program and arguments; `{name}` stands for an argument of the call. */
  command: readonly string[];
  stdin?: string;
  env?: Readonly<Record<string, string>>;
  cwd?: string;
}

export interface DeclaredRequest {
  kind: "request";
  method: string;
  /** With `{name}` in path segments and query values. */
  url: string;
  headers?: Readonly<Record<string, string>>;
  /** `json`, `form`: the arguments that the URL does not take. Else a JSON value with `{name}` in its texts. */
  body: "none" | "json" | "form" | { template: unknown };
}

/** What of the output becomes the result. Places are JSON pointers (RFC 6901), also into JSON inside a string. */
export interface ResultMapping {
  kind: "text" | "image" | "structured";
  path?: string;
  /** Of an image; without it what the server says. */
  mimeType?: string;
  /** The result is an error when this place holds anything but false, null, 0 or "". */
  errorPath?: string;
  /** What is wrong then, for the caller. */
  errorTextPath?: string;
}

/** A tool that runs inside the agent. */
export interface BuiltinTool extends ListedTool {
  /** Shown with the tool. `ASKS_FIRST` makes calls start as questions to a person. */
  _meta?: Record<string, unknown>;
  /** Throwing makes a tool error with the message of a `ToolError`, or a fixed text for anything else. */
  run(args: Record<string, unknown>, context: BuiltinContext): Promise<BuiltinResult> | BuiltinResult;
}

export interface BuiltinContext {
  signal: AbortSignal;
  /** Told when the caller wants progress. */
  progress(done: number, total: number | undefined, message?: string): void;
  /** Told when the caller wants log notifications of that level. */
  log(level: "debug" | "info" | "notice" | "warning" | "error", data: unknown): void;
  /** What the caller asked to be told, so that nothing is prepared for nobody. */
  wants: { progress: boolean; log: boolean };
  /** The agent around the tool. */
  agent: ToolAgent;
}

/** What a tool may use of the agent. */
export interface ToolAgent {
  /** Ends what a tool starts when the agent is killed. */
  watch: { add(pid: number): void; remove(pid: number): void };
  /** The agent's state, without secrets. */
  report(): AgentReport;
}

/** The agent's state for a support bundle; cleaned and free of secrets. */
export interface AgentReport {
  version: string;
  status: AgentStatus;
  /** Recent events, oldest first. */
  events: readonly { at: string; event: unknown }[];
  /** The end of the log of calls. */
  callLog: string;
}

export interface BuiltinResult {
  content: readonly Record<string, unknown>[];
  structuredContent?: unknown;
  isError?: boolean;
}

/** Why the agent is over. */
export type DoneCode = "stopped" | "revoked" | "other_installation" | "version" | "not_authorised" | "refused";

/** What happens, for a log; never holds a key, a token or a payload. */
export type AgentEvent =
  | { type: "connecting"; url: string }
  | { type: "online"; generation: number; device: string; mcpUrl: string }
  | { type: "offline"; reason: string; retryInMs: number | null }
  | { type: "upstream"; alias: string; state: UpstreamState["state"]; problem: string | null }
  | { type: "catalogue"; digest: string; tools: number }
  | { type: "call"; callId: string; method: string; target: string | undefined; grant: string; label: string }
  | { type: "progress"; callId: string; progress: number; total: number | undefined; message: string | undefined }
  | { type: "call_end"; callId: string; outcome: string }
  | { type: "stopped"; isStopped: boolean }
  | { type: "warning"; message: string };

export interface AgentOptions {
  /** Origin of the relay. */
  relay: URL;
  deviceKey: string;
  /** Installation id and journal; made with mode 0700. */
  stateDir: string;
  upstreams: readonly UpstreamConfig[];
  takeover?: boolean;
  log: (event: AgentEvent) => void;
  signal?: AbortSignal;
  /** Version told to relay and upstreams. */
  version?: string;
  /** Bytes of one tunnel message; smaller for boards. */
  maxFrameBytes?: number;
  maxConcurrentCalls?: number;
  /** What this machine allows; without it everything but running commands. */
  policy?: LocalPolicy;
  /** How a person is asked; without it a dialog on the desktop. */
  asker?: Asker;
}

export interface AgentStatus {
  link: "offline" | "connecting" | "online" | "stopped";
  generation: number | null;
  upstreams: UpstreamState[];
  inFlight: number;
}

export interface AgentHandle {
  state(): AgentStatus;
  /** Puts another policy in force, from the next call on. */
  setPolicy(policy: LocalPolicy): void;
  /** Offers something else from now on. What stays the same goes on running; calls of what does not have a moment to end. */
  reconfigure(upstreams: readonly UpstreamConfig[]): void;
  stop(reason: string): Promise<void>;
  /** Settles when the agent is over for good; never rejects. */
  done: Promise<{ code: DoneCode; message: string }>;
}
