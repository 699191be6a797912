/**
 * How a frame becomes one WebSocket message and back. A message is the header as one line of JSON, then
 * optionally "\n" and the payload. A text message carries a text payload; a binary message is the same in UTF-8
 * and carries bytes. Pure; no platform types.
 */
import { TUNNEL } from "../limits.ts";
import { AGENT_FRAME_TYPES, AgentFrame, RELAY_FRAME_TYPES, RelayFrame } from "./frames.ts";
import { isHotAgentFrame, isHotRelayFrame } from "./hot-frames.ts";
import { utf8Length } from "./utf8.ts";

export type Payload = string | Uint8Array;
export interface Message<F> {
  frame: F;
  /** Undefined when the message holds a header only. */
  payload: Payload | undefined;
}
export type Decoded<F> = ({ ok: true } & Message<F>) | { ok: true; frame: null } | { ok: false; problem: string };

const NEWLINE = 0x0a;
const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** One message: text for a text payload or none, bytes for a byte payload. */
export function encode(frame: AgentFrame | RelayFrame, payload?: Payload): string | Uint8Array {
  const header = JSON.stringify(frame);
  if (payload === undefined) return header;
  if (typeof payload === "string") return `${header}\n${payload}`;
  const head = encoder.encode(header);
  const message = new Uint8Array(head.length + 1 + payload.length);
  message.set(head);
  message[head.length] = NEWLINE;
  message.set(payload, head.length + 1);
  return message;
}

/** Splits a message into header text and payload, without reading either. Null when the header is over its cap or not UTF-8. */
export function split(message: string | Uint8Array): { header: string; payload: Payload | undefined } | null {
  if (typeof message === "string") {
    const end = message.indexOf("\n");
    const header = end < 0 ? message : message.slice(0, end);
    if (header.length > TUNNEL.maxHeaderBytes) return null;
    return { header, payload: end < 0 ? undefined : message.slice(end + 1) };
  }
  const end = message.indexOf(NEWLINE);
  const head = end < 0 ? message : message.subarray(0, end);
  if (head.length > TUNNEL.maxHeaderBytes) return null;
  try {
    return { header: decoder.decode(head), payload: end < 0 ? undefined : message.subarray(end + 1) };
  } catch {
    return null; // not UTF-8: the caller closes the tunnel
  }
}

function decode<F>(
  message: string | Uint8Array,
  known: ReadonlySet<string>,
  isHot: (value: Readonly<Record<string, unknown>>) => boolean,
  parse: (value: unknown) => { success: true; data: F } | { success: false; error: { issues: { path: PropertyKey[]; message: string }[] } },
): Decoded<F> {
  const parts = split(message);
  if (!parts) return { ok: false, problem: "unreadable header" };
  let value: unknown;
  try {
    value = JSON.parse(parts.header);
  } catch {
    return { ok: false, problem: "header is not JSON" };
  }
  // SAFETY: the guard says exactly what the frame's schema says.
  if (isRecord(value) && isHot(value)) return { ok: true, frame: value as F, payload: parts.payload };
  const type = isRecord(value) ? value["type"] : undefined;
  if (typeof type !== "string") return { ok: false, problem: "header has no type" };
  if (!known.has(type)) {
    return isRecord(value) && value["optional"] === true ? { ok: true, frame: null } : { ok: false, problem: "unknown frame type" };
  }
  const result = parse(value);
  if (result.success) return { ok: true, frame: result.data, payload: parts.payload };
  const issue = result.error.issues[0];
  return { ok: false, problem: `${type}: ${issue ? `${issue.path.join(".")} ${issue.message}` : "invalid"}`.slice(0, 200) };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Reads a message of an agent. `frame: null` is an unknown type marked optional: ignore it. */
export function decodeAgentMessage(message: string | Uint8Array): Decoded<AgentFrame> {
  return decode(message, AGENT_FRAME_TYPES, isHotAgentFrame, (value) => AgentFrame.safeParse(value));
}

/** Reads a message of a relay. `frame: null` is an unknown type marked optional: ignore it. */
export function decodeRelayMessage(message: string | Uint8Array): Decoded<RelayFrame> {
  return decode(message, RELAY_FRAME_TYPES, isHotRelayFrame, (value) => RelayFrame.safeParse(value));
}

/** Bytes of a payload on the wire. */
export function payloadBytes(payload: Payload | undefined): number {
  if (payload === undefined) return 0;
  return typeof payload === "string" ? utf8Length(payload) : payload.length;
}

/** The payload as text. Throws TypeError when its bytes are not UTF-8. */
export function payloadText(payload: Payload | undefined): string {
  if (payload === undefined) return "";
  return typeof payload === "string" ? payload : decoder.decode(payload);
}
