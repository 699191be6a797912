/** What an agent does, as lines for a person. */
import { cleanText } from "../agent/clean-text.ts";
import type { AgentEvent } from "../agent/types.ts";

/** An event as one line. */
export function describeEvent(event: AgentEvent): string {
  switch (event.type) {
    case "connecting":
      return `connecting to ${event.url}`;
    case "online":
      return `online as ${cleanText(event.device)}: ${cleanText(event.mcpUrl)}`;
    case "offline":
      return `offline: ${cleanText(event.reason)}${event.retryInMs === null ? "" : `; next try in ${(event.retryInMs / 1000).toFixed(1)} s`}`;
    case "upstream":
      return `upstream ${event.alias}: ${event.state}${event.problem === null ? "" : ` (${cleanText(event.problem)})`}`;
    case "catalogue":
      return `offers ${event.tools} ${event.tools === 1 ? "tool" : "tools"}`;
    case "call":
      return `call ${event.callId} ${cleanText(event.method)}${event.target === undefined ? "" : ` ${cleanText(event.target)}`}`;
    case "progress":
      return `call ${event.callId} is at ${event.progress}${event.total === undefined ? "" : `/${event.total}`}`;
    case "call_end":
      return `call ${event.callId} ended: ${cleanText(event.outcome)}`;
    case "stopped":
      return event.isStopped ? "stopped: no call is run until `resume`" : "resumed: calls are run again";
    case "warning":
      return `warning: ${cleanText(event.message)}`;
    default:
      return event satisfies never;
  }
}
