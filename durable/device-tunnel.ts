/**
 * DeviceTunnel: one device's tunnel and everything that must be true in one place (design sections 2 to 7). Everything
 * public is RPC (`rpc.ts`) or a handler of the platform. Only an authenticated dial-in gives the object state; before
 * that, and after `destroy`, every method answers without writing.
 */
import { DurableObject } from "cloudflare:workers";
import type { Env } from "../src/env.ts";
import { describeError, log } from "../src/log.ts";
import { LISTS } from "../src/policy/decide.ts";
import type { Grant } from "../src/policy/grant.ts";
import { CLOSE } from "../src/tunnel/close-codes.ts";
import type { LiveCall } from "../src/tunnel/live.ts";
import { type CancelReason, PING_TEXT, PONG_TEXT } from "../src/tunnel/frames.ts";
import { runAlarm } from "./alarm-work.ts";
import { AgentMessages } from "./agent-messages.ts";
import { admit, findGrant, sessionFacts } from "./call-admission.ts";
import { attachCall, resumeCall } from "./call-attach.ts";
import { runDeadlines } from "./call-deadlines.ts";
import { cancelCall, tellCancel, unparkCall } from "./call-end.ts";
import { detachCall, openReply } from "./call-reply.ts";
import { newCall } from "./call-send.ts";
import { startCall } from "./call-start.ts";
import { postWake } from "../src/auth/wake-post.ts";
import { Desk } from "./desk.ts";
import { takeChange } from "./device-changes.ts";
import { readStatus, UNBORN_STATUS, UNBORN_VIEW, viewDevice } from "./device-view.ts";
import { acceptDialIn, type DeviceFacts, readDialIn } from "./dial-in.ts";
import { takeGrant } from "./grant-changes.ts";
import { drain, endDrained } from "./drain.ts";
import { planHello } from "./hello.ts";
import type { LegacySession } from "./legacy-sessions.ts";
import { endAll, linkLost } from "./link-changes.ts";
import { answerListener, isListenRequest } from "./listen-open.ts";
import { isListener, readListener } from "./listener-sockets.ts";
import { answerList } from "./lists.ts";
import { offeredTool, offeredTools, toolDigests } from "./offered-tools.ts";
import { receive, type Received, turnAway } from "./request-body.ts";
import type {
  AskedCall,
  CallReply,
  CallRequest,
  DeviceChange,
  DeviceStatus,
  DeviceTunnelRpc,
  DeviceView,
  OfferedTool,
  Refusal,
  Reply,
  SessionFacts,
  SessionInit,
  SessionUse,
} from "./rpc.ts";
import { noteRefused, noteRefusedCall } from "./refused-calls.ts";
import { hasSchema, migrate } from "./schema.ts";
import { answerInSession, cancelInSession, endSession, inSession, openSession } from "./session-calls.ts";
import { changeSubscription, subscriptionChange } from "./session-subscriptions.ts";
import { closeQuietly, openAgentSockets } from "./sockets.ts";
import { answerWatcher, isWatcher, isWatchRequest, liveCalls } from "./watchers.ts";

const UNBORN: Refusal = { kind: "failure", failure: { reason: "device_offline", outcome: "not_started", data: { lastSeenAt: null } } };
const NO_GRANT: Refusal = { kind: "grant" };
/** Of a session that never said which logs it wants (2025-11-25, Logging: the server may decide). */
const DEFAULT_LOG_LEVEL = "info";

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
    const received = grant === undefined ? await turnAway(request, NO_GRANT) : await receive(desk, request);
    if (grant === undefined || !received.ok) {
      const refusal = received.ok ? NO_GRANT : received.refusal;
      noteRefusedCall(desk, request, refusal);
      return { ok: false, refusal };
    }
    try {
      return await this.#admit(desk, grant, received.request);
    } finally {
      // One that is in the table gives its bytes back when the agent has it.
      if (desk.pending.get(request.callId) === undefined) desk.held.give(request.callId);
    }
  }

  async #admit(desk: Desk, grant: Grant, request: Received): Promise<CallReply> {
    // Once after a wake, and only for grants that are counted.
    const learning = grant.caps.callsPerMinute === null ? null : desk.rates.learn(desk.now());
    if (learning !== null) await learning;
    const admitted = admit(desk, grant, request);
    const session = admitted.session === undefined ? {} : { session: sessionFacts(admitted.session) };
    if (!admitted.ok) {
      noteRefusedCall(desk, request, admitted.refusal);
      return { ok: false, refusal: admitted.refusal, ...session };
    }
    const change = subscriptionChange(request.method);
    const reply =
      change === null
        ? await this.#forward(desk, grant, request, admitted)
        : await changeSubscription(desk, admitted.session, request, change);
    return admitted.session === undefined ? reply : { ...reply, ...session };
  }

  async attach(grant: string, callId: string, seq: number, offset: number, asked?: AskedCall): Promise<CallReply> {
    const desk = this.#born();
    if (desk === null) return { ok: false, refusal: UNBORN };
    if ((await findGrant(desk, grant)) === undefined) return { ok: false, refusal: NO_GRANT };
    return attachCall(desk, { grant, callId, seq, offset, asked });
  }

  async resume(grant: string, callId: string, answers: Record<string, string>, asked?: readonly string[]): Promise<CallReply> {
    const desk = this.#born();
    if (desk === null) return { ok: false, refusal: UNBORN };
    if ((await findGrant(desk, grant)) === undefined) return { ok: false, refusal: NO_GRANT };
    return resumeCall(desk, grant, callId, { answers, asked: asked ?? Object.keys(answers) });
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
    if (grant !== undefined) return { ok: true, view: await viewDevice(desk, grant) };
    noteRefused(desk, grantId, "server/discover", NO_GRANT);
    return { ok: false, refusal: NO_GRANT };
  }

  async openSession(grant: string, init: SessionInit): Promise<Reply<{ sessionId: string; view: DeviceView }>> {
    const desk = this.#born();
    if (desk === null) return { ok: false, refusal: UNBORN };
    const opened = await openSession(desk, grant, init);
    if (!opened.ok) noteRefused(desk, grant, "initialize", opened.refusal);
    return opened;
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

  async offeredTools(): Promise<OfferedTool[] | null> {
    const desk = this.#born();
    return desk === null ? null : offeredTools(desk.catalogue);
  }

  async offeredTool(name: string): Promise<string | null> {
    const desk = this.#born();
    return desk === null ? null : offeredTool(desk.catalogue, name);
  }

  async toolDigests(): Promise<[string, string][] | null> {
    const desk = this.#born();
    return desk === null ? null : toolDigests(desk.catalogue);
  }

  async liveCalls(member: string | null): Promise<LiveCall[]> {
    const desk = this.#born();
    return desk === null ? [] : liveCalls(desk, member);
  }

  async configure(change: DeviceChange): Promise<void> {
    const desk = this.#born();
    // Without state there is nothing to change: the first dial-in brings the name, and the first hello pulls the rest.
    if (desk !== null) takeChange(desk, change);
  }

  async status(): Promise<DeviceStatus> {
    const desk = this.#born();
    return desk === null ? UNBORN_STATUS : readStatus(desk);
  }

  async closeTunnel(reason: "revoked" | "removed"): Promise<void> {
    const desk = this.#born();
    if (desk === null) return;
    endAll(desk);
    if (reason === "removed") {
      desk.listeners.endAll();
      desk.watchers.endAll("removed");
    }
    const link = desk.links.current();
    const seenAt = link?.lastSeenAt(this.ctx);
    for (const socket of openAgentSockets(this.ctx)) closeQuietly(socket, CLOSE.revoked, reason);
    if (link !== null) linkLost(desk, link, seenAt ?? desk.now());
  }

  async drain(stops: boolean): Promise<number> {
    const desk = this.#born();
    return desk === null ? 0 : drain(desk, stops);
  }

  async endCalls(): Promise<number> {
    const desk = this.#born();
    return desk === null ? 0 : endDrained(desk);
  }

  async destroy(): Promise<void> {
    await this.closeTunnel("removed");
    // What ran here stays on record; D1 has just recorded that the device's keys are revoked, so it answers.
    await this.#born()?.audit.flush();
    await this.#born()?.audit.retry();
    if (this.#desk !== null) this.#desk.isOver = true;
    this.#desk = null;
    this.#messages = null;
    this.#isBorn = false;
    await this.ctx.storage.deleteAlarm();
    await this.ctx.storage.deleteAll();
  }

  // ---- the platform --------------------------------------------------------------------------------------

  /**
   * Takes upgrades from the Worker: an agent's, whose device key it has verified, and those of listeners for change
   * notices, whose token it has, and of people who watch in the console. Everything else is refused.
   */
  override async fetch(request: Request): Promise<Response> {
    if (isListenRequest(request)) return answerListener(this.#born(), request);
    if (isWatchRequest(request)) return answerWatcher(this.#born(), request);
    const dialIn = readDialIn(request);
    return "facts" in dialIn ? acceptDialIn(this.#bear(dialIn.facts)) : new Response(null, { status: dialIn.status });
  }

  override async webSocketMessage(socket: WebSocket, message: string | ArrayBuffer): Promise<void> {
    try {
      const desk = this.#born();
      if (desk === null) return closeQuietly(socket, CLOSE.redial, "unknown state");
      if (isListener(this.ctx, socket) || isWatcher(this.ctx, socket)) return; // The Worker has nothing to say on it.
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
    if (desk !== null) runAlarm(desk);
  }

  // ---- inside --------------------------------------------------------------------------------------------

  async #forward(desk: Desk, grant: Grant, request: Received, { client, session }: Admitted): Promise<CallReply> {
    const outgoing =
      session === undefined || request.logLevel !== undefined ? request : { ...request, logLevel: session.logLevel ?? DEFAULT_LOG_LEVEL };
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
      if (isWatcher(this.ctx, socket)) {
        closeQuietly(socket, code, reason);
        return desk?.watchers.changed();
      }
      if (isListener(this.ctx, socket)) {
        closeQuietly(socket, code, reason);
        return desk?.listeners.gone(readListener(socket));
      }
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

  #bear(facts: DeviceFacts): Desk {
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
    this.#desk ??= new Desk(this.ctx, this.env.DB, runDeadlines, async (url, device) => await postWake(this.env, url, device));
    return this.#desk;
  }
}

type Admitted = Extract<ReturnType<typeof admit>, { ok: true }>;
