/**
 * Legacy messages that get no JSON-RPC answer: notifications, and responses to requests of ours. 202 without a body
 * when accepted (2025-11-25, Transports).
 */
import type { Reply, SessionUse } from "../../durable/rpc.ts";
import { RPC } from "../errors.ts";
import { errorAnswer, type Answer } from "./answer.ts";
import type { EdgeContext } from "./context.ts";
import { isObject, isValidId, type RpcNotification, type RpcResponse } from "./json-rpc.ts";
import { sessionOf } from "./legacy.ts";
import { refusalAnswer, sessionAnswer } from "./refusals.ts";
import { ask, type EdgeTunnel } from "./tunnel-access.ts";

/** A message that was taken; null stands for that. */
type Taken = Answer | null;

/** The response for an accepted message. */
export function accepted(): Response {
  return new Response(null, { status: 202 });
}

/** Takes a notification. Outside a session it concerns nobody and is accepted. */
export async function takeNotification(message: RpcNotification, context: EdgeContext): Promise<Taken> {
  const found = sessionOf(context);
  if (!found.ok) return sessionAnswer(undefined, "unknown");
  const { session } = found;
  if (session === undefined) return null;
  const requestId = message.method === "notifications/cancelled" && isObject(message.params) ? message.params["requestId"] : undefined;
  if (!isValidId(requestId)) return inSession(context, (tunnel) => tunnel.useSession(context.grant, session));
  // Canonical text on both sides, so that `1.0` cancels `1`.
  return inSession(context, (tunnel) => tunnel.cancelInSession(context.grant, session, JSON.stringify(requestId)));
}

/** Takes the answer to a server request. One that nobody waits for is dropped (202). */
export async function takeResponse(message: RpcResponse, context: EdgeContext): Promise<Taken> {
  const found = sessionOf(context);
  if (!found.ok) return sessionAnswer(undefined, "unknown");
  const { session } = found;
  if (session === undefined) return errorAnswer(400, undefined, RPC.invalidRequest, "A response needs the session it belongs to.");
  const { id, outcome } = message;
  if (typeof id !== "string") return inSession(context, (tunnel) => tunnel.useSession(context.grant, session));
  const payload = JSON.stringify(outcome.value);
  return inSession(context, (tunnel) => tunnel.answerInSession(context.grant, session, id, outcome.kind, payload));
}

/** DELETE: ends the session; it is 404 from then on. */
export async function endSession(context: EdgeContext): Promise<Answer | null> {
  const found = sessionOf(context);
  if (!found.ok || found.session === undefined) return sessionAnswer(undefined, "unknown");
  const session: SessionUse = found.session;
  return inSession(context, (tunnel) => tunnel.endSession(context.grant, session.id));
}

async function inSession(context: EdgeContext, rpc: (tunnel: EdgeTunnel) => Promise<Reply<object>>): Promise<Taken> {
  const reply = await ask(context.access, rpc);
  return reply.ok ? null : refusalAnswer(context, { era: "legacy", idText: undefined, method: "" }, reply.refusal);
}
