/**
 * A forwarded call from its first step to its answer. Events go out as they happen; the caller's leaving cancels a
 * modern call and never a legacy one; the agent may forget the outcome once it is written.
 */
import type { SessionUse } from "../../durable/rpc.ts";
import type { Failure } from "../errors.ts";
import { CALL, EDGE } from "../limits.ts";
import { payloadText, type Payload } from "../tunnel/codec.ts";
import type { Result } from "../tunnel/frames.ts";
import { failureAnswer, internalAnswer, type Answer } from "./answer.ts";
import type { CallRun, Step } from "./call-run.ts";
import type { EdgeContext } from "./context.ts";
import type { EventFilter } from "./events.ts";
import { inputRequiredAnswer, readAsk, relayAsk, type OpenAsk } from "./input-requests.ts";
import { missingCapabilityAnswer } from "./input-required.ts";
import { isObject } from "./json-rpc.ts";
import { resultFrameAnswer, type ResultPayload } from "./outcome.ts";
import { isSilent, refusalAnswer } from "./refusals.ts";
import type { StateRequest } from "./request-state.ts";
import { respond, type Emit } from "./respond.ts";
import type { Shape } from "./shape.ts";
import { outcomeWritten } from "./start-run.ts";
import { tell } from "./tunnel-access.ts";
import { upstreamErrorAnswer } from "./upstream-error.ts";
import { isModernVersion } from "./versions.ts";

/** Everything one forwarded call needs. */
export interface Forwarded {
  context: EdgeContext;
  shape: Shape;
  run: CallRun;
  filter: EventFilter;
  /** The legacy session, if the call belongs to one. */
  session?: SessionUse;
  /** Of a modern call: what a retry has to repeat. */
  request?: StateRequest;
}

/** Runs one call and answers the HTTP request with it. */
export function forward(call: Forwarded): Promise<Response> {
  const { context, shape } = call;
  return respond((emit) => runForwarded(call, emit), {
    idText: shape.idText,
    canStream: context.canStream,
    keepAliveMs: context.keepAliveMs,
    signal: context.request.signal,
    waitUntil: (work) => context.waitUntil(work),
    onGone: () => callerLeft(call),
    report: (error) => context.access.report(error),
  });
}

/** The caller's connection ended. Modern: the call is cancelled. Legacy: it runs on, only nobody reads it any more. */
export function callerLeft(call: Forwarded): void {
  call.run.release();
  if (call.shape.era === "legacy") return;
  call.context.waitUntil(tell(call.context.access, (tunnel) => tunnel.cancel(call.run.callId, "caller_left")));
}

/** Runs one call to its answer. */
export async function runForwarded(call: Forwarded, emit: Emit): Promise<Answer> {
  for (;;) {
    const step = await call.run.next();
    const answer = await takeStep(call, step, emit);
    if (answer !== null) return answer;
  }
}

async function takeStep(call: Forwarded, step: Step, emit: Emit): Promise<Answer | null> {
  const { context, shape, run } = call;
  switch (step.kind) {
    case "event": {
      const text = call.filter.text(step.frame.method, textOf(step.payload));
      if (text !== null) await emit(text);
      return null;
    }
    case "ask":
      if (shape.era === "modern") return collectAsks(call, readAsk(step.frame, step.payload), emit);
      return relayAsk(context, run, { idText: shape.idText, session: call.session }, readAsk(step.frame, step.payload), emit);
    case "result":
      return ended(call, await resultAnswer(call, step.frame, step.payload));
    case "error":
      return ended(call, errorStepAnswer(shape, step));
    case "refused":
      return refusalAnswer(context, shape, step.refusal);
    case "released":
      break; // this side gave up, so there is nobody to answer
  }
  return { status: 200, body: null };
}

function textOf(payload: Payload | undefined): string {
  try {
    return payloadText(payload);
  } catch {
    return ""; // not UTF-8: nothing that could be shown
  }
}

function errorStepAnswer(shape: Shape, step: Extract<Step, { kind: "error" }>): Answer {
  const { frame } = step;
  if (frame.origin === "upstream") return upstreamErrorAnswer(shape, frame, textOf(step.payload));
  const failure: Failure = { reason: frame.reason, outcome: frame.outcome, message: frame.message };
  if (frame.data !== undefined) failure.data = frame.data;
  const required = frame.data?.["requiredCapabilities"];
  if (shape.era === "modern" && isObject(required)) return missingCapabilityAnswer(shape.idText, required, frame.data?.["upstream"]);
  if (isSilent(shape.era, failure)) return { status: 200, body: null };
  return failureAnswer(shape.idText, failure);
}

async function resultAnswer(call: Forwarded, frame: Result, payload: Payload | undefined): Promise<Answer> {
  const { run } = call;
  const shape = run.session !== undefined && isModernVersion(run.session.version) ? { ...call.shape, isModernSession: true } : call.shape;
  let content: ResultPayload = frame.bytes === undefined ? textOf(payload) : run.payload(frame);
  if (frame.resultType === "input_required" && typeof content !== "string") {
    const whole = await gather(content, EDGE.maxRequestBytes);
    if (whole === null) return failureAnswer(shape.idText, tooLarge(frame.bytes ?? 0));
    content = whole;
  }
  return resultFrameAnswer(shape, frame, content);
}

function tooLarge(size: number): Failure {
  return { reason: "too_large", outcome: "unknown", data: { size, cap: EDGE.maxRequestBytes } };
}

/** The whole of a small chunked payload: an input round has to fit into the request that answers it. */
async function gather(pieces: AsyncIterable<Uint8Array>, cap: number): Promise<string | null> {
  const decoder = new TextDecoder();
  let text = "";
  let size = 0;
  for await (const piece of pieces) {
    size += piece.length;
    if (size > cap) return null;
    text += decoder.decode(piece, { stream: true });
  }
  return text + decoder.decode();
}

/** After the outcome is written nobody will ask for it again, for there is no resume: the agent may forget it. */
function ended(call: Forwarded, answer: Answer): Answer {
  const { context, run } = call;
  return {
    ...answer,
    done: () => {
      run.release();
      outcomeWritten(context, run.callId);
    },
  };
}

/** What is pending within a short time joins one answer; an outcome in that time wins. */
async function collectAsks(call: Forwarded, first: OpenAsk, emit: Emit): Promise<Answer> {
  const { context, run, shape, request } = call;
  if (request === undefined) return internalAnswer(shape.idText);
  const asks = [first];
  const { promise: window, resolve: close } = Promise.withResolvers<null>();
  const timer = setTimeout(() => close(null), CALL.askJoinMs);
  try {
    for (;;) {
      const step = await Promise.race([run.next(), window]);
      if (step === null) break;
      if (step.kind === "ask") {
        asks.push(readAsk(step.frame, step.payload));
        continue;
      }
      const answer = await takeStep(call, step, emit);
      if (answer !== null) return answer;
    }
  } finally {
    clearTimeout(timer);
  }
  // The call is parked at the agent and, once it is told, at the object; nothing of it is read until the retry.
  run.release();
  await tell(context.access, (tunnel) => tunnel.detach(run.callId));
  return inputRequiredAnswer(context, run, { idText: shape.idText, capabilities: shape.capabilities, request }, asks);
}
