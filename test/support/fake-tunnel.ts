/**
 * A device's object in memory, for tests of the edge: keeps sessions, remembers what it was asked, and answers calls by
 * a script. Each piece of behaviour is a member that a test replaces.
 */
import type { CallReply, CallRequest, DeviceTunnelRpc, DeviceView, Reply, SessionInit, SessionUse } from "../../durable/rpc.ts";
import { encode } from "../../src/tunnel/codec.ts";
import type { AgentFrame, CancelReason } from "../../src/tunnel/frames.ts";
import { writeRecord } from "../../src/tunnel/record.ts";
import type { EdgeTunnel } from "../../src/mcp/tunnel-access.ts";

type Message = string | Uint8Array;

/** A tunnel message of the agent. */
export function message(frame: AgentFrame, payload?: unknown): Message {
  if (payload === undefined) return encode(frame);
  return encode(frame, payload instanceof Uint8Array || typeof payload === "string" ? payload : JSON.stringify(payload));
}

/** A result frame with what a modern device would say. */
export function resultMessage(callId: string, payload: unknown, more: Record<string, unknown> = {}): Message {
  return message({ type: "result", callId, seq: 100, protocol: "2026-07-28", ...more }, payload);
}

/** A reply that is the whole outcome. */
export function whole(first: Message): CallReply {
  return { ok: true, first, rest: null };
}

/** A reply whose messages come one after another; `null` in the list breaks the stream off with an error. */
export function inSteps(
  messages: readonly (Message | null | Promise<Message | null>)[],
  onCancel: () => void = () => undefined,
): CallReply {
  const [first, ...rest] = messages;
  let at = 0;
  const stream = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const next = rest[at];
        at += 1;
        if (next === undefined) return controller.close();
        const message = await next;
        if (message === null) controller.error(new Error("ReadableStream received over RPC disconnected prematurely."));
        else controller.enqueue(writeRecord(message));
      },
      cancel: onCancel,
    },
    { highWaterMark: 0 },
  );
  return { ok: true, first: first as Message, rest: stream };
}

export class FakeTunnel implements EdgeTunnel {
  readonly calls: CallRequest[] = [];
  readonly attached: { callId: string; seq: number; offset: number }[] = [];
  readonly resumed: { callId: string; answers: Record<string, string>; asked: readonly string[] | undefined }[] = [];
  readonly cancelled: { callId: string; reason: CancelReason }[] = [];
  readonly detached: string[] = [];
  readonly deliveredIds: string[] = [];
  readonly levels: { session: string; level: string }[] = [];
  readonly cancelledInSession: { session: string; requestId: string }[] = [];
  readonly answered: { session: string; askKey: string; kind: string; payload: string }[] = [];
  readonly sessions = new Map<string, SessionInit & { grant: string }>();
  /** Every session has been idle for as long as one may be. */
  isIdle = false;
  view: DeviceView = {
    online: true,
    known: true,
    capabilities: { tools: { listChanged: true }, resources: { subscribe: true } },
    serverInfo: { name: "kitchen-pi", version: "4.2.0" },
    instructions: "Controls one house.",
  };

  /** Answers calls; the default echoes an empty tool result. */
  onCall: (request: CallRequest) => CallReply | Promise<CallReply> = ({ callId }) => whole(resultMessage(callId, { content: [] }));
  onAttach: (callId: string, seq: number, offset: number) => CallReply | Promise<CallReply> = () => {
    throw new Error("nothing to attach to");
  };
  onResume: (callId: string, answers: Record<string, string>) => CallReply | Promise<CallReply> = (callId) =>
    whole(resultMessage(callId, { content: [] }));
  onCancel: (callId: string) => void = () => undefined;
  onDelivered: (callId: string) => void = () => undefined;

  async call(request: CallRequest): Promise<CallReply> {
    this.calls.push(structuredClone(request));
    const session = request.session === undefined ? undefined : this.#session(request.grant, request.session);
    if (session !== undefined && !session.ok) return session;
    const reply = await this.onCall(request);
    return session === undefined ? reply : { ...reply, session: session.session };
  }

  async attach(_grant: string, callId: string, seq: number, offset: number): Promise<CallReply> {
    this.attached.push({ callId, seq, offset });
    return this.onAttach(callId, seq, offset);
  }

  async resume(_grant: string, callId: string, answers: Record<string, string>, asked?: readonly string[]): Promise<CallReply> {
    this.resumed.push({ callId, answers, asked });
    return this.onResume(callId, answers);
  }

  async cancel(callId: string, reason: CancelReason): Promise<void> {
    this.cancelled.push({ callId, reason });
    this.onCancel(callId);
  }

  async detach(callId: string): Promise<void> {
    this.detached.push(callId);
  }

  async delivered(callId: string): Promise<void> {
    this.deliveredIds.push(callId);
    this.onDelivered(callId);
  }

  async describe(): Promise<Reply<{ view: DeviceView }>> {
    return { ok: true, view: this.view };
  }

  async openSession(grant: string, init: SessionInit): Promise<Reply<{ sessionId: string; view: DeviceView }>> {
    const sessionId = `s-${this.sessions.size + 1}`;
    this.sessions.set(sessionId, { ...init, grant });
    return { ok: true, sessionId, view: this.view };
  }

  async useSession(grant: string, session: SessionUse): ReturnType<DeviceTunnelRpc["useSession"]> {
    return this.#session(grant, session);
  }

  async endSession(grant: string, sessionId: string): Promise<Reply<object>> {
    const found = this.#session(grant, { id: sessionId });
    if (found.ok) this.sessions.delete(sessionId);
    return found;
  }

  async setLogLevel(grant: string, session: SessionUse, level: string): Promise<Reply<object>> {
    const found = this.#session(grant, session);
    if (found.ok) this.levels.push({ session: session.id, level });
    return found;
  }

  async cancelInSession(grant: string, session: SessionUse, requestId: string): Promise<Reply<object>> {
    const found = this.#session(grant, session);
    if (found.ok) this.cancelledInSession.push({ session: session.id, requestId });
    return found;
  }

  async answerInSession(
    grant: string,
    session: SessionUse,
    askKey: string,
    kind: "result" | "error",
    payload: string,
  ): Promise<Reply<object>> {
    const found = this.#session(grant, session);
    if (found.ok) this.answered.push({ session: session.id, askKey, kind, payload });
    return found;
  }

  #session(grant: string, use: SessionUse): Awaited<ReturnType<DeviceTunnelRpc["useSession"]>> {
    const found = this.sessions.get(use.id);
    const isOver = this.isIdle && use.strict === true;
    if (found === undefined || found.grant !== grant || isOver) return { ok: false, refusal: { kind: "session", why: "unknown" } };
    if (use.headerVersion !== undefined && use.headerVersion !== found.version) {
      return { ok: false, refusal: { kind: "session", why: "version" } };
    }
    return { ok: true, session: { version: found.version, capabilities: found.capabilities } };
  }
}
