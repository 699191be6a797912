/** Tools that run inside the agent, as an upstream of the stateless era. */
import { failure } from "../failure.ts";
import type { BuiltinConfig, BuiltinContext, BuiltinResult, BuiltinTool, ToolAgent } from "../types.ts";
import type { UpstreamState } from "../../tunnel/frames.ts";
import { lastMember, parseValue, scanMembers, valueOf } from "../../tunnel/json-scan.ts";
import { isLogWanted, MODERN_REVISION } from "./revisions.ts";
import type { CallSink, Upstream, UpstreamCall, UpstreamListener, UpstreamLists, UpstreamOutcome } from "./upstream.ts";

/** A failure of a tool whose text is meant for the caller. */
export class ToolError extends Error {
  override readonly name = "ToolError";
}

const encoder = new TextEncoder();
const METHOD_NOT_FOUND = -32601;
const INVALID_PARAMS = -32602;

export class BuiltinUpstream implements Upstream {
  readonly alias: string;
  readonly #tools: ReadonlyMap<string, BuiltinTool>;
  readonly #listener: UpstreamListener;
  readonly #agent: ToolAgent;
  readonly #lists: UpstreamLists;
  #state: UpstreamState["state"] = "starting";
  #probedAt: number | null = null;

  constructor(config: BuiltinConfig, version: string, listener: UpstreamListener, agent: ToolAgent) {
    this.alias = config.alias;
    this.#agent = agent;
    this.#listener = listener;
    this.#tools = new Map(config.tools.map((tool) => [tool.name, tool]));
    this.#lists = {
      discover: {
        capabilities: { tools: {}, logging: {} },
        serverInfo: { ...(config.serverInfo ?? { name: "longline-builtin", version }) },
        ...(config.instructions === undefined ? {} : { instructions: config.instructions }),
        supportedVersions: [MODERN_REVISION],
      },
      tools: config.tools.map(describe),
      resources: [],
      resourceTemplates: [],
      prompts: [],
    };
  }

  start(): void {
    this.#state = "ready";
    this.#listener.state();
    this.#listener.lists([]);
  }

  lists(): UpstreamLists | null {
    return this.#state === "starting" ? null : this.#lists;
  }

  state(): UpstreamState {
    return {
      alias: this.alias.slice(0, 256),
      state: this.#state,
      era: "modern",
      lastRoundTripMs: this.#probedAt === null ? null : 0,
      lastRoundTripAt: this.#probedAt,
      problem: null,
    };
  }

  async run(call: UpstreamCall, sink: CallSink, signal: AbortSignal): Promise<UpstreamOutcome> {
    if (call.method === "tools/list") return result({ tools: this.#lists.tools.map((tool) => JSON.parse(tool) as unknown) });
    if (call.method !== "tools/call") return refused(METHOD_NOT_FOUND, "Method not found");
    const tool = this.#tools.get(call.target ?? "");
    if (!tool) return refused(INVALID_PARAMS, "Unknown tool");
    const args = readArguments(call);
    if (!args) return refused(INVALID_PARAMS, "The arguments are not an object");
    sink.begun();
    return await runTool(tool, args, contextOf(call, sink, signal, this.#agent));
  }

  async probe(): Promise<void> {
    this.#probedAt = Date.now();
  }

  async subscribe(): Promise<UpstreamOutcome> {
    return refused(METHOD_NOT_FOUND, "Method not found");
  }

  async unsubscribe(): Promise<UpstreamOutcome> {
    return refused(METHOD_NOT_FOUND, "Method not found");
  }

  async stop(): Promise<void> {
    this.#state = "stopped";
  }
}

/** Its `run` is no JSON and stays out. */
function describe(tool: BuiltinTool): string {
  return JSON.stringify(tool);
}

function readArguments(call: UpstreamCall): Record<string, unknown> | null {
  const { bytes } = call.params;
  const member = lastMember(scanMembers(bytes), "arguments");
  const value = member ? parseValue(valueOf(bytes, member)) : {};
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : null;
}

async function runTool(tool: BuiltinTool, args: Record<string, unknown>, context: BuiltinContext): Promise<UpstreamOutcome> {
  try {
    return result(await tool.run(args, context));
  } catch (error) {
    if (context.signal.aborted) return { kind: "failed", failure: failure("cancelled", "unknown", "The call was cancelled.") };
    const text = error instanceof ToolError ? error.message : "The tool failed.";
    return result({ content: [{ type: "text", text }], isError: true });
  }
}

function contextOf(call: UpstreamCall, sink: CallSink, signal: AbortSignal, agent: ToolAgent): BuiltinContext {
  const tell = (method: "notifications/progress" | "notifications/message", params: Record<string, unknown>) => {
    if (!signal.aborted) sink.event(method, encoder.encode(JSON.stringify(params)));
  };
  return {
    signal,
    agent,
    wants: { progress: call.progress, log: call.logLevel !== undefined },
    progress: (done, total, message) => {
      if (call.progress) tell("notifications/progress", { progress: done, total, message });
    },
    log: (level, data) => {
      if (isLogWanted(level, call.logLevel)) tell("notifications/message", { level, logger: call.target, data });
    },
  };
}

function result(value: BuiltinResult | Record<string, unknown>): UpstreamOutcome {
  return { kind: "result", protocol: MODERN_REVISION, bytes: encoder.encode(JSON.stringify({ resultType: "complete", ...value })) };
}

function refused(code: number, message: string): UpstreamOutcome {
  return { kind: "error", protocol: MODERN_REVISION, code, message, data: undefined };
}
