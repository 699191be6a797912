/** Refusals below MCP: wrong HTTP method, media type or size. Their bodies are JSON, but no JSON-RPC. */
import { EDGE } from "../limits.ts";

function refuse(status: number, code: string, message: string, headers: Record<string, string> = {}): Response {
  return new Response(JSON.stringify({ error: { code, message } }), {
    status,
    headers: { "content-type": "application/json", ...headers },
  });
}

/** 405 with what this resource can do (RFC 9110 §15.5.6). */
export function methodNotAllowed(allow: string): Response {
  return refuse(405, "method_not_allowed", "MCP messages are sent by POST.", { allow });
}

/** 406: a session's stream for a client that does not take one. */
export function notAcceptable(): Response {
  return refuse(406, "not_acceptable", "A session's stream is text/event-stream; accept it.");
}

/** 413. */
export function bodyTooLarge(): Response {
  return refuse(413, "too_large", `The request body is larger than ${EDGE.maxRequestBytes} bytes.`);
}

/** 415. */
export function notJson(): Response {
  return refuse(415, "unsupported_media_type", "Send the message as Content-Type: application/json.", { accept: "application/json" });
}

/** 431 (RFC 6585 §5). */
export function headersOverCap(): Response {
  return refuse(431, "headers_too_large", `The request headers are larger than ${EDGE.maxHeaderBytes} bytes.`);
}
