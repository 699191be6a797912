/**
 * The JSON-RPC envelope, read strictly, and its errors, written. An id is carried as source text from the first byte
 * to the last, so that it goes back exactly as it came. Pure.
 */
import { RPC } from "../errors.ts";
import { EDGE } from "../limits.ts";
import { sourceTexts, type SourceTexts } from "./source-texts.ts";

export type JsonObject = Record<string, unknown>;

/** A request: `idText` is the id's JSON text as sent, `id` its value. */
export interface RpcRequest {
  kind: "request";
  method: string;
  params: unknown;
  id: string | number;
  idText: string;
  /** JSON text of `params._meta.progressToken`, as sent. */
  tokenText: string | undefined;
}
export interface RpcNotification {
  kind: "notification";
  method: string;
  params: unknown;
}
/** A response to a request of ours; `id` is undefined when it names none. */
export interface RpcResponse {
  kind: "response";
  id: string | number | undefined;
  outcome: { kind: "result"; value: unknown } | { kind: "error"; value: unknown };
}
export interface RpcInvalid {
  kind: "invalid";
  /** The id, when it could be read. */
  idText: string | undefined;
  code: number;
  message: string;
}
export type RpcMessage = RpcRequest | RpcNotification | RpcResponse | RpcInvalid;

export type RpcBody = { kind: "single"; message: RpcMessage } | { kind: "batch"; messages: RpcMessage[] };

/** True for a JSON object. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A string, or an integer within ±(2^53−1): what MCP allows as an id (design section 3.6). */
export function isValidId(id: unknown): id is string | number {
  if (typeof id === "string") return id.length <= EDGE.maxIdLength;
  return typeof id === "number" && Number.isSafeInteger(id);
}

/** Reads a body. An error of the whole body is one invalid message. */
export function readBody(text: string): RpcBody {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return single(invalid(RPC.parseError, "The body is not JSON."));
  }
  const texts = sourceTexts(text);
  if (texts === null) {
    return single(invalid(RPC.invalidRequest, `The body is nested deeper than ${EDGE.maxJsonDepth} levels.`));
  }
  if (!Array.isArray(value)) return single(readMessage(value, texts[0]));
  return { kind: "batch", messages: value.map((item, index) => readMessage(item, texts[index])) };
}

function single(message: RpcMessage): RpcBody {
  return { kind: "single", message };
}

function invalid(code: number, message: string, idText?: string): RpcInvalid {
  return { kind: "invalid", idText, code, message };
}

function readMessage(value: unknown, source: SourceTexts | undefined): RpcMessage {
  if (!isObject(value)) return invalid(RPC.invalidRequest, "A message must be a JSON object.");
  const hasId = Object.hasOwn(value, "id");
  const id = value["id"];
  const idText = hasId && isValidId(id) ? source?.id : undefined;
  if (value["jsonrpc"] !== "2.0") return invalid(RPC.invalidRequest, 'The member "jsonrpc" must be "2.0".', idText);
  if (!Object.hasOwn(value, "method")) return readResponse(value, idText);
  if (Object.hasOwn(value, "result") || Object.hasOwn(value, "error")) {
    return invalid(RPC.invalidRequest, "A message is either a request or a response.", idText);
  }
  const method = value["method"];
  if (typeof method !== "string") return invalid(RPC.invalidRequest, 'The member "method" must be a string.', idText);
  if (!hasId) return { kind: "notification", method, params: value["params"] };
  if (!isValidId(id) || idText === undefined) {
    return invalid(RPC.invalidRequest, `An id must be a string of at most ${EDGE.maxIdLength} characters, or an integer within ±(2^53−1).`);
  }
  return { kind: "request", method, params: value["params"], id, idText, tokenText: source?.progressToken };
}

function readResponse(value: JsonObject, idText: string | undefined): RpcMessage {
  const hasResult = Object.hasOwn(value, "result");
  if (hasResult === Object.hasOwn(value, "error")) {
    return invalid(RPC.invalidRequest, 'A message needs "method", or one of "result" and "error".', idText);
  }
  const id = value["id"];
  return {
    kind: "response",
    id: isValidId(id) ? id : undefined,
    outcome: hasResult ? { kind: "result", value: value["result"] } : { kind: "error", value: value["error"] },
  };
}

/** An error response as text. Without an id that could be read, the member is left out (the schemas forbid null). */
export function rpcErrorText(idText: string | undefined, code: number, message: string, data?: unknown): string {
  const error = JSON.stringify(data === undefined ? { code, message } : { code, message, data });
  return `{"jsonrpc":"2.0",${idText === undefined ? "" : `"id":${idText},`}"error":${error}}`;
}

/** A result response as text; `result` is written as it is. */
export function rpcResultText(idText: string, result: unknown): string {
  return `{"jsonrpc":"2.0","id":${idText},"result":${JSON.stringify(result)}}`;
}
