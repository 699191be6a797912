/**
 * Requests that do not fit one message, on their way to the agent. Chunks follow the agent's credit, so that a slow link
 * never has more of one in its socket than the agent takes.
 */
import { CALL, TUNNEL } from "../src/limits.ts";
import type { Credit } from "../src/tunnel/frames.ts";
import { waitFor } from "./call-end.ts";
import type { Desk } from "./desk.ts";
import type { Link } from "./links.ts";
import type { PendingCall } from "./pending-calls.ts";

/** One request in pieces on one link. */
export interface Upload {
  bytes: Uint8Array;
  sent: number;
  credit: number;
}

/** Takes credit that the agent gives for a request, and sends what it covers. Credit for anything else changes nothing. */
export function uploadCredit(desk: Desk, link: Link, { stream, bytes, offset = 0 }: Credit): void {
  const call = desk.pending.get(stream);
  if (call?.upload === undefined || call.generation !== link.generation) return;
  if (call.upload.sent === 0) call.upload.sent = Math.min(offset, call.upload.bytes.length);
  call.upload.credit += bytes;
  // It answers: what was written before has arrived, and its time for the rest begins anew.
  link.arrived(call.mark);
  sendChunks(link, call, call.upload);
  call.mark = link.writtenBytes;
  if (call.waits.has("ack")) waitFor(desk, call, "ack", desk.now() + CALL.ackMs + link.transitMs);
}

function sendChunks(link: Link, call: PendingCall, upload: Upload): void {
  const step = link.attachment.maxFrameBytes - TUNNEL.chunkHeaderBytes;
  while (upload.credit > 0 && upload.sent < upload.bytes.length) {
    const piece = upload.bytes.subarray(upload.sent, upload.sent + Math.min(step, upload.credit));
    if (!link.send({ type: "chunk", stream: call.id, offset: upload.sent }, piece)) return; // The close that follows says what becomes of it.
    upload.sent += piece.length;
    upload.credit -= piece.length;
  }
  if (upload.sent < upload.bytes.length) return;
  call.wasWhole = true;
  call.upload = undefined;
}
