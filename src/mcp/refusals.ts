/** The object's refusals as answers, by era. The only place where a refusal becomes bytes. */
import type { Refusal } from "../../durable/rpc.ts";
import { type Failure, RPC } from "../errors.ts";
import { errorAnswer, failureAnswer, type Answer } from "./answer.ts";
import type { EdgeContext } from "./context.ts";
import { rpcErrorText } from "./json-rpc.ts";

/** What the refused request was; all that its answer depends on. */
export interface Refused {
  era: "modern" | "legacy";
  idText: string | undefined;
  method: string;
  target?: string | undefined;
}

/** The answer for a refusal. */
export function refusalAnswer(context: EdgeContext, refused: Refused, refusal: Refusal): Answer {
  const { idText, era } = refused;
  switch (refusal.kind) {
    case "grant":
      return {
        ...errorAnswer(401, idText, RPC.invalidRequest, "The access token is not valid for this device any more."),
        http: context.unauthorised(),
      };
    case "scope": {
      const body = rpcErrorText(idText, RPC.invalidRequest, "The access token does not cover this.", { scopes: refusal.scopes });
      return { status: 403, body, http: context.insufficientScope(refusal.scopes, body) };
    }
    case "absent":
      return absentAnswer(refused);
    case "header":
      return errorAnswer(400, idText, RPC.headerMismatch, refusal.message);
    case "params":
      return errorAnswer(200, idText, RPC.invalidParams, refusal.message);
    case "session":
      return sessionAnswer(idText, refusal.why);
    case "method":
      return unknownMethodAnswer(era, idText, refused.method);
    case "failure":
      break;
  }
  if (isSilent(era, refusal.failure)) return { status: 200, body: null };
  return failureAnswer(idText, refusal.failure);
}

/**
 * True when a legacy caller cancelled by itself: it awaits nothing, and gets nothing (2025-11-25, Cancellation). A call
 * that somebody else ended is answered.
 */
export function isSilent(era: "modern" | "legacy", failure: Failure): boolean {
  return era === "legacy" && failure.reason === "cancelled" && failure.data?.["by"] === "caller_asked";
}

/** -32601: 404 for modern callers; never for legacy ones, who take a 404 for the end of their session. */
export function unknownMethodAnswer(era: "modern" | "legacy", idText: string | undefined, method: string): Answer {
  return errorAnswer(era === "modern" ? 404 : 200, idText, RPC.methodNotFound, "This method is not offered here.", {
    method: method.slice(0, 256),
  });
}

/** 404 for a session that is not (any more) the caller's, 400 for a version header that is not the session's. */
export function sessionAnswer(idText: string | undefined, why: "unknown" | "version"): Answer {
  return why === "unknown"
    ? errorAnswer(404, idText, RPC.invalidRequest, "This session does not exist (any more). Send initialize again.")
    : errorAnswer(400, idText, RPC.invalidRequest, "The header MCP-Protocol-Version is not the version of this session.");
}

/** A thing the grant excludes is answered like one that does not exist. */
function absentAnswer({ era, idText, method, target }: Refused): Answer {
  if (method === "resources/read") {
    const code = era === "modern" ? RPC.invalidParams : RPC.resourceNotFound;
    return errorAnswer(200, idText, code, "There is no such resource.", { uri: target ?? "" });
  }
  const what = method.startsWith("prompts/") ? "prompt" : method.startsWith("tools/") ? "tool" : "thing";
  return errorAnswer(200, idText, RPC.invalidParams, `There is no such ${what}.`);
}
