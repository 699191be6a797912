/** Modern requests: each complete in itself, checked, then answered here or forwarded. */
import type { CallRequest } from "../../durable/rpc.ts";
import { RPC } from "../errors.ts";
import { newCallId } from "../tunnel/frames.ts";
import { errorAnswer, resultAnswer, type Answer } from "./answer.ts";
import { readCallParams, type CallParams } from "./call-params.ts";
import { CallRun } from "./call-run.ts";
import { carriedClientCapabilities } from "./capabilities.ts";
import type { EdgeContext } from "./context.ts";
import { discoverResult } from "./device-view.ts";
import { EventFilter } from "./events.ts";
import { forward, type Forwarded } from "./forward.ts";
import { checkNameHeader, readParamHeaders } from "./headers.ts";
import { readAnswers } from "./input-requests.ts";
import type { RpcRequest } from "./json-rpc.ts";
import { answerListen, LISTEN_METHOD } from "./listen.ts";
import { forwardRule, type MethodRule } from "./methods.ts";
import { checkLogLevel, checkModern, type ModernFacts } from "./modern-checks.ts";
import { refusalAnswer, unknownMethodAnswer } from "./refusals.ts";
import { isOurState, openState, type StateRequest } from "./request-state.ts";
import { answerResponse } from "./respond.ts";
import type { Shape } from "./shape.ts";
import { startRun } from "./start-run.ts";
import { ask } from "./tunnel-access.ts";
import { MODERN_VERSION } from "./versions.ts";

const DISCOVER = "server/discover";
const HEADER_ONLY: ModernFacts = { protocol: MODERN_VERSION, capabilities: {}, info: undefined, logLevel: undefined };

/** Answers one modern request. `headerOnly`: the device's switch lets it pass without `_meta` and `Mcp-*` headers. */
export async function answerModern(message: RpcRequest, headerOnly: boolean, context: EdgeContext): Promise<Response> {
  let facts = HEADER_ONLY;
  if (!headerOnly) {
    const checked = checkModern(message, context.headers);
    if (!checked.ok) return answerResponse(checked.answer);
    facts = checked.facts;
  } else if (message.method === "ping") {
    return answerResponse(resultAnswer(message.idText, {}));
  }
  if (message.method === DISCOVER) return answerResponse(checkLogLevel(message) ?? (await discover(message, context)));
  if (message.method === LISTEN_METHOD) {
    const badLevel = checkLogLevel(message);
    return badLevel === null ? answerListen(message, context) : answerResponse(badLevel);
  }
  const rule = forwardRule(message.method, "modern");
  if (rule === undefined) return answerResponse(unknownMethodAnswer("modern", message.idText, message.method));
  const prepared = await prepare(message, { rule, facts, headerOnly }, context);
  return "status" in prepared ? answerResponse(prepared) : forward(prepared);
}

async function discover(message: RpcRequest, context: EdgeContext): Promise<Answer> {
  const reply = await ask(context.access, (tunnel) => tunnel.describe(context.grant));
  const refused = { era: "modern", idText: message.idText, method: message.method } as const;
  return reply.ok ? resultAnswer(message.idText, discoverResult(reply.view)) : refusalAnswer(context, refused, reply.refusal);
}

interface Checked {
  rule: MethodRule;
  facts: ModernFacts;
  headerOnly: boolean;
}

/** The checks that depend on the method, then the call itself; it starts with its first step. */
async function prepare(message: RpcRequest, checked: Checked, context: EdgeContext): Promise<Answer | Forwarded> {
  const { rule, facts, headerOnly } = checked;
  const { idText } = message;
  const read = readCallParams(message, rule);
  if (rule.target !== undefined && !headerOnly) {
    const problem = checkNameHeader(context.headers, read.ok ? read.params.target : undefined);
    if (problem !== null) return errorAnswer(400, idText, problem.code, problem.message);
  }
  if (!read.ok) return errorAnswer(200, idText, RPC.invalidParams, read.message);
  const badLevel = checkLogLevel(message);
  if (badLevel !== null) return badLevel;
  const mirrored = readParamHeaders(context.headers);
  if (!mirrored.ok) return errorAnswer(400, idText, mirrored.problem.code, mirrored.problem.message);
  const { params } = read;
  const { inputResponses, requestState, ...plain } = params.rest;
  const request: StateRequest = { method: message.method, target: params.target, params: plain };
  const run =
    rule.input === true && isOurState(requestState)
      ? await resumed(idText, requestState, inputResponses, request, context)
      : startRun(context, callRequest(message, checked, params, mirrored.headers, context));
  if ("status" in run) return run;
  const shape: Shape = { era: "modern", idText, method: message.method, target: params.target, rule, capabilities: facts.capabilities };
  const filter = new EventFilter({ tokenText: params.progress ? message.tokenText : undefined, logLevel: facts.logLevel });
  return { context, shape, run, filter, request };
}

/** The parked call that a state of ours points at, to go on with the client's answers. */
async function resumed(
  idText: string,
  state: string,
  inputResponses: unknown,
  request: StateRequest,
  context: EdgeContext,
): Promise<CallRun | Answer> {
  const opened = await openState(context, request, state);
  if (!opened.ok) {
    const text =
      opened.why === "expired" ? "The requestState has expired. Call again." : "The requestState does not belong to this request.";
    return errorAnswer(200, idText, RPC.invalidParams, text);
  }
  const answers = readAnswers(inputResponses);
  const { callId, seq, asked } = opened;
  return new CallRun(context.access, context.grant, callId, (tunnel) => tunnel.resume(context.grant, callId, answers, asked), seq);
}

function callRequest(
  message: RpcRequest,
  { facts, headerOnly }: Checked,
  params: CallParams,
  paramHeaders: Record<string, string>,
  context: EdgeContext,
): CallRequest {
  return {
    callId: newCallId(),
    grant: context.grant,
    method: message.method,
    payload: JSON.stringify(params.rest),
    client: {
      era: "modern",
      protocol: facts.protocol,
      capabilities: carriedClientCapabilities(facts.capabilities),
      ...(facts.info === undefined ? {} : { info: facts.info }),
    },
    canStream: context.canStream,
    ...(params.target === undefined ? {} : { target: params.target }),
    ...(params.ref === undefined ? {} : { ref: params.ref }),
    ...(params.meta === undefined ? {} : { meta: params.meta }),
    ...(params.progress ? { progress: true } : {}),
    ...(facts.logLevel === undefined ? {} : { logLevel: facts.logLevel }),
    // Absent when nothing may be demanded of the client; empty means that it sent none.
    ...(headerOnly ? {} : { paramHeaders }),
  };
}
