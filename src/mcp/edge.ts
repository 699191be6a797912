/**
 * The MCP endpoint of one device: from an authenticated HTTP request to its response. The order of the checks is
 * binding; each probe of a client's has one answer only.
 */
import { RPC } from "../errors.ts";
import { errorAnswer, type Answer } from "./answer.ts";
import { readText } from "./body.ts";
import { classifyNotification, classifyRequest, mayRespond } from "./classify.ts";
import type { EdgeContext } from "./context.ts";
import { forward } from "./forward.ts";
import { headersTooLarge, isJsonContent, type RequestHeaders } from "./headers.ts";
import { bodyTooLarge, headersOverCap, methodNotAllowed, notJson } from "./http-refusals.ts";
import { readBody, type RpcMessage, type RpcNotification, type RpcResponse } from "./json-rpc.ts";
import { answerBatch } from "./legacy-batch.ts";
import { prepareLegacy } from "./legacy.ts";
import { answerSessionStream } from "./legacy-stream.ts";
import { accepted, endSession, takeNotification, takeResponse } from "./legacy-messages.ts";
import { answerModern } from "./modern.ts";
import { unsupportedVersionAnswer } from "./modern-checks.ts";
import { answerResponse } from "./respond.ts";
import { isModernVersion } from "./versions.ts";

/**
 * What is refused before anybody is asked who they are: methods that cannot mean anything, and headers over the cap.
 * Null means: go on to authentication.
 */
export function refuseEarly(request: Request, headers: RequestHeaders): Response | null {
  if (headersTooLarge(headers)) return headersOverCap();
  if (request.method === "POST") return null;
  if (request.method === "DELETE" && headers.sessionId !== undefined) return null;
  if (request.method === "GET" && headers.sessionId !== undefined) return null;
  return methodNotAllowed(headers.sessionId === undefined ? "POST" : "GET, POST, DELETE");
}

/** Answers an authenticated request. */
export async function handleMcp(context: EdgeContext): Promise<Response> {
  const { request } = context;
  if (request.method === "DELETE") {
    const problem = await endSession(context);
    return problem === null ? new Response(null, { status: 204 }) : answerResponse(problem);
  }
  if (request.method !== "POST") return answerSessionStream(context);
  if (!isJsonContent(request.headers.get("content-type"))) return notJson();
  const read = await readText(request);
  if (!read.ok && read.why === "too_large") return bodyTooLarge();
  if (!read.ok) return answerResponse(errorAnswer(400, undefined, RPC.parseError, "The body is not UTF-8."));
  const body = readBody(read.text);
  return body.kind === "batch" ? answerBatch(body.messages, context) : answerMessage(body.message, context);
}

async function answerMessage(message: RpcMessage, context: EdgeContext): Promise<Response> {
  switch (message.kind) {
    case "invalid":
      return answerResponse(errorAnswer(400, message.idText, message.code, message.message));
    case "notification":
      return acceptedOr(await answerNotification(message, context));
    case "response":
      return acceptedOr(await answerResponseMessage(message, context));
    case "request":
      break;
  }
  const era = classifyRequest(message, context.headers, context.switches);
  if (era.era === "modern") return answerModern(message, era.headerOnly, context);
  const prepared = await prepareLegacy(message, context);
  return "status" in prepared ? answerResponse(prepared) : forward(prepared);
}

async function answerResponseMessage(message: RpcResponse, context: EdgeContext): Promise<Answer | null> {
  if (mayRespond(context.headers, context.switches)) return takeResponse(message, context);
  return errorAnswer(400, undefined, RPC.invalidRequest, "This protocol version has no responses from clients.");
}

/** A modern notification is accepted and means nothing: ids are not unique across clients, so no cancel can be meant. */
async function answerNotification(message: RpcNotification, context: EdgeContext): Promise<Answer | null> {
  const { headers, switches } = context;
  if (classifyNotification(message, headers, switches).era === "legacy") return takeNotification(message, context);
  const { version } = headers;
  return version === undefined || isModernVersion(version) ? null : unsupportedVersionAnswer(undefined, version);
}

function acceptedOr(problem: Answer | null): Response {
  return problem === null ? accepted() : answerResponse(problem);
}
