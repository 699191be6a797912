/** What the dispatcher knows of an upstream, whatever it is. */
import type { ClientFacts, UpstreamState } from "../../tunnel/frames.ts";
import type { AgentFailure } from "../failure.ts";
import type { CheckedParams } from "./params.ts";

/** One call as an upstream gets it. */
export interface UpstreamCall {
  method: string;
  target: string | undefined;
  params: CheckedParams;
  grant: string;
  client: ClientFacts;
  meta: Record<string, unknown> | undefined;
  progress: boolean;
  /** Lowest level of log notifications that are wanted; absent means none. */
  logLevel: string | undefined;
  paramHeaders: Readonly<Record<string, string>> | undefined;
  /** Other names of the target by which the relay decided. */
  names: readonly string[] | undefined;
}

export type InputMethod = "elicitation/create" | "sampling/createMessage" | "roots/list";

/** What became of an input request: the client's result or error as JSON text, or nobody will answer. */
export type AskAnswer = { kind: "result" | "error"; body: string } | { kind: "cancelled" };

/** Where a call's events and input requests go. */
export interface CallSink {
  /** Right before the upstream gets the call: from here on it may have run. */
  begun(): void;
  event(method: "notifications/progress" | "notifications/message", params: Uint8Array): void;
  /** Never rejects. The signal withdraws the question. */
  ask(method: InputMethod, params: Uint8Array, signal?: AbortSignal): Promise<AskAnswer>;
}

/** How a call ended at the upstream. Bytes are JSON text. */
export type UpstreamOutcome =
  | { kind: "result"; protocol: string; bytes: Uint8Array }
  | { kind: "error"; protocol: string; code: number; message: string; data: Uint8Array | undefined }
  | { kind: "failed"; failure: AgentFailure };

/** Which kinds of things changed. */
export type ListKind = "tools" | "prompts" | "resources";

/** An upstream's part of the catalogue; items as JSON text. */
export interface UpstreamLists {
  discover: {
    capabilities: Record<string, unknown>;
    serverInfo: Record<string, unknown>;
    instructions?: string;
    supportedVersions?: string[];
    /** Put before names of tools and prompts, and before addresses of resources, of some upstream. */
    prefixes?: { names: string[]; resources: string[] };
  };
  tools: readonly string[];
  resources: readonly string[];
  resourceTemplates: readonly string[];
  prompts: readonly string[];
}

/** What an upstream tells by itself. */
export interface UpstreamListener {
  /** Its state or era changed. */
  state(): void;
  /** Its lists were read; `changed` names those that are told to clients. */
  lists(changed: readonly ListKind[]): void;
  /** With a grant it concerns nobody else: it changed in that grant's own instance. */
  resourceUpdated(uri: string, grant?: string): void;
  warning(message: string): void;
}

export interface Upstream {
  readonly alias: string;
  /** Begins; what goes wrong shows in the state. */
  start(): void;
  /** Never rejects. */
  run(call: UpstreamCall, sink: CallSink, signal: AbortSignal): Promise<UpstreamOutcome>;
  lists(): UpstreamLists | null;
  state(): UpstreamState;
  /** A real round trip, bounded; the state tells the rest. */
  probe(): Promise<void>;
  /** A grant wants to hear of a resource, or no longer; without one, nobody wants it any more. Repeating either changes nothing. */
  subscribe(uri: string, grant: string): Promise<UpstreamOutcome>;
  unsubscribe(uri: string, grant: string): Promise<UpstreamOutcome>;
  stop(): Promise<void>;
}
