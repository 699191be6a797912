/** Failures on the agent's side of an upstream, as values. */
import type { Outcome, Reason } from "../errors.ts";

export interface AgentFailure {
  reason: Reason;
  outcome: Outcome;
  /** For a person; cleaned, bounded, free of secrets. */
  message: string;
  data?: Record<string, unknown>;
}

/** Carries a failure through code that throws. */
export class FailureError extends Error {
  override readonly name = "FailureError";
  readonly failure: AgentFailure;
  constructor(failure: AgentFailure) {
    super(failure.message);
    this.failure = failure;
  }
}

/** A failure as a value. */
export function failure(reason: Reason, outcome: Outcome, message: string, data?: Record<string, unknown>): AgentFailure {
  return { reason, outcome, message, ...(data ? { data } : {}) };
}

/** The agent was asked to stop; whether the call had reached its upstream. */
export function leaving(hasBegun: boolean): AgentFailure {
  return hasBegun
    ? failure(
        "agent_restarted",
        "unknown",
        "The agent on the device was stopped during the call. Check what the tool did before calling again.",
      )
    : failure("agent_restarted", "not_started", "The agent on the device was stopped before the call began. Call again when it is back.");
}

/** What was thrown, as a failure; an unknown error's own text stays inside. */
export function failureOf(error: unknown, fallback: AgentFailure): AgentFailure {
  return error instanceof FailureError ? error.failure : fallback;
}
