/**
 * GET with a session: the session's own event stream (2025-11-25, Transports, "Listening for messages"). It carries
 * notices of changes and nothing that belongs to a call; server requests stay on the stream of their call. Of two
 * streams of one session the newer one gets everything, and the older one ends: it may be a connection that broke
 * without a word.
 */
import { failureToRpcError } from "../errors.ts";
import type { ListenFacts } from "../tunnel/notices.ts";
import { errorAnswer } from "./answer.ts";
import type { EdgeContext } from "./context.ts";
import { notAcceptable } from "./http-refusals.ts";
import { sessionOf } from "./legacy.ts";
import { openNotices } from "./notice-stream.ts";
import { LEGACY_NOTICES } from "./notices.ts";
import { refusalAnswer, sessionAnswer } from "./refusals.ts";
import { answerResponse } from "./respond.ts";

/** Answers the GET of an authenticated caller. */
export async function answerSessionStream(context: EdgeContext): Promise<Response> {
  if (!context.canStream) return notAcceptable();
  const found = sessionOf(context);
  if (!found.ok || found.session === undefined || !context.isBorn) return answerResponse(sessionAnswer(undefined, "unknown"));
  const facts: ListenFacts = { grant: context.grant, session: found.session };
  const opened = await openNotices(context, facts, LEGACY_NOTICES);
  if (opened instanceof Response) return opened;
  if (opened.kind !== "failure") return answerResponse(refusalAnswer(context, { era: "legacy", idText: undefined, method: "" }, opened));
  // There is no request that a JSON-RPC answer could belong to, so the status has to say it.
  const { code, message, data } = failureToRpcError(opened.failure);
  return answerResponse(errorAnswer(opened.failure.reason === "rate_limited" ? 429 : 503, undefined, code, message, data));
}
