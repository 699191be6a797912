/** Refused attempts as audit rows, bounded for each grant: a caller that hammers a closed door fills no table. */
import { AUDIT } from "../src/limits.ts";
import { newCallId } from "../src/tunnel/frames.ts";
import { refusedRow } from "./audit-rows.ts";
import { beginNotes, type CallNotes, type NotedCall } from "./call-notes.ts";
import type { Desk } from "./desk.ts";
import type { CallRequest, Refusal } from "./rpc.ts";

/** What of a request names its row. */
type NotedRequest = Pick<CallRequest, "grant" | "callId" | "client"> & NotedCall;

/** Notes a request that was not forwarded. Its call id names the row. */
export function noteRefusedCall(desk: Desk, request: NotedRequest, refusal: Refusal): void {
  note(desk, request.grant, beginNotes(desk.now(), request, request.client), refusal, request.callId);
}

/** Notes another attempt that was refused, by the MCP method behind it. */
export function noteRefused(desk: Desk, grant: string, method: string, refusal: Refusal): void {
  note(desk, grant, { ...beginNotes(desk.now()), method }, refusal, newCallId());
}

function note(desk: Desk, grant: string, notes: CallNotes, refusal: Refusal, id: string): void {
  // Under ids that nobody gave out, which only a stolen signing key can name, one bound serves for all.
  const counted = desk.grants.get(grant) === undefined ? "" : grant;
  if (desk.refusals.take(counted, AUDIT.refusedPerMinute, desk.now()) > 0) return;
  desk.audit.add(refusedRow(desk, grant, notes, refusal, id));
}
