/**
 * `resources/subscribe` and `resources/unsubscribe` of legacy clients. They change what the session wants, never what
 * others do; the device is asked once for each resource and grant. Updates go out on the session's own stream.
 */
import { LISTEN } from "../src/limits.ts";
import { encode } from "../src/tunnel/codec.ts";
import type { Desk } from "./desk.ts";
import { offline } from "./call-send.ts";
import { usableLink } from "./call-start.ts";
import type { LegacySession } from "./legacy-sessions.ts";
import type { Received } from "./request-body.ts";
import type { CallReply } from "./rpc.ts";
import { sessionOwner } from "./subscriptions.ts";

/** `protocol` of a result that no upstream gave. */
const OF_THE_RELAY = "relay";

/** Whether a request changes a subscription, and how. */
export function subscriptionChange(method: string): "add" | "remove" | null {
  if (method === "resources/subscribe") return "add";
  return method === "resources/unsubscribe" ? "remove" : null;
}

/** Answers an admitted request. Without a session there is no stream that could carry an update, so the method is not there. */
export async function changeSubscription(
  desk: Desk,
  session: LegacySession | undefined,
  request: Received,
  change: "add" | "remove",
): Promise<CallReply> {
  if (session === undefined) return { ok: false, refusal: { kind: "method" } };
  const owner = sessionOwner(session.id);
  const uri = request.target ?? "";
  if (change === "remove") {
    desk.subscriptions.remove(owner, uri);
    desk.listeners.keep();
    return done(request.callId);
  }
  if ((await usableLink(desk)) === null) return { ok: false, refusal: { kind: "failure", failure: offline(desk) } };
  const isNew = !desk.subscriptions.has(owner, uri);
  if (!desk.subscriptions.add(owner, uri)) {
    const message = `A session can be subscribed to ${LISTEN.resources} resources. Unsubscribe from one first.`;
    return { ok: false, refusal: { kind: "params", message } };
  }
  const taken = await desk.upstreamResources.want({ grant: session.grant, uri });
  // The session may have ended while the device was asked.
  if (desk.sessions.peek(session.grant, session.id) === undefined) desk.listeners.keep();
  if (taken.kind !== "refused") return done(request.callId);
  if (isNew) desk.subscriptions.remove(owner, uri);
  return { ok: true, first: taken.message, rest: null };
}

function done(callId: string): CallReply {
  return { ok: true, first: encode({ type: "result", callId, seq: 1, protocol: OF_THE_RELAY }, "{}"), rest: null };
}
