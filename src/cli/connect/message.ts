/** Reads what a stdio client writes as far as its way to the relay depends on it; the text itself goes on as it came. Pure. */
import { META } from "../../agent/upstreams/revisions.ts";
import { lastMember, scanElements, scanMembers, ScanError, valueOf } from "../../tunnel/json-scan.ts";

/** One line of the client. */
export interface ClientMessage {
  text: string;
  kind: "request" | "notification" | "response" | "batch";
  /** JSON texts of the ids that want an answer, exactly as the client wrote them. */
  ids: readonly string[];
  method: string | undefined;
  params: Record<string, unknown>;
  /** The version a request of the stateless revision names. */
  modern: string | undefined;
}

const decoder = new TextDecoder();

/** The message of one line; null when it is no JSON-RPC message. */
export function readClientMessage(line: Uint8Array): ClientMessage | null {
  const text = decoder.decode(line).trim();
  try {
    const value: unknown = JSON.parse(text);
    const bytes = new TextEncoder().encode(text);
    if (Array.isArray(value)) return batch(text, bytes);
    return isRecord(value) ? single(text, bytes, value) : null;
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof ScanError) return null;
    throw error;
  }
}

/** The JSON text of a message's id, and whether it asks for something; for messages of either side. */
export function idAndMethod(bytes: Uint8Array): { id: string | undefined; hasMethod: boolean } {
  const members = scanMembers(bytes);
  const id = lastMember(members, "id");
  return { id: id && decoder.decode(valueOf(bytes, id)), hasMethod: lastMember(members, "method") !== undefined };
}

/** The JSON text of the request id that a `notifications/cancelled` names. */
export function cancelledIdText(message: ClientMessage): string | undefined {
  const id = message.method === "notifications/cancelled" ? message.params["requestId"] : undefined;
  return id === undefined ? undefined : JSON.stringify(id);
}

function single(text: string, bytes: Uint8Array, value: Record<string, unknown>): ClientMessage | null {
  const { id } = idAndMethod(bytes);
  const method = typeof value["method"] === "string" ? value["method"] : undefined;
  const params = isRecord(value["params"]) ? value["params"] : {};
  if (method === undefined) {
    const isResponse = "result" in value || "error" in value;
    return isResponse ? { text, kind: "response", ids: [], method, params, modern: undefined } : null;
  }
  const kind = id === undefined ? "notification" : "request";
  return { text, kind, ids: id === undefined ? [] : [id], method, params, modern: modernVersion(params) };
}

/** Only a handshake revision has batches. */
function batch(text: string, bytes: Uint8Array): ClientMessage {
  const found = scanElements(bytes).map((part) => idAndMethod(bytes.subarray(part.start, part.end)));
  const ids = found.flatMap(({ id, hasMethod }) => (hasMethod && id !== undefined ? [id] : []));
  return { text, kind: "batch", ids, method: undefined, params: {}, modern: undefined };
}

function modernVersion(params: Record<string, unknown>): string | undefined {
  const meta = params["_meta"];
  const version = isRecord(meta) ? meta[META.protocolVersion] : undefined;
  return typeof version === "string" ? version : undefined;
}

/** True for a JSON object. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
