/** The audit's rows as the object writes them, from its notes and what it knows of grant and device. */
import type { NewAuditRow } from "../src/db/audit.ts";
import type { CallNotes } from "./call-notes.ts";
import type { Desk } from "./desk.ts";
import type { Refusal } from "./rpc.ts";

/** The row of a call that has ended. */
export function callRow(desk: Desk, call: { id: string; grant: string; notes: CallNotes }): NewAuditRow {
  const { notes } = call;
  return {
    ...aboutGrant(desk, call.grant),
    ...aboutNotes(notes),
    id: call.id,
    kind: "call",
    outcome: notes.outcome ?? "ok",
    reason: notes.reason ?? null,
    durationMs: Math.max(0, desk.now() - notes.startedAt),
  };
}

/** The row of an attempt that was refused before it became a call. */
export function refusedRow(desk: Desk, grant: string, notes: CallNotes, refusal: Refusal, id: string): NewAuditRow {
  return {
    ...aboutGrant(desk, grant),
    ...aboutNotes(notes),
    id,
    kind: "refused",
    outcome: "refused",
    reason: refusal.kind === "failure" ? refusal.failure.reason : refusal.kind,
    durationMs: 0,
    bytesOut: 0,
  };
}

/** A call that the agent holds and that nobody here knows: the relay was lost while it ran. */
export function lostRow(desk: Desk, callId: string): NewAuditRow {
  const { deviceId, device } = aboutDevice(desk);
  return { id: callId, kind: "call", at: desk.now(), deviceId, device, outcome: "unknown", reason: "relay_restarted" };
}

/** Another installation came with this device's key and was refused. */
export function rivalRow(desk: Desk, id: string): NewAuditRow {
  return {
    ...aboutDevice(desk),
    id,
    kind: "refused",
    at: desk.now(),
    method: "tunnel.hello",
    outcome: "refused",
    reason: "other_installation",
  };
}

function aboutDevice(desk: Desk) {
  return { deviceId: desk.meta.get("deviceId") ?? null, device: desk.meta.get("name") ?? null };
}

function aboutGrant(desk: Desk, id: string) {
  const grant = desk.grants.get(id);
  return { ...aboutDevice(desk), grant: id, label: grant?.label ?? null, member: grant?.member ?? null };
}

function aboutNotes(notes: CallNotes) {
  return {
    at: notes.startedAt,
    client: notes.client ?? null,
    clientVersion: notes.clientVersion ?? null,
    clientProtocol: notes.clientProtocol ?? null,
    upstreamProtocol: notes.upstreamProtocol ?? null,
    method: notes.method ?? null,
    target: notes.target ?? null,
    bytesIn: notes.bytesIn,
    bytesOut: notes.bytesOut,
  };
}
