/** Legacy requests: in a session, or without one and then stateless. Answered here or forwarded. */
import type { CallRequest, SessionFacts, SessionUse } from "../../durable/rpc.ts";
import { RPC } from "../errors.ts";
import { newCallId } from "../tunnel/frames.ts";
import { errorAnswer, resultAnswer, type Answer } from "./answer.ts";
import { readCallParams, type CallParams } from "./call-params.ts";
import type { EdgeContext } from "./context.ts";
import { EventFilter } from "./events.ts";
import { initialize } from "./legacy-handshake.ts";
import type { Forwarded } from "./forward.ts";
import { isSessionId } from "./headers.ts";
import { isObject, type RpcRequest } from "./json-rpc.ts";
import { levelRank, LOG_LEVELS } from "./meta.ts";
import { forwardRule, type MethodRule } from "./methods.ts";
import { refusalAnswer, sessionAnswer, unknownMethodAnswer } from "./refusals.ts";
import type { Shape } from "./shape.ts";
import { startRun } from "./start-run.ts";
import { ask } from "./tunnel-access.ts";
import { ASSUMED_VERSION, isModernVersion } from "./versions.ts";

/** The session a request names: one, none, or something that cannot be a session. */
export function sessionOf(context: EdgeContext): { ok: true; session: SessionUse | undefined } | { ok: false } {
  const { sessionId, version } = context.headers;
  if (sessionId === undefined) return { ok: true, session: undefined };
  if (!isSessionId(sessionId)) return { ok: false };
  const session: SessionUse = { id: sessionId };
  if (version !== undefined) session.headerVersion = version;
  if (context.switches.sessionExpiry === "strict") session.strict = true;
  return { ok: true, session };
}

/** One legacy request: its answer, or the call that gives it. */
export async function prepareLegacy(message: RpcRequest, context: EdgeContext): Promise<Answer | Forwarded> {
  if (message.method === "initialize") return initialize(message, context);
  const found = sessionOf(context);
  if (!found.ok) return sessionAnswer(message.idText, "unknown");
  const { session } = found;
  const rule = forwardRule(message.method, "legacy");
  if (rule === undefined) return local(message, session, context);
  const read = readCallParams(message, rule);
  if (!read.ok)
    return (await sessionProblem(message, session, context)) ?? errorAnswer(200, message.idText, RPC.invalidParams, read.message);
  return call(message, rule, read.params, session, context);
}

/** Methods the edge answers by itself. In a session they count as its use, and only a living session gets an answer. */
async function local(message: RpcRequest, session: SessionUse | undefined, context: EdgeContext): Promise<Answer> {
  if (message.method === "logging/setLevel") return setLevel(message, session, context);
  const used = await useSession(message, session, context);
  if (!used.ok) return used.answer;
  if (message.method !== "ping") return unknownMethodAnswer("legacy", message.idText, message.method);
  return resultAnswer(message.idText, isModernSession(used.facts) ? { resultType: "complete" } : {});
}

async function setLevel(message: RpcRequest, session: SessionUse | undefined, context: EdgeContext): Promise<Answer> {
  const level = isObject(message.params) ? message.params["level"] : undefined;
  if (typeof level !== "string" || levelRank(level) < 0) {
    const bad = errorAnswer(200, message.idText, RPC.invalidParams, `The log level must be one of ${LOG_LEVELS.join(", ")}.`);
    return (await sessionProblem(message, session, context)) ?? bad;
  }
  // Without a session there is nothing that could remember it.
  if (session === undefined) return resultAnswer(message.idText, {});
  const reply = await ask(context.access, (tunnel) => tunnel.setLogLevel(context.grant, session, level));
  return reply.ok ? resultAnswer(message.idText, {}) : refusalAnswer(context, { era: "legacy", ...message }, reply.refusal);
}

async function sessionProblem(message: RpcRequest, session: SessionUse | undefined, context: EdgeContext): Promise<Answer | null> {
  const used = await useSession(message, session, context);
  return used.ok ? null : used.answer;
}

type Used = { ok: true; facts: SessionFacts | undefined } | { ok: false; answer: Answer };

async function useSession(message: RpcRequest, session: SessionUse | undefined, context: EdgeContext): Promise<Used> {
  if (session === undefined) return { ok: true, facts: undefined };
  const reply = await ask(context.access, (tunnel) => tunnel.useSession(context.grant, session));
  if (reply.ok) return { ok: true, facts: reply.session };
  return { ok: false, answer: refusalAnswer(context, { era: "legacy", ...message }, reply.refusal) };
}

/** True for a session at the stateless revision, which a device's switch allows: its results have a type. */
function isModernSession(facts: SessionFacts | undefined): boolean {
  return facts !== undefined && isModernVersion(facts.version);
}

function call(message: RpcRequest, rule: MethodRule, params: CallParams, session: SessionUse | undefined, context: EdgeContext): Forwarded {
  const { idText, method } = message;
  const shape: Shape = { era: "legacy", idText, method, target: params.target, rule, capabilities: {} };
  const filter = new EventFilter({ tokenText: params.progress ? message.tokenText : undefined, logLevel: "all" });
  const run = startRun(context, callRequest(message, params, session, context));
  return session === undefined ? { context, shape, run, filter } : { context, shape, run, filter, session };
}

function callRequest(message: RpcRequest, params: CallParams, session: SessionUse | undefined, context: EdgeContext): CallRequest {
  // Task augmentation is not offered, and a receiver that does not offer it ignores the wish (2025-11-25, Tasks).
  const { task: _task, ...rest } = params.rest;
  const caller =
    session === undefined
      ? { client: { era: "legacy" as const, protocol: context.headers.version ?? ASSUMED_VERSION, capabilities: {} }, logLevel: "info" }
      : { session, clientId: JSON.stringify(message.id) };
  return {
    callId: newCallId(),
    grant: context.grant,
    method: message.method,
    payload: JSON.stringify(rest),
    canStream: context.canStream,
    ...caller,
    ...(params.target === undefined ? {} : { target: params.target }),
    ...(params.ref === undefined ? {} : { ref: params.ref }),
    ...(params.meta === undefined ? {} : { meta: params.meta }),
    ...(params.progress ? { progress: true } : {}),
  };
}
