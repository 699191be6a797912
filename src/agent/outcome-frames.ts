/** How a call's end becomes a frame and a payload. Pure. */
import { isUtf8 } from "node:buffer";
import { TEXT, TUNNEL, UPSTREAM } from "../limits.ts";
import type { AgentError, Result, UpstreamError } from "../tunnel/frames.ts";
import { cleanText } from "./clean-text.ts";
import { failure, type AgentFailure } from "./failure.ts";
import { ScanError } from "../tunnel/json-scan.ts";
import { canonicalResult, ResultError } from "./upstreams/result.ts";
import type { UpstreamOutcome } from "./upstreams/upstream.ts";

/** An outcome without its position, which the call's output gives. */
export type OutcomeFrame = Omit<Result, "seq"> | Omit<UpstreamError, "seq"> | Omit<AgentError, "seq">;
export interface OutcomeMessage {
  frame: OutcomeFrame;
  payload: Uint8Array | undefined;
}

/** The frame of an outcome; one that breaks a rule or a cap becomes a failure that says so. */
export function outcomeMessage(callId: string, outcome: UpstreamOutcome, maxResultBytes: number): OutcomeMessage {
  if (outcome.kind === "failed") return failureMessage(callId, outcome.failure);
  const protocol = outcome.protocol.slice(0, 256);
  if (outcome.kind === "error") {
    const message = outcome.message.slice(0, UPSTREAM.errorLength);
    const frame = { type: "error", callId, origin: "upstream", protocol, code: outcome.code, message } as const;
    // An error is one message. Its data comes along when it fits; code and text always do.
    const data = outcome.data && wellFormed(outcome.data);
    return { frame, payload: data && data.length <= TUNNEL.initialCreditBytes ? data : undefined };
  }
  try {
    const { header, payload } = canonicalResult(wellFormed(outcome.bytes));
    if (payload.length > maxResultBytes) return tooLarge(callId, payload.length, maxResultBytes);
    return { frame: { type: "result", callId, protocol, ...header }, payload };
  } catch (error) {
    if (!(error instanceof ScanError || error instanceof ResultError)) throw error;
    return failureMessage(callId, failure("upstream_failed", "unknown", `The tool server's result cannot be passed on: ${error.message}.`));
  }
}

/** A failure of ours as a frame. */
export function failureMessage(callId: string, problem: AgentFailure): OutcomeMessage {
  const message = cleanText(problem.message, TEXT.message * 2);
  const data = problem.data === undefined ? {} : { data: problem.data };
  const frame = { type: "error", callId, origin: "agent", reason: problem.reason, outcome: problem.outcome, message, ...data } as const;
  return { frame, payload: undefined };
}

function tooLarge(callId: string, size: number, cap: number): OutcomeMessage {
  return failureMessage(callId, failure("too_large", "unknown", `The result has ${size} bytes; the most is ${cap}.`, { size, cap }));
}

/** Bytes that are UTF-8 as they are; anything else is read as UTF-8 with replacement characters. */
export function wellFormed(bytes: Uint8Array): Uint8Array {
  return isUtf8(bytes) ? bytes : Buffer.from(Buffer.from(bytes).toString("utf8"), "utf8");
}
