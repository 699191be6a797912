/** `subscriptions/listen` (MCP 2026-07-28, Subscriptions): an event stream that lasts, acknowledged before anything else. */
import { RPC } from "../errors.ts";
import { LISTEN } from "../limits.ts";
import { asciiJson, LIST_KINDS, type ListenFacts } from "../tunnel/notices.ts";
import { errorAnswer } from "./answer.ts";
import type { EdgeContext } from "./context.ts";
import { isObject, type RpcRequest } from "./json-rpc.ts";
import { MAX_TARGET } from "./methods.ts";
import { openNotices } from "./notice-stream.ts";
import { LIST_FILTERS, modernNotices } from "./notices.ts";
import { refusalAnswer, unknownMethodAnswer } from "./refusals.ts";
import { answerResponse } from "./respond.ts";

/** The method, which never reaches the device: each listener is told what the device told the relay once. */
export const LISTEN_METHOD = "subscriptions/listen";

type Filter = NonNullable<ListenFacts["filter"]>;

/** Answers a listen request that passed the checks of every modern request. */
export async function answerListen(message: RpcRequest, context: EdgeContext): Promise<Response> {
  const { idText, method } = message;
  const filter = readFilter(message.params);
  if (typeof filter === "string") return answerResponse(errorAnswer(200, idText, RPC.invalidParams, filter));
  if (!context.canStream) {
    return answerResponse(errorAnswer(406, idText, RPC.invalidRequest, "This method is answered by text/event-stream only; accept it."));
  }
  // A device that never connected has told of nothing that could change.
  if (!context.isBorn) return answerResponse(unknownMethodAnswer("modern", idText, method));
  const opened = await openNotices(context, { grant: context.grant, filter }, modernNotices(idText));
  return opened instanceof Response ? opened : answerResponse(refusalAnswer(context, { era: "modern", idText, method }, opened));
}

/** What the client wants, or what is wrong with it. Members of extensions are not honoured, so they are not read. */
function readFilter(params: unknown): Filter | string {
  const wanted = isObject(params) ? params["notifications"] : undefined;
  if (!isObject(wanted)) return 'The param "notifications" must be an object.';
  for (const member of Object.values(LIST_FILTERS)) {
    if (wanted[member] !== undefined && typeof wanted[member] !== "boolean") return `The filter "${member}" must be true or false.`;
  }
  const uris = wanted["resourceSubscriptions"] ?? [];
  if (!Array.isArray(uris) || !uris.every((uri): uri is string => typeof uri === "string" && uri.length <= MAX_TARGET)) {
    return `The filter "resourceSubscriptions" must be an array of strings of at most ${MAX_TARGET} characters.`;
  }
  const resources = [...new Set(uris)];
  if (resources.length > LISTEN.resources || asciiJson(resources).length > LISTEN.resourceChars) {
    return `One listener takes at most ${LISTEN.resources} resources of ${LISTEN.resourceChars} characters together. Listen once more for the others.`;
  }
  return { lists: LIST_KINDS.filter((kind) => wanted[LIST_FILTERS[kind]] === true), resources };
}
