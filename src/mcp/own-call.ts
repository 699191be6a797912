/** A tool call of the relay's own console, on behalf of a signed-in person: the same path as a client's from here on. */
import { newCallId } from "../tunnel/frames.ts";
import { VERSION } from "../version.ts";
import type { EdgeContext } from "./context.ts";
import { EventFilter } from "./events.ts";
import { forward } from "./forward.ts";
import { forwardRule } from "./methods.ts";
import type { Shape } from "./shape.ts";
import { startRun } from "./start-run.ts";
import { MODERN_VERSION } from "./versions.ts";

const METHOD = "tools/call";

/** Calls a tool through the grant of `context`; the answer is one JSON-RPC response. It declares no input capability. */
export async function callTool(context: EdgeContext, tool: string, args: Record<string, unknown>): Promise<Response> {
  const rule = forwardRule(METHOD, "modern");
  if (rule === undefined) throw new Error("tool calls are not forwarded");
  const shape: Shape = { era: "modern", idText: "1", method: METHOD, target: tool, rule, capabilities: {} };
  const run = startRun(context, {
    callId: newCallId(),
    grant: context.grant,
    method: METHOD,
    target: tool,
    payload: JSON.stringify({ arguments: args }),
    client: { era: "modern", protocol: MODERN_VERSION, capabilities: {}, info: { name: "Longline console", version: VERSION } },
    canStream: false,
  });
  const filter = new EventFilter({ tokenText: undefined, logLevel: undefined });
  return await forward({ context, shape, run, filter, request: { method: METHOD, target: tool, params: { arguments: args } } });
}
