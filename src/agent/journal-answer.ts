/** What the agent says of a call whose outcome is not here: as much as the journal knows (docs/protocol.md, `attach`). */
import { failure, type AgentFailure } from "./failure.ts";
import type { Journal } from "./journal.ts";

/** Undefined for a call that was never begun, as far as the journal goes. */
export function answerFromJournal(journal: Journal, callId: string): AgentFailure | undefined {
  const known = journal.get(callId);
  if (known === undefined) return undefined;
  if (known.isEarlier)
    return failure("agent_restarted", "unknown", "The agent restarted during the call. Check what it did before calling again.");
  return failure("tunnel_lost", "unknown", "The call's outcome was not fetched in time and is gone.");
}

/** A call the journal does not know. Only a whole journal can be certain. */
export function neverBegun(journal: Journal): AgentFailure {
  return failure("tunnel_lost", journal.isComplete ? "not_started" : "unknown", "The call did not reach the device.");
}
