/**
 * The request headers the edge reads, and the rules of the mirrored ones (MCP 2026-07-28, Streamable HTTP, "Standard
 * headers"). `Headers` is a web type, the only one here.
 */
import { RPC } from "../errors.ts";
import { EDGE } from "../limits.ts";
import { decodeHeaderValue, isLegalHeaderValue, trimOws } from "../policy/header-value.ts";

/** What classification and the pipelines need; an absent header is undefined, an empty one is "". */
export interface McpHeaders {
  version: string | undefined;
  sessionId: string | undefined;
  method: string | undefined;
  name: string | undefined;
}

/** All that is read of a request's headers, in one pass. */
export interface RequestHeaders extends McpHeaders {
  /** `Mcp-Param-*` by lower-case suffix, blanks around a value taken off. */
  params: Record<string, string>;
  /** Name and value bytes of all headers. */
  bytes: number;
}

const PARAM_PREFIX = "mcp-param-";
const SESSION_ID = /^[\x21-\x7E]{1,256}$/;

/** Where each header with a meaning of its own is kept. */
const NAMED: ReadonlyMap<string, "version" | "sessionId" | "method" | "name"> = new Map([
  ["mcp-protocol-version", "version"],
  ["mcp-session-id", "sessionId"],
  ["mcp-method", "method"],
  ["mcp-name", "name"],
]);

/** Reads the MCP headers in one pass; blanks around a value do not count (RFC 9110 §5.5). */
export function readMcpHeaders(headers: Headers): RequestHeaders {
  const read: RequestHeaders = { version: undefined, sessionId: undefined, method: undefined, name: undefined, params: {}, bytes: 0 };
  const params: [string, string][] = [];
  // Names come in lower case from a `Headers`.
  for (const [name, value] of headers) {
    read.bytes += name.length + value.length;
    if (!name.startsWith("mcp-")) continue;
    const key = NAMED.get(name);
    if (key !== undefined) read[key] = trimOws(value);
    else if (name.startsWith(PARAM_PREFIX)) params.push([name.slice(PARAM_PREFIX.length), trimOws(value)]);
  }
  if (params.length > 0) read.params = Object.fromEntries(params);
  return read;
}

/** True for a text that can be a session id at all (2025-11-25, Transports: 0x21–0x7E). */
export function isSessionId(text: string): boolean {
  return SESSION_ID.test(text);
}

/** True when name and value bytes of all headers exceed the cap. */
export function headersTooLarge(headers: RequestHeaders): boolean {
  return headers.bytes > EDGE.maxHeaderBytes;
}

/**
 * True when the client names `text/event-stream` or `text/*`. A bare wildcard or no header does not count: whoever
 * sends those is a simple client that expects one JSON document.
 */
export function acceptsEventStream(accept: string | null): boolean {
  if (accept === null) return false;
  return accept
    .toLowerCase()
    .split(",")
    .some((range) => {
      const [type, ...parameters] = range.split(";").map((part) => part.trim());
      return (type === "text/event-stream" || type === "text/*") && !parameters.some((p) => /^q=0(?:\.0{0,3})?$/.test(p));
    });
}

/** True for a body that says it is JSON, or does not say what it is. */
export function isJsonContent(contentType: string | null): boolean {
  if (contentType === null) return true;
  return (contentType.split(";")[0] ?? "").trim().toLowerCase() === "application/json";
}

export interface HeaderProblem {
  code: typeof RPC.headerMismatch;
  message: string;
}

function mismatch(message: string): HeaderProblem {
  return { code: RPC.headerMismatch, message };
}

/** `Mcp-Method` against the body's method: required, case-sensitive. */
export function checkMethodHeader(headers: McpHeaders, method: string): HeaderProblem | null {
  if (headers.method === undefined) return mismatch("The header Mcp-Method is missing.");
  return headers.method === method ? null : mismatch("The header Mcp-Method is not the method of the body.");
}

/** `Mcp-Name` against the body's target, after the value form is undone. */
export function checkNameHeader(headers: McpHeaders, target: string | undefined): HeaderProblem | null {
  if (headers.name === undefined) return mismatch("The header Mcp-Name is missing.");
  const name = decodeHeaderValue(headers.name);
  if (name === null) return mismatch("The header Mcp-Name cannot be decoded.");
  return name === target ? null : mismatch("The header Mcp-Name is not the name or uri of the body.");
}

/**
 * The `Mcp-Param-*` headers by lower-case suffix, raw: only the tool's schema, which the object has, says which of
 * them count. Characters no header may hold are refused here already.
 */
export function readParamHeaders({
  params,
}: RequestHeaders): { ok: true; headers: Record<string, string> } | { ok: false; problem: HeaderProblem } {
  for (const [name, value] of Object.entries(params)) {
    if (isLegalHeaderValue(value)) continue;
    return { ok: false, problem: mismatch(`The header ${PARAM_PREFIX}${name} holds characters that are not allowed.`) };
  }
  return { ok: true, headers: params };
}
