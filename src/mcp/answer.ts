/** One JSON-RPC response on its way out: its bytes, and the HTTP status it wants when it is the whole answer. */
import { failureToRpcError, RPC, type Failure } from "../errors.ts";
import { rpcErrorText, rpcResultText } from "./json-rpc.ts";

export interface Answer {
  status: number;
  headers?: Readonly<Record<string, string>>;
  /**
   * One JSON-RPC message on one line: whole, or in pieces as they come. Null is silence: the caller cancelled the
   * call itself, and nothing is delivered for it.
   */
  body: string | AsyncIterable<Uint8Array> | null;
  /** The whole HTTP response in place of the above while nothing is committed: challenges of RFC 6750. */
  http?: Response;
  /** Called once when the body is written, or will not be. */
  done?: (written: boolean) => void;
}

/** A result of the edge's own. */
export function resultAnswer(idText: string, result: unknown, headers?: Readonly<Record<string, string>>): Answer {
  const answer: Answer = { status: 200, body: rpcResultText(idText, result) };
  return headers === undefined ? answer : { ...answer, headers };
}

/** A JSON-RPC error with the status it has when nothing was sent before it. */
export function errorAnswer(status: number, idText: string | undefined, code: number, message: string, data?: unknown): Answer {
  return { status, body: rpcErrorText(idText, code, message, data) };
}

/** A failure of ours: HTTP 200 in both eras, for official clients drop `error.data` on other statuses (design section 3). */
export function failureAnswer(idText: string | undefined, failure: Failure): Answer {
  const { code, message, data } = failureToRpcError(failure);
  return errorAnswer(200, idText, code, message, data);
}

/** An unexpected fault; says nothing about its cause. */
export function internalAnswer(idText: string | undefined): Answer {
  return errorAnswer(200, idText, RPC.internalError, "The relay failed on this request. Its log says why.");
}
