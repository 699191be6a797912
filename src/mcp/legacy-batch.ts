/**
 * Batches, which 2025-03-26 alone has: in a session of that version, or with neither session nor version header. Each
 * element is checked and answered by itself.
 */
import { RPC } from "../errors.ts";
import { EDGE } from "../limits.ts";
import { errorAnswer, internalAnswer, type Answer } from "./answer.ts";
import type { EdgeContext } from "./context.ts";
import { callerLeft, runForwarded, type Forwarded } from "./forward.ts";
import type { RpcMessage } from "./json-rpc.ts";
import { prepareLegacy, sessionOf } from "./legacy.ts";
import { accepted, takeNotification, takeResponse } from "./legacy-messages.ts";
import { refusalAnswer } from "./refusals.ts";
import { answerResponse, respond, type Emit } from "./respond.ts";
import { ask } from "./tunnel-access.ts";
import { BATCH_VERSION } from "./versions.ts";

const encoder = new TextEncoder();

function refuse(message: string): Response {
  return answerResponse(errorAnswer(400, undefined, RPC.invalidRequest, message));
}

/** Answers a batch. */
export async function answerBatch(messages: readonly RpcMessage[], context: EdgeContext): Promise<Response> {
  const { version, sessionId } = context.headers;
  if (messages.length === 0) return refuse("A batch must not be empty.");
  if (messages.length > EDGE.maxBatch) return refuse(`A batch holds at most ${EDGE.maxBatch} messages.`);
  if (sessionId === undefined && version !== undefined) return refuse("This protocol version has no batches.");
  if (sessionId !== undefined) {
    const problem = await sessionProblem(context);
    if (problem !== null) return problem;
  }
  const calls = new Set<Forwarded>();
  const asksNothing = messages.every((message) => message.kind === "notification" || message.kind === "response");
  const work = (emit: Emit): Promise<Answer> => answerAll(messages, context, calls, emit);
  if (asksNothing) {
    const answer = await work(async () => false);
    return answer.body === null ? accepted() : answerResponse(answer);
  }
  return respond(work, {
    idText: undefined,
    canStream: context.canStream,
    keepAliveMs: context.keepAliveMs,
    signal: context.request.signal,
    waitUntil: (promise) => context.waitUntil(promise),
    onGone: () => {
      for (const call of calls) callerLeft(call);
    },
    report: (error) => context.access.report(error),
  });
}

async function sessionProblem(context: EdgeContext): Promise<Response | null> {
  const found = sessionOf(context);
  if (!found.ok || found.session === undefined)
    return answerResponse(refusalAnswer(context, SESSION_CHECK, { kind: "session", why: "unknown" }));
  const { session } = found;
  const reply = await ask(context.access, (tunnel) => tunnel.useSession(context.grant, session));
  if (!reply.ok) return answerResponse(refusalAnswer(context, SESSION_CHECK, reply.refusal));
  return reply.session.version === BATCH_VERSION ? null : refuse("The protocol version of this session has no batches.");
}

const SESSION_CHECK = { era: "legacy", idText: undefined, method: "" } as const;

/** All elements, a few at a time, their answers in the batch's order. */
async function answerAll(messages: readonly RpcMessage[], context: EdgeContext, calls: Set<Forwarded>, emit: Emit): Promise<Answer> {
  const answers: (Answer | null)[] = messages.map(() => null);
  let next = 0;
  const lane = async (): Promise<void> => {
    for (let at = next++; at < messages.length; at = next++) {
      const message = messages[at];
      if (message !== undefined) answers[at] = await answerOne(message, context, calls, emit);
    }
  };
  await Promise.all(Array.from({ length: EDGE.batchLanes }, lane));
  return joined(answers.filter((answer) => answer !== null && answer.body !== null) as Answer[]);
}

async function answerOne(message: RpcMessage, context: EdgeContext, calls: Set<Forwarded>, emit: Emit): Promise<Answer | null> {
  try {
    switch (message.kind) {
      case "invalid":
        return errorAnswer(400, message.idText, message.code, message.message);
      case "notification":
        return await takeNotification(message, context);
      case "response":
        return await takeResponse(message, context);
      case "request":
        break;
    }
    if (message.method === "initialize") {
      return errorAnswer(400, message.idText, RPC.invalidRequest, "initialize must not be part of a batch.");
    }
    const prepared = await prepareLegacy(message, context);
    if ("status" in prepared) return prepared;
    calls.add(prepared);
    return await runForwarded(prepared, emit);
  } catch (error) {
    context.access.report(error);
    return internalAnswer(message.kind === "request" ? message.idText : undefined);
  }
}

/** Several answers as one: an array of responses. Null body when there is nothing to say. */
function joined(answers: readonly Answer[]): Answer {
  const done = (written: boolean): void => {
    for (const answer of answers) answer.done?.(written);
  };
  if (answers.length === 0) return { status: 202, body: null, done };
  const texts = answers.map(({ body }) => body).filter((body) => typeof body === "string");
  const body = texts.length === answers.length ? `[${texts.join(",")}]` : pieces(answers);
  return { status: 200, body, done };
}

async function* pieces(answers: readonly Answer[]): AsyncGenerator<Uint8Array, void, void> {
  for (const [index, { body }] of answers.entries()) {
    yield encoder.encode(index === 0 ? "[" : ",");
    if (typeof body === "string") yield encoder.encode(body);
    else if (body !== null) yield* body;
  }
  yield encoder.encode("]");
}
