/** Opens one connection to an upstream and finds out its era, with the SDK client (design section 2). */
import { Client } from "@modelcontextprotocol/client";
import { UPSTREAM } from "../../limits.ts";
import { cleanText } from "../clean-text.ts";
import { failure, FailureError } from "../failure.ts";
import { HttpLane } from "./http-transport.ts";
import type { Lane } from "./lane.ts";
import { StdioLane } from "./stdio-transport.ts";

/** What the upstream said of itself. */
export interface Facts {
  era: "modern" | "legacy";
  /** Revision spoken on this connection. */
  protocol: string;
  capabilities: Record<string, unknown>;
  serverInfo: Record<string, unknown>;
  instructions?: string;
  supportedVersions?: string[];
}

export interface Connection {
  lane: Lane;
  client: Client;
  facts: Facts;
}

export interface ConnectOptions {
  makeLane: () => Lane;
  /** `auto` asks for the stateless revision first; `legacy` shakes hands at once. */
  want: "auto" | "legacy";
  capabilities: Record<string, unknown>;
  version: string;
  signal: AbortSignal;
}

/** Connects. Rejects with a FailureError that says why the upstream cannot be used. */
export async function connect(options: ConnectOptions): Promise<Connection> {
  if (options.want === "legacy") return await attempt(options, "legacy");
  try {
    return await attempt(options, "auto");
  } catch (error) {
    if (options.signal.aborted) throw error;
    // The probe ended the server, or was left unanswered over HTTP: a legacy server is the other possibility.
    return await attempt(options, "legacy");
  }
}

async function attempt(options: ConnectOptions, mode: "auto" | "legacy"): Promise<Connection> {
  const lane = options.makeLane();
  const client = new Client(
    { name: "longline-agent", version: options.version },
    {
      capabilities: options.capabilities,
      versionNegotiation: { mode, probe: { timeoutMs: UPSTREAM.probeMs } },
    },
  );
  const stop = () => void lane.close();
  options.signal.addEventListener("abort", stop, { once: true });
  try {
    await client.connect(lane.transport, { timeout: UPSTREAM.startMs });
    const facts = readFacts(client);
    if (lane instanceof HttpLane) lane.negotiated(facts.era, facts.protocol);
    return { lane, client, facts };
  } catch (error) {
    // Before the lane is closed, which is a reason of its own.
    const reason = connectProblem(lane, error);
    await lane.close();
    throw new FailureError(failure("upstream_failed", "not_started", reason));
  } finally {
    options.signal.removeEventListener("abort", stop);
  }
}

function connectProblem(lane: Lane, error: unknown): string {
  if (lane instanceof StdioLane && lane.problem !== null) return lane.problem;
  if (lane instanceof HttpLane) return `The tool server could not be reached or spoken to (${httpProblem(error)}).`;
  const words = lane instanceof StdioLane ? lane.lastWords : "";
  return `The tool server did not finish its handshake.${words === "" ? "" : ` It says: ${words}`}`;
}

function httpProblem(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  if (typeof cause === "object" && cause !== null && "code" in cause && typeof cause.code === "string") return cleanText(cause.code, 64);
  const data = typeof error === "object" && error !== null && "data" in error ? error.data : undefined;
  if (typeof data === "object" && data !== null && "status" in data && typeof data.status === "number") return `HTTP ${data.status}`;
  return "no answer that the protocol knows";
}

function readFacts(client: Client): Facts {
  const instructions = client.getInstructions();
  const discover = client.getDiscoverResult();
  return {
    era: client.getProtocolEra() === "modern" ? "modern" : "legacy",
    protocol: client.getNegotiatedProtocolVersion() ?? "",
    capabilities: { ...client.getServerCapabilities() },
    serverInfo: { name: "unnamed", version: "0", ...client.getServerVersion() },
    ...(instructions === undefined ? {} : { instructions }),
    ...(discover === undefined ? {} : { supportedVersions: [...discover.supportedVersions] }),
  };
}
