/** What legacy sessions do beside forwarded calls: open, end, cancel by the client's id, answer server requests. */
import { answerAsk } from "./call-asks.ts";
import { cancelCall, unparkCall } from "./call-end.ts";
import { checkSession, findGrant, rateLimited } from "./call-admission.ts";
import type { Desk } from "./desk.ts";
import { viewDevice } from "./device-view.ts";
import type { LegacySession } from "./legacy-sessions.ts";
import { QUEUE } from "../src/limits.ts";
import { type DeviceView, readAskKey, type Refusal, type Reply, type SessionInit, type SessionUse } from "./rpc.ts";

const NO_GRANT: { ok: false; refusal: Refusal } = { ok: false, refusal: { kind: "grant" } };

/** Opens a session for a grant. */
export async function openSession(desk: Desk, grantId: string, init: SessionInit): Promise<Reply<{ sessionId: string; view: DeviceView }>> {
  const grant = await findGrant(desk, grantId);
  if (grant === undefined) return NO_GRANT;
  const view = await viewDevice(desk, grant);
  const opened = desk.sessions.open(grantId, init, desk.now());
  if (opened.ok) return { ok: true, sessionId: opened.id, view };
  if (opened.why === "busy") return { ok: false, refusal: rateLimited(QUEUE.retryAfterMs) };
  return { ok: false, refusal: { kind: "params", message: "The client's capabilities and info are larger than allowed." } };
}

/** Runs `act` for a session that the grant may use. */
export async function inSession<T extends object>(
  desk: Desk,
  grantId: string,
  use: SessionUse,
  act: (session: LegacySession) => T,
): Promise<Reply<T>> {
  if ((await findGrant(desk, grantId)) === undefined) return NO_GRANT;
  const checked = checkSession(desk, grantId, use);
  return checked.ok ? { ok: true, ...act(checked.session) } : checked;
}

/** Ends a session and what is in flight in it. */
export async function endSession(desk: Desk, grantId: string, sessionId: string): Promise<Reply<{}>> {
  if ((await findGrant(desk, grantId)) === undefined) return NO_GRANT;
  const session = desk.sessions.peek(grantId, sessionId);
  if (session === undefined) return { ok: false, refusal: { kind: "session", why: "unknown" } };
  for (const call of desk.pending.all()) {
    if (call.session === session.id) cancelCall(desk, call, "caller_left", { reason: "cancelled", outcome: "unknown" });
  }
  for (const call of desk.parked.waiting(session.grant)) if (call.session === session.id) unparkCall(desk, call.id, "caller_left");
  desk.sessions.end(session.id);
  return { ok: true };
}

/** Cancels the call of a session that the client knows by `requestId` (JSON text). Ids of other sessions are others. */
export function cancelInSession(desk: Desk, session: LegacySession, requestId: string): void {
  for (const call of desk.pending.all()) {
    if (call.session !== session.id || call.clientId !== requestId) continue;
    // The edge stays silent on it: nothing is delivered for a call that its own client cancelled.
    cancelCall(desk, call, "caller_asked", { reason: "cancelled", outcome: "unknown", data: { by: "caller_asked" } });
  }
}

/** Hands a client's response to the ask it belongs to, if that is one of its own grant and session. */
export function answerInSession(desk: Desk, session: LegacySession, askKey: string, kind: "result" | "error", payload: string): void {
  const key = readAskKey(askKey);
  const call = key === null ? undefined : desk.pending.get(key.callId);
  if (key === null || call === undefined || call.grant !== session.grant) return;
  // After a reset a call does not know its session any more; its grant was checked.
  if (call.session !== undefined && call.session !== session.id) return;
  answerAsk(desk, call, key.askId, kind, payload);
}
