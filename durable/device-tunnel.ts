/**
 * DeviceTunnel: one device's tunnel and everything that must be true in one place (design sections 2 to 7). Everything
 * public is RPC (`rpc.ts`) or a handler of the platform. Only an authenticated dial-in gives the object state; before
 * that, and after `destroy`, every method answers without writing.
 */
import { DurableObject } from "cloudflare:workers";
import { z } from "zod";
import type { Env } from "../src/env.ts";
import { describeError, log } from "../src/log.ts";
import { LISTS } from "../src/policy/decide.ts";
import type { Grant } from "../src/policy/grant.ts";
import { CLOSE } from "../src/tunnel/close-codes.ts";
import { type CancelReason, PING_TEXT, PONG_TEXT, SUBPROTOCOL } from "../src/tunnel/frames.ts";
import { AgentMessages } from "./agent-messages.ts";
import { admit, findGrant, sessionFacts } from "./call-admission.ts";
import { expireParked } from "./call-asks.ts";
import { attachCall, resumeCall } from "./call-attach.ts";
import { runDeadlines } from "./call-deadlines.ts";
import { cancelCall, tellCancel, unparkCall } from "./call-end.ts";
import { detachCall, openReply } from "./call-reply.ts";
import { newCall } from "./call-send.ts";
import { startCall } from "./call-start.ts";
import { Desk } from "./desk.ts";
import { readStatus, UNBORN_STATUS, UNBORN_VIEW, viewDevice } from "./device-view.ts";
import { expireGrants, takeGrant } from "./grant-changes.ts";
import { closeSilent, planHello } from "./hello.ts";
import type { LegacySession } from "./legacy-sessions.ts";
import { endAll, linkLost } from "./link-changes.ts";
import { answerList } from "./lists.ts";
import type {
  CallReply,
  CallRequest,
  DeviceStatus,
  DeviceTunnelRpc,
  DeviceView,
  Refusal,
  Reply,
  SessionFacts,
  SessionInit,
  SessionUse,
} from "./rpc.ts";
import { hasSchema, migrate } from "./schema.ts";
import { answerInSession, cancelInSession, endSession, inSession, openSession } from "./session-calls.ts";
import { acceptAgent, closeQuietly, limitWaiting, openAgentSockets } from "./sockets.ts";

const FACTS_HEADER = "longline-facts";
/** What the Worker says of a device it has authenticated. */
const Facts = z.strictObject({ deviceId: z.string(), name: z.string(), mcpUrl: z.string() });

const UNBORN: Refusal = { kind: "failure", failure: { reason: "device_offline", outcome: "not_started", data: { lastSeenAt: null } } };
const NO_GRANT: Refusal = { kind: "grant" };

export class DeviceTunnel extends DurableObject<Env> implements DeviceTunnelRpc {
  #desk: Desk | null = null;
  #messages: AgentMessages | null = null;
  #isBorn: boolean;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#isBorn = hasSchema(ctx.storage.sql);
    if (this.#isBorn) migrate(ctx.storage);
    ctx.setWebSocketAutoResponse(new WebSocketRequestResponsePair(PING_TEXT, PONG_TEXT));
  }

  // ---- calls ---------------------------------------------------------------------------------------------

  async call(request: CallRequest): Promise<CallReply> {
    const desk = this.#born();
    if (desk === null) return { ok: false, refusal: UNBORN };
    for (const callId of request.delivered ?? []) this.#wasDelivered(desk, callId);
    const grant = await findGrant(desk, request.grant);
    if (grant === undefined) return { ok: false, refusal: NO_GRANT };
    const admitted = admit(desk, grant, request);
    const session = admitted.session === undefined ? {} : { session: sessionFacts(admitted.session) };
    if (!admitted.ok) return { ok: false, refusal: admitted.refusal, ...session };
    const reply = await this.#forward(desk, grant, request, admitted);
    return admitted.session === undefined ? reply : { ...reply, ...session };
  }

  async attach(grant: string, callId: string, seq: number, offset: number): Promise<CallReply> {
    const desk = this.#born();
    if (desk === null) return { ok: false, refusal: UNBORN };
    if ((await findGrant(desk, grant)) === undefined) return { ok: false, refusal: NO_GRANT };
    return attachCall(desk, grant, callId, seq, offset);
  }

  async resume(grant: string, callId: string, answers: Record<string, string>): Promise<CallReply> {
    const desk = this.#born();
    if (desk === null) return { ok: false, refusal: UNBORN };
    if ((await findGrant(desk, grant)) === undefined) return { ok: false, refusal: NO_GRANT };
    return resumeCall(desk, grant, callId, answers);
  }

  async cancel(callId: string, reason: CancelReason): Promise<void> {
    const desk = this.#born();
    if (desk === null) return;
    const call = desk.pending.get(callId);
    if (call !== undefined) cancelCall(desk, call, reason, { reason: "cancelled", outcome: "unknown" });
    else if (desk.parked.get(callId) !== undefined) unparkCall(desk, callId, reason);
    // Before a reset the call may have been in flight here; the agent knows.
    else if (!desk.settled.has(callId)) tellCancel(desk, callId, reason);
  }

  async detach(callId: string): Promise<void> {
    const desk = this.#born();
    const call = desk?.pending.get(callId);
    if (desk !== null && call?.sink !== undefined) detachCall(desk, call);
  }

  async delivered(callId: string): Promise<void> {
    const desk = this.#born();
    if (desk !== null) this.#wasDelivered(desk, callId);
  }

  // ---- sessions ------------------------------------------------------------------------------------------

  async describe(grantId: string): Promise<Reply<{ view: DeviceView }>> {
    const desk = this.#born();
    if (desk === null) return { ok: true, view: UNBORN_VIEW };
    const grant = await findGrant(desk, grantId);
    return grant === undefined ? { ok: false, refusal: NO_GRANT } : { ok: true, view: await viewDevice(desk, grant) };
  }

  async openSession(grant: string, init: SessionInit): Promise<Reply<{ sessionId: string; view: DeviceView }>> {
    const desk = this.#born();
    return desk === null ? { ok: false, refusal: UNBORN } : openSession(desk, grant, init);
  }

  async useSession(grant: string, use: SessionUse): Promise<Reply<{ session: SessionFacts }>> {
    return this.#inSession(grant, use, (_desk, session) => ({ session: sessionFacts(session) }));
  }

  async endSession(grant: string, sessionId: string): Promise<Reply<{}>> {
    const desk = this.#born();
    return desk === null ? { ok: false, refusal: { kind: "session", why: "unknown" } } : endSession(desk, grant, sessionId);
  }

  async setLogLevel(grant: string, use: SessionUse, level: string): Promise<Reply<{}>> {
    return this.#inSession(grant, use, (desk, session) => {
      desk.sessions.setLogLevel(session, level);
      return {};
    });
  }

  async cancelInSession(grant: string, use: SessionUse, requestId: string): Promise<Reply<{}>> {
    return this.#inSession(grant, use, (desk, session) => {
      cancelInSession(desk, session, requestId);
      return {};
    });
  }

  async answerInSession(grant: string, use: SessionUse, askKey: string, kind: "result" | "error", payload: string): Promise<Reply<{}>> {
    return this.#inSession(grant, use, (desk, session) => {
      answerInSession(desk, session, askKey, kind, payload);
      return {};
    });
  }

  // ---- the owner -----------------------------------------------------------------------------------------

  async putGrant(grant: Grant): Promise<void> {
    const desk = this.#born();
    // Without state there is nothing to narrow, and the first hello pulls what D1 has.
    if (desk !== null) takeGrant(desk, grant);
  }

  async status(): Promise<DeviceStatus> {
    const desk = this.#born();
    return desk === null ? UNBORN_STATUS : readStatus(desk);
  }

  async closeTunnel(reason: "revoked" | "removed"): Promise<void> {
    const desk = this.#born();
    if (desk === null) return;
    endAll(desk);
    const link = desk.links.current();
    const seenAt = link?.lastSeenAt(this.ctx);
    for (const socket of openAgentSockets(this.ctx)) closeQuietly(socket, CLOSE.revoked, reason);
    if (link !== null) linkLost(desk, link, seenAt ?? desk.now());
  }

  async destroy(): Promise<void> {
    await this.closeTunnel("removed");
    if (this.#desk !== null) this.#desk.isOver = true;
    this.#desk = null;
    this.#messages = null;
    this.#isBorn = false;
    await this.ctx.storage.deleteAlarm();
    await this.ctx.storage.deleteAll();
  }

  // ---- the platform --------------------------------------------------------------------------------------

  /** Takes an agent's upgrade from the Worker, which has verified the device key. Everything else is 404. */
  override async fetch(request: Request): Promise<Response> {
    if (new URL(request.url).pathname !== "/tunnel") return new Response(null, { status: 404 });
    if (request.headers.get("Upgrade")?.toLowerCase() !== "websocket") return new Response(null, { status: 426 });
    const facts = readFacts(request.headers.get(FACTS_HEADER));
    if (facts === null) return new Response(null, { status: 400 });
    const desk = this.#bear(facts);
    const { 0: client, 1: server } = new WebSocketPair();
    acceptAgent(this.ctx, server, desk.now());
    limitWaiting(this.ctx);
    planHello(desk);
    return new Response(null, { status: 101, webSocket: client, headers: { "Sec-WebSocket-Protocol": SUBPROTOCOL } });
  }

  override async webSocketMessage(socket: WebSocket, message: string | ArrayBuffer): Promise<void> {
    try {
      const desk = this.#born();
      if (desk === null) return closeQuietly(socket, CLOSE.redial, "unknown state");
      this.#messages ??= new AgentMessages(desk);
      await this.#messages.onMessage(socket, message);
    } catch (error) {
      // The platform would swallow it, and the link would look healthy.
      log("error", "tunnel.message-failed", { error: describeError(error) });
    }
  }

  override async webSocketClose(socket: WebSocket, code: number, reason: string): Promise<void> {
    this.#onSocketGone(socket, code, reason);
  }

  override async webSocketError(socket: WebSocket, error: unknown): Promise<void> {
    log("info", "tunnel.socket-error", { error: describeError(error) });
    this.#onSocketGone(socket, CLOSE.normal, "");
  }

  override async alarm(): Promise<void> {
    const desk = this.#born();
    if (desk === null) return;
    try {
      for (const work of desk.alarms.take(desk.now())) {
        if (work === "hello") closeSilent(desk);
        else if (work === "parked") expireParked(desk);
        else if (work === "grants") expireGrants(desk);
        else desk.presence.sync();
      }
    } catch (error) {
      log("error", "alarm.failed", { error: describeError(error) });
      desk.alarms.planBy("sync", desk.now() + RETRY_MS);
    }
    desk.alarms.rearm();
  }

  // ---- inside --------------------------------------------------------------------------------------------

  async #forward(desk: Desk, grant: Grant, request: CallRequest, { client, session }: Admitted): Promise<CallReply> {
    const outgoing =
      session?.logLevel === undefined || request.logLevel !== undefined ? request : { ...request, logLevel: session.logLevel };
    const call = newCall(
      {
        id: request.callId,
        grant: grant.id,
        session: session?.id,
        clientId: request.clientId,
        era: client.era,
        canStream: request.canStream,
        request: { call: outgoing, client },
      },
      undefined,
    );
    if (!desk.pending.add(call)) throw new Error("call id is in flight already");
    const list = LISTS.get(request.method);
    if (list !== undefined) return answerList(desk, call, grant, list, request.payload);
    const sink = openReply(desk, call);
    await startCall(desk, call);
    return sink.reply;
  }

  async #inSession<T extends object>(grant: string, use: SessionUse, act: (desk: Desk, session: LegacySession) => T): Promise<Reply<T>> {
    const desk = this.#born();
    if (desk === null) return { ok: false, refusal: { kind: "session", why: "unknown" } };
    return inSession(desk, grant, use, (session) => act(desk, session));
  }

  #wasDelivered(desk: Desk, callId: string): void {
    desk.settled.delete(callId);
    desk.delivered.add(callId);
  }

  #onSocketGone(socket: WebSocket, code: number, reason: string): void {
    try {
      const desk = this.#born();
      const link = desk?.links.of(socket) ?? null;
      const seenAt = link?.lastSeenAt(this.ctx) ?? 0;
      closeQuietly(socket, code, reason);
      if (desk === null) return;
      // A late close of a superseded socket, or of one that never said hello, changes nothing.
      if (link !== null) linkLost(desk, link, seenAt);
      else planHello(desk);
    } catch (error) {
      log("error", "tunnel.close-failed", { error: describeError(error) });
    }
  }

  #bear(facts: z.infer<typeof Facts>): Desk {
    if (!this.#isBorn) migrate(this.ctx.storage);
    this.#isBorn = true;
    const desk = this.#born();
    if (desk === null) throw new Error("object has no state");
    desk.meta.set("deviceId", facts.deviceId);
    desk.meta.set("name", facts.name);
    desk.meta.set("mcpUrl", facts.mcpUrl);
    return desk;
  }

  #born(): Desk | null {
    if (!this.#isBorn) return null;
    this.#desk ??= new Desk(this.ctx, this.env.DB, runDeadlines);
    return this.#desk;
  }
}

type Admitted = Extract<ReturnType<typeof admit>, { ok: true }>;

/** ms after which work that failed in an alarm is tried again. */
const RETRY_MS = 30_000;

function readFacts(header: string | null): z.infer<typeof Facts> | null {
  try {
    const parsed = Facts.safeParse(JSON.parse(header ?? "null"));
    return parsed.success ? parsed.data : null;
  } catch {
    return null; // Not JSON: the Worker made the header, so this is a bug there, answered with 400.
  }
}
