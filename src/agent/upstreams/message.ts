/** Reads one JSON-RPC message of an upstream by its members' spans, without building its values. Pure. */
import { UPSTREAM } from "../../limits.ts";
import { failure } from "../failure.ts";
import { lastMember, parseValue, scanElements, scanMembers, ScanError, valueOf, type Member } from "../../tunnel/json-scan.ts";
import type { Notification, RawOutcome, ServerRequest } from "./lane.ts";

export type UpstreamMessage =
  | { kind: "request"; message: ServerRequest }
  | { kind: "notification"; message: Notification }
  /** `id` is undefined when it is not a string: then it is none of ours. */
  | { kind: "response"; id: string | undefined; outcome: RawOutcome };

const EMPTY_PARAMS = new TextEncoder().encode("{}");
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
const OPEN_OBJECT = 0x7b;
const OPEN_ARRAY = 0x5b;

/** The messages of one line or body: one, or those of a batch. Null when it is no JSON-RPC message. */
export function readMessages(bytes: Uint8Array): { bytes: Uint8Array; message: UpstreamMessage }[] | null {
  try {
    const parts = firstByte(bytes) === OPEN_ARRAY ? scanElements(bytes).map((part) => bytes.subarray(part.start, part.end)) : [bytes];
    const messages = parts.map((part) => ({ bytes: part, message: readMessage(part) }));
    return messages.every((entry) => entry.message !== null) ? (messages as { bytes: Uint8Array; message: UpstreamMessage }[]) : null;
  } catch (error) {
    if (error instanceof ScanError) return null;
    throw error;
  }
}

function firstByte(bytes: Uint8Array): number | undefined {
  return bytes.find((byte) => byte !== 0x20 && byte !== 0x09 && byte !== 0x0d && byte !== 0x0a);
}

function readMessage(bytes: Uint8Array): UpstreamMessage | null {
  const members = scanMembers(bytes);
  const id = lastMember(members, "id");
  const method = shortString(bytes, lastMember(members, "method"));
  if (method !== undefined) {
    const given = lastMember(members, "params");
    const params = given && bytes[given.valueStart] === OPEN_OBJECT ? valueOf(bytes, given) : EMPTY_PARAMS;
    if (!id) return { kind: "notification", message: { method, params } };
    return { kind: "request", message: { id: decoder.decode(valueOf(bytes, id)), method, params } };
  }
  const outcome = readOutcome(bytes, members);
  return outcome && { kind: "response", id: shortString(bytes, id), outcome };
}

function shortString(bytes: Uint8Array, member: Member | undefined): string | undefined {
  if (!member || bytes[member.valueStart] !== 0x22 || member.end - member.valueStart > 1024) return undefined;
  return parseValue(valueOf(bytes, member)) as string;
}

function readOutcome(bytes: Uint8Array, members: readonly Member[]): RawOutcome | null {
  const error = lastMember(members, "error");
  if (error) return bytes[error.valueStart] === OPEN_OBJECT ? readError(valueOf(bytes, error)) : null;
  const result = lastMember(members, "result");
  if (!result) return null;
  if (bytes[result.valueStart] !== OPEN_OBJECT) {
    return {
      kind: "failed",
      failure: failure("upstream_failed", "unknown", "The tool server answered with a result that is not an object."),
    };
  }
  return { kind: "result", bytes: valueOf(bytes, result) };
}

function readError(bytes: Uint8Array): RawOutcome {
  const members = scanMembers(bytes);
  const code = lastMember(members, "code");
  const message = lastMember(members, "message");
  const data = lastMember(members, "data");
  const codeValue = code && code.end - code.valueStart < 32 ? parseValue(valueOf(bytes, code)) : undefined;
  const text = message && bytes[message.valueStart] === 0x22 ? (parseValue(valueOf(bytes, message)) as string) : "";
  return {
    kind: "error",
    // JSON-RPC 2.0 §5.1: the code is an integer; anything else says only that it failed.
    code: typeof codeValue === "number" && Number.isSafeInteger(codeValue) ? codeValue : -32603,
    message: text.slice(0, UPSTREAM.errorLength),
    data: data && valueOf(bytes, data),
  };
}

/** The progress token of a notification's params, when it is a string. */
export function progressToken(params: Uint8Array): string | undefined {
  return shortString(params, lastMember(scanMembers(params), "progressToken"));
}

/** The id, as JSON text, that a `notifications/cancelled` names. */
export function cancelledId(params: Uint8Array): string | undefined {
  const member = lastMember(scanMembers(params), "requestId");
  return member && decoder.decode(valueOf(params, member));
}
