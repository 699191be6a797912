/**
 * Asks of a device on their way to the caller: a legacy caller gets a server request on the call's stream, a modern
 * one an `input_required` result with a state that names the parked call (design section 6).
 */
import { askKeyOf, type SessionUse } from "../../durable/rpc.ts";
import { RPC } from "../errors.ts";
import { joinCapabilities, missingCapability } from "../policy/input-capabilities.ts";
import { payloadText, type Payload } from "../tunnel/codec.ts";
import type { Ask } from "../tunnel/frames.ts";
import { failureAnswer, type Answer } from "./answer.ts";
import type { CallRun } from "./call-run.ts";
import type { EdgeContext } from "./context.ts";
import { missingCapabilityAnswer } from "./input-required.ts";
import { isObject, type JsonObject } from "./json-rpc.ts";
import { sealState, type StateRequest } from "./request-state.ts";
import type { Emit } from "./respond.ts";
import { oneLine, spliceText } from "./splice.ts";
import { ask as askObject, tell } from "./tunnel-access.ts";
import { hasUrlElicitation } from "./versions.ts";

/** One ask with its params, parsed because capabilities depend on them. */
export interface OpenAsk {
  frame: Ask;
  /** JSON text, or "" when the request has no params. */
  text: string;
  params: unknown;
}

/** Reads an ask's payload; broken params are treated as none. */
export function readAsk(frame: Ask, payload: Payload | undefined): OpenAsk {
  try {
    const text = payloadText(payload).trim();
    return { frame, text, params: text === "" ? undefined : JSON.parse(text) };
  } catch {
    return { frame, text: "", params: undefined };
  }
}

/** Sends an ask to a legacy caller. What it cannot be asked is declined at once, so that no upstream waits in vain. */
export async function relayAsk(
  context: EdgeContext,
  run: CallRun,
  caller: { idText: string; session: SessionUse | undefined },
  ask: OpenAsk,
  emit: Emit,
): Promise<Answer | null> {
  const { session } = caller;
  const facts = run.session;
  if (session === undefined || facts === undefined) {
    await tell(context.access, (tunnel) => tunnel.cancel(run.callId, "caller_left"));
    return failureAnswer(caller.idText, {
      reason: "upstream_failed",
      outcome: "unknown",
      message: "The tool asks for input, which needs a session. Send initialize, and use its session id.",
    });
  }
  const { frame, params } = ask;
  const key = askKeyOf(run.callId, frame.askId);
  const isUrl = frame.method === "elicitation/create" && isObject(params) && params["mode"] === "url";
  const missing = missingCapability(facts.capabilities, frame.method, params);
  if (!context.canStream || missing !== null || (isUrl && !hasUrlElicitation(facts.version))) {
    const decline = JSON.stringify({ code: RPC.methodNotFound, message: "This client cannot be asked for that." });
    await askObject(context.access, (tunnel) => tunnel.answerInSession(context.grant, session, key, "error", decline));
    return null;
  }
  const needsId = isUrl && isObject(params) && params["elicitationId"] === undefined;
  const text = needsId ? spliceText(`"elicitationId":${JSON.stringify(key)}`, ask.text) : ask.text;
  const member = text === "" ? "" : `,"params":${oneLine(text)}`;
  await emit(`{"jsonrpc":"2.0","id":${JSON.stringify(key)},"method":"${frame.method}"${member}}`);
  return null;
}

/** Ends this round of a modern caller: what the tool asks, keyed by ask id, and a state for the retry. */
export async function inputRequiredAnswer(
  context: EdgeContext,
  run: CallRun,
  caller: { idText: string; capabilities: JsonObject; request: StateRequest },
  asks: readonly OpenAsk[],
): Promise<Answer> {
  let required: JsonObject | null = null;
  for (const { frame, params } of asks) {
    const missing = missingCapability(caller.capabilities, frame.method, params);
    if (missing !== null) required = joinCapabilities(required ?? {}, missing);
  }
  if (required !== null) {
    await tell(context.access, (tunnel) => tunnel.cancel(run.callId, "caller_left"));
    return missingCapabilityAnswer(caller.idText, required);
  }
  const requests = asks.map((ask) => `${JSON.stringify(ask.frame.askId)}:${requestText(ask)}`).join(",");
  const pointer = { callId: run.callId, seq: run.seq, asked: asks.map(({ frame }) => frame.askId) };
  const state = JSON.stringify(await sealState(context, caller.request, pointer));
  const result = `{"resultType":"input_required","inputRequests":{${requests}},"requestState":${state}}`;
  return { status: 200, body: `{"jsonrpc":"2.0","id":${caller.idText},"result":${result}}` };
}

function requestText({ frame, text, params }: OpenAsk): string {
  if (text === "") return `{"method":"${frame.method}"}`;
  // The stateless revision has no elicitation id.
  const own = isObject(params) && "elicitationId" in params ? JSON.stringify({ ...params, elicitationId: undefined }) : oneLine(text);
  return `{"method":"${frame.method}","params":${own}}`;
}

/** The client's answers of a retry by ask id, as JSON text. Whatever is not an object is no answer and is asked for again. */
export function readAnswers(inputResponses: unknown): Record<string, string> {
  if (!isObject(inputResponses)) return {};
  const entries = Object.entries(inputResponses).filter(([, value]) => isObject(value));
  return Object.fromEntries(entries.map(([key, value]) => [key, JSON.stringify(value)]));
}
