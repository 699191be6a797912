/** What the agent is started with and what it tells: the surface towards the command line and the tests. */
import type { UpstreamState } from "../tunnel/frames.ts";

/** How calls of different callers share an upstream (design section 6, "Upstream instances"). */
export type Isolation = "grant" | "shared";

export interface StdioConfig {
  kind: "stdio";
  alias: string;
  command: string;
  args: readonly string[];
  /** Added to the allow-listed environment. */
  env?: Readonly<Record<string, string>>;
  cwd?: string;
  isolation?: Isolation;
}

export interface HttpConfig {
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
}

export type UpstreamConfig = StdioConfig | HttpConfig | BuiltinConfig;

/** A tool that runs inside the agent. */
export interface BuiltinTool {
  name: string;
  title?: string;
  description: string;
  inputSchema: Record<string, unknown>;
  outputSchema?: Record<string, unknown>;
  annotations?: Record<string, unknown>;
  /** Throwing makes a tool error with the message of a `ToolError`, or a fixed text for anything else. */
  run(args: Record<string, unknown>, context: BuiltinContext): Promise<BuiltinResult> | BuiltinResult;
}

export interface BuiltinContext {
  signal: AbortSignal;
  progress(done: number, total: number, message?: string): void;
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
  | { type: "call"; callId: string; method: string; target: string | undefined; grant: string }
  | { type: "call_end"; callId: string; outcome: string }
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
}

export interface AgentStatus {
  link: "offline" | "connecting" | "online" | "stopped";
  generation: number | null;
  upstreams: UpstreamState[];
  inFlight: number;
}

export interface AgentHandle {
  state(): AgentStatus;
  stop(reason: string): Promise<void>;
  /** Settles when the agent is over for good; never rejects. */
  done: Promise<{ code: DoneCode; message: string }>;
}
