/**
 * The raw lane: calls travel beside the SDK client on the same connection, so that nothing is stripped or renumbered
 * and one big result costs one call. A lane belongs to one connection of one upstream.
 */
import type { Transport } from "@modelcontextprotocol/client";
import type { AgentFailure } from "../failure.ts";

/** How a raw request ended. Bytes are JSON text as the upstream wrote it. */
export type RawOutcome =
  | { kind: "result"; bytes: Uint8Array }
  | { kind: "error"; code: number; message: string; data: Uint8Array | undefined }
  | { kind: "failed"; failure: AgentFailure };

/** A request of a legacy upstream towards the client. */
export interface ServerRequest {
  /** Its id as JSON text: it goes back exactly as it came. */
  id: string;
  method: string;
  params: Uint8Array;
}

/** A notification; `params` is `{}` when it has none. */
export interface Notification {
  method: string;
  params: Uint8Array;
}

/** What belongs to one request for certain: by progress token, or because it came on the request's own stream. */
export interface RawListener {
  notification(message: Notification): void;
  request(message: ServerRequest): void;
  /** The request has its outcome. Called before the next message is looked at, which therefore cannot belong to it. */
  over?(): void;
}

/** What the connection says outside any request. */
export interface LaneListener extends RawListener {
  /** A server request was withdrawn by the upstream. */
  withdrawn(id: string): void;
  closed(failure: AgentFailure): void;
  /** Something odd that is ignored, for the log. */
  odd(message: string): void;
}

export interface RawCall {
  id: string;
  /** Never rejects. */
  settled: Promise<RawOutcome>;
  /** Cancels at the upstream; `settled` then fails as cancelled. Does nothing once it has settled. */
  cancel(reason: string): void;
}

export interface RawRequest {
  method: string;
  /** Builds the params, given the id that is also the progress token. */
  params: (id: string) => string;
  /** Extra headers of an HTTP upstream. */
  headers?: Readonly<Record<string, string>>;
}

export interface Lane {
  /** For the SDK client: negotiation, listen. */
  readonly transport: Transport;
  /** Server requests arrive on the stream of the call they belong to. */
  readonly hasOwnStreams: boolean;
  listener: LaneListener;
  request(request: RawRequest, listener: RawListener): RawCall;
  /** Answers a server request; `body` is JSON text of a result or an error object. */
  respond(id: string, kind: "result" | "error", body: string): void;
  close(): Promise<void>;
}

/** Ignores everything; a lane starts with it. */
export const SILENT: LaneListener = {
  notification: () => undefined,
  request: () => undefined,
  withdrawn: () => undefined,
  closed: () => undefined,
  odd: () => undefined,
};
