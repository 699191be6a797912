/** The frames of a call on its way to the agent: one message when it fits, else a header and chunks. */
import type { Failure } from "../src/errors.ts";
import { CALL, TUNNEL } from "../src/limits.ts";
import { type Grant, isUsable } from "../src/policy/grant.ts";
import type { Call } from "../src/tunnel/frames.ts";
import { fitsUtf8, utf8Length } from "../src/tunnel/utf8.ts";
import { failCall, waitFor } from "./call-end.ts";
import type { Desk } from "./desk.ts";
import type { Link } from "./links.ts";
import type { Outgoing, PendingCall, Sink } from "./pending-calls.ts";

/** Bytes of a chunk's own header, at most: its stream name, and an offset of up to eleven digits. */
const CHUNK_HEADER_BYTES = 96;
const encoder = new TextEncoder();

/** A new entry for the table of calls in flight. */
export function newCall(
  facts: Pick<PendingCall, "id" | "grant"> &
    Partial<Pick<PendingCall, "session" | "clientId" | "era" | "canStream" | "timeoutMs" | "request" | "seq" | "offset">>,
  sink: Sink | undefined,
): PendingCall {
  return {
    id: facts.id,
    grant: facts.grant,
    session: facts.session,
    clientId: facts.clientId,
    era: facts.era,
    canStream: facts.canStream ?? true,
    timeoutMs: facts.timeoutMs ?? CALL.timeoutMs,
    request: facts.request,
    generation: 0,
    seq: facts.seq ?? 0,
    offset: facts.offset ?? 0,
    outcomeBytes: undefined,
    isAcknowledged: false,
    isComplete: false,
    mark: 0,
    asks: new Map(),
    answers: new Map(),
    remainingMs: 0,
    sink,
    waits: new Map(),
  };
}

/** The device is away, said with when it was last seen. */
export function offline(desk: Desk): Failure {
  return { reason: "device_offline", outcome: "not_started", data: { lastSeenAt: desk.meta.get("lastSeenAt") ?? null } };
}

/**
 * Writes a call's frames: at first, after its turn came, or again on a new link when the agent has certainly not had
 * the call. The grant is looked at again each time, as it may have ended since.
 */
export function sendCall(desk: Desk, call: PendingCall): void {
  const link = desk.links.current();
  const grant = desk.grants.get(call.grant);
  if (call.request === undefined || link === null) return failCall(desk, call, offline(desk));
  if (grant === undefined || !isUsable(grant, desk.now())) return failCall(desk, call, { reason: "cancelled", outcome: "not_started" });
  const frame = frameOf(call, call.request, grant, desk.flow.restart(call.id));
  const written = writeCall(link, frame, call.request.call.payload);
  if (written.size !== null) {
    const data = { size: written.size, cap: Math.min(link.attachment.maxFrameBytes, TUNNEL.maxHeaderBytes) };
    return failCall(desk, call, { reason: "too_large", outcome: "not_started", data });
  }
  if (!written.ok) return failCall(desk, call, offline(desk));
  const now = desk.now();
  call.generation = link.generation;
  call.mark = link.writtenBytes;
  waitFor(desk, call, "ack", now + CALL.ackMs + link.transitMs);
  if (!call.waits.has("end")) waitFor(desk, call, "end", now + call.timeoutMs + CALL.deadlineGraceMs);
}

function frameOf(call: PendingCall, { call: request, client }: Outgoing, grant: Grant, credit: number): Call {
  const frame: Call = {
    type: "call",
    callId: call.id,
    method: request.method,
    timeoutMs: call.timeoutMs,
    credit,
    caller: { grant: grant.id, label: grant.label, member: grant.member },
    client,
  };
  if (request.target !== undefined) frame.target = request.target;
  if (request.ref !== undefined) frame.ref = request.ref;
  if (request.meta !== undefined) frame.meta = request.meta;
  if (request.progress === true && call.canStream) frame.progress = true;
  if (request.logLevel !== undefined && call.canStream) frame.logLevel = request.logLevel;
  if (request.paramHeaders !== undefined) frame.paramHeaders = request.paramHeaders;
  return frame;
}

/** `size` is the header's, when it is the header that does not fit: a payload can always be cut. */
type Written = { ok: true; size: null } | { ok: false; size: number | null };

/**
 * One message when it fits, else a header and chunks. Without all of its chunks the agent cannot start a call, so a
 * link that breaks in between has started nothing.
 */
function writeCall(link: Link, frame: Call, payload: string): Written {
  const max = link.attachment.maxFrameBytes;
  const text = `${JSON.stringify(frame)}\n${payload}`;
  const isSmallHeader = text.length - payload.length <= TUNNEL.maxHeaderBytes;
  if (isSmallHeader && fitsUtf8(text, max)) return { ok: link.sendMessage(text), size: null };
  const bytes = encoder.encode(payload);
  const header = JSON.stringify({ ...frame, bytes: bytes.length } satisfies Call);
  if (!fitsUtf8(header, Math.min(max, TUNNEL.maxHeaderBytes))) return { ok: false, size: utf8Length(header) };
  if (!link.sendMessage(header)) return { ok: false, size: null };
  const step = max - CHUNK_HEADER_BYTES;
  for (let offset = 0; offset < bytes.length; offset += step) {
    const isSent = link.send({ type: "chunk", stream: frame.callId, offset }, bytes.subarray(offset, offset + step));
    if (!isSent) return { ok: false, size: null };
  }
  return { ok: true, size: null };
}
