/** The frames of a call on its way to the agent: one message when it fits, else a header and chunks. */
import type { Failure } from "../src/errors.ts";
import { CALL, TUNNEL } from "../src/limits.ts";
import { namedThing } from "../src/policy/decide.ts";
import { type Grant, isUsable } from "../src/policy/grant.ts";
import { otherNames } from "../src/policy/other-names.ts";
import type { Call } from "../src/tunnel/frames.ts";
import { fitsUtf8, utf8Length } from "../src/tunnel/utf8.ts";
import { failCall, waitFor } from "./call-end.ts";
import { beginNotes } from "./call-notes.ts";
import type { Desk } from "./desk.ts";
import type { Link } from "./links.ts";
import type { Outgoing, PendingCall, Sink } from "./pending-calls.ts";
import type { Received } from "./request-body.ts";

const encoder = new TextEncoder();

/** A new entry for the table of calls in flight. */
export function newCall(
  facts: Pick<PendingCall, "id" | "grant"> &
    Partial<
      Pick<PendingCall, "session" | "clientId" | "era" | "madeAt" | "canStream" | "timeoutMs" | "request" | "seq" | "offset" | "notes">
    >,
  sink: Sink | undefined,
): PendingCall {
  return {
    id: facts.id,
    grant: facts.grant,
    session: facts.session,
    clientId: facts.clientId,
    era: facts.era,
    madeAt: facts.madeAt,
    canStream: facts.canStream ?? true,
    timeoutMs: facts.timeoutMs ?? CALL.timeoutMs,
    request: facts.request,
    upload: undefined,
    // Of a call that this instance did not send nobody here can say what the agent has.
    wasWhole: facts.request === undefined,
    generation: 0,
    seq: facts.seq ?? 0,
    offset: facts.offset ?? 0,
    outcomeBytes: undefined,
    isAcknowledged: false,
    isComplete: false,
    mark: 0,
    asks: new Map(),
    answers: new Map(),
    notes: facts.notes ?? beginNotes(Date.now(), facts.request?.call, facts.request?.client),
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
  const frame = frameOf(call, call.request, grant, desk);
  const written = writeCall(link, frame, call.request.call);
  call.upload = written.ok && written.rest !== undefined ? { bytes: written.rest, sent: 0, credit: 0 } : undefined;
  if (written.ok && written.rest === undefined) call.wasWhole = true;
  if (!written.ok && written.size !== undefined) {
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

function frameOf(call: PendingCall, { call: request, client }: Outgoing, grant: Grant, desk: Desk): Call {
  const frame: Call = {
    type: "call",
    callId: call.id,
    method: request.method,
    timeoutMs: call.timeoutMs,
    credit: desk.flow.restart(call.id),
    caller: { grant: grant.id, label: grant.label, member: grant.member },
    client,
  };
  if (request.target !== undefined) frame.target = request.target;
  if (request.ref !== undefined) frame.ref = request.ref;
  const named = namedThing(request);
  const names = named === undefined ? [] : otherNames(desk.catalogue.prefixes, named.kind, named.name);
  if (names.length > 0) frame.names = names;
  if (request.meta !== undefined) frame.meta = request.meta;
  if (request.progress === true && call.canStream) frame.progress = true;
  if (request.logLevel !== undefined && call.canStream) frame.logLevel = request.logLevel;
  if (request.paramHeaders !== undefined) frame.paramHeaders = request.paramHeaders;
  return frame;
}

/** `rest` is what follows as chunks; `size` is the header's, when it is the header that does not fit. */
type Written = { ok: true; rest: Uint8Array | undefined } | { ok: false; size: number | undefined };

/**
 * One message when it fits, else a header; the chunks follow the agent's credit. Without all of them the agent cannot
 * start a call, so a link that breaks in between has started nothing.
 */
function writeCall(link: Link, frame: Call, request: Received): Written {
  const max = link.attachment.maxFrameBytes;
  const { payload } = request;
  if (typeof payload === "string") {
    const text = `${JSON.stringify(frame)}\n${payload}`;
    const isSmallHeader = text.length - payload.length <= TUNNEL.maxHeaderBytes;
    if (isSmallHeader && fitsUtf8(text, max))
      return link.sendMessage(text) ? { ok: true, rest: undefined } : { ok: false, size: undefined };
  }
  const bytes = typeof payload === "string" ? encoder.encode(payload) : payload;
  // One copy is held: the chunks are cut from it, also when it has to be sent again.
  request.payload = bytes;
  const header = JSON.stringify({ ...frame, bytes: bytes.length } satisfies Call);
  if (!fitsUtf8(header, Math.min(max, TUNNEL.maxHeaderBytes))) return { ok: false, size: utf8Length(header) };
  if (!link.sendMessage(header)) return { ok: false, size: undefined };
  return { ok: true, rest: bytes.length === 0 ? undefined : bytes };
}
