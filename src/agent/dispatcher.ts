/**
 * All calls of the agent: starts each at most once, keeps what it has to say until it is delivered, and says it again
 * on a new link (design section 5, "At most once").
 */
import { CALL, EDGE, JOURNAL, QUEUE } from "../limits.ts";
import type { Payload } from "../tunnel/codec.ts";
import type { Call, CancelReason, RelayFrame } from "../tunnel/frames.ts";
import { ActiveCall } from "./active-call.ts";
import { AttachWindows } from "./attach-windows.ts";
import { failure, leaving, type AgentFailure } from "./failure.ts";
import { Inbox } from "./inbox.ts";
import type { Journal } from "./journal.ts";
import { answerFromJournal, neverBegun } from "./journal-answer.ts";
import { failureMessage } from "./outcome-frames.ts";
import type { FramePort } from "./port.ts";
import { readProgress } from "./progress.ts";
import { readParams, requestOf, textOf } from "./read-call.ts";
import type { AgentEvent } from "./types.ts";
import type { CheckedParams } from "./upstreams/params.ts";
import type { CallSink, UpstreamCall, UpstreamOutcome } from "./upstreams/upstream.ts";

export interface DispatcherOptions {
  journal: Journal;
  maxConcurrentCalls: number;
  log: (event: AgentEvent) => void;
  /** The device's own policy: why a call is not run, or undefined. Never rejects. */
  admit: (frame: Call, params: Uint8Array, signal: AbortSignal) => Promise<AgentFailure | undefined>;
  /** Runs a call at its upstream. Never rejects. */
  run: (call: UpstreamCall, sink: CallSink, signal: AbortSignal, ref: Record<string, unknown> | undefined) => Promise<UpstreamOutcome>;
}

/** The frames that concern calls. */
export type CallFrame = Extract<RelayFrame, { type: "call" | "attach" | "cancel" | "answer" | "delivered" | "credit" | "chunk" }>;

const encoder = new TextEncoder();

export class Dispatcher {
  readonly #options: DispatcherOptions;
  readonly #inbox = new Inbox();
  /** Calls that run, and ended ones whose outcome is not delivered, oldest first. */
  readonly #calls = new Map<string, ActiveCall>();
  /** Those that run; and those that may have something to send. Few, where `#calls` holds hundreds on a busy device. */
  readonly #running = new Set<ActiveCall>();
  readonly #talking = new Set<ActiveCall>();
  /** Bytes that the ended ones keep. */
  #endedBytes = 0;
  readonly #windows = new AttachWindows((callId) => this.#unattended(callId));
  #port: FramePort | null = null;
  #maxResultBytes: number = CALL.maxResultBytes;
  #isPumping = false;
  /** Set once the agent takes no further call; called when there is nothing more to say. */
  #onQuiet: (() => void) | null = null;

  constructor(options: DispatcherOptions) {
    this.#options = options;
  }

  get running(): number {
    return this.#running.size;
  }

  get #isQuiet(): boolean {
    return this.#running.size === 0 && ![...this.#calls.values()].some(({ output }) => output.hasMore);
  }

  /** For `hello`: ids of calls that run or whose outcome is kept. */
  held(): string[] {
    return [...this.#calls.keys()].slice(-JOURNAL.entries);
  }

  /** For `hello`: input requests that wait. */
  asks(): { callId: string; askId: string }[] {
    return [...this.#calls.values()]
      .flatMap((call) => call.openAsks.map((askId) => ({ callId: call.id, askId })))
      .slice(0, JOURNAL.entries);
  }

  /** A link is ready. Calls of an earlier one wait for `attach`. */
  online(port: FramePort): void {
    this.#port = port;
    this.#maxResultBytes = Math.min(CALL.maxResultBytes, port.maxResultBytes);
  }

  /** The link is lost. Calls run on, for as long as somebody may still attach. */
  offline(): void {
    this.#port = null;
    this.#onQuiet?.();
    this.#inbox.lost(Date.now());
    for (const call of this.#calls.values()) {
      call.output.detach();
      this.#windows.open(call.id);
    }
  }

  /** Takes one frame. Never throws. */
  frame(frame: CallFrame, payload: Payload | undefined): void {
    switch (frame.type) {
      case "call":
        this.#call(frame, payload);
        break;
      case "chunk":
        this.#chunk(frame.stream, frame.offset, payload);
        break;
      case "attach":
        this.#attach(frame.callId, frame.seq, frame.offset, frame.credit);
        break;
      case "cancel":
        this.#cancel(frame.callId, frame.reason);
        break;
      case "answer":
        this.#calls.get(frame.callId)?.answer(frame, textOf(payload) ?? "null");
        break;
      case "delivered":
        for (const callId of frame.callIds) this.#delivered(callId);
        break;
      case "credit":
        this.#credit(frame.stream, frame.bytes);
        break;
    }
    this.pump();
  }

  /** Sends what may be sent, one message of each call in turn. */
  pump(): void {
    const port = this.#port;
    if (!port || this.#isPumping) return;
    this.#isPumping = true;
    try {
      for (let hasSent = true; hasSent;) {
        hasSent = false;
        for (const call of this.#talking) {
          if (!port.isWritable) return;
          // What it cannot say now waits for more to say, for credit, or for a link: each brings it back.
          if (call.output.pump(port)) hasSent = true;
          else this.#talking.delete(call);
        }
      }
    } finally {
      this.#isPumping = false;
    }
    if (this.#isQuiet) this.#onQuiet?.();
  }

  /** Takes no further call and gives those that run `ms` to end; the callers of the others are told that the agent stops. */
  async leave(ms: number): Promise<void> {
    if (this.#onQuiet) return;
    const { promise: quiet, resolve } = Promise.withResolvers<void>();
    this.#onQuiet = resolve;
    for (const frame of this.#inbox.clear()) this.#refuse(frame, leaving(false));
    if (this.#isQuiet || !this.#port) resolve();
    const timer = setTimeout(resolve, ms);
    await quiet;
    clearTimeout(timer);
    for (const call of this.#running) call.abandon();
  }

  /** Cancels everything that runs. */
  stop(): void {
    for (const call of this.#calls.values()) {
      call.cancel("agent_stopped");
      this.#forget(call);
    }
    this.#inbox.clear();
  }

  /** Ends everything that runs, on the device's behalf; each caller is told why. */
  interrupt(rule: string, message: string): void {
    for (const call of this.#running) call.interrupt(rule, message);
  }

  /** Forgets outcomes that nobody fetched in time. */
  sweep(now: number = Date.now()): void {
    this.#inbox.sweep(now);
    for (const call of this.#calls.values()) if (call.idleSince !== null && now - call.idleSince > JOURNAL.keepMs) this.#forget(call);
  }

  #call(frame: Call, payload: Payload | undefined): void {
    if (this.#repeated(frame)) return;
    if (this.#onQuiet) {
      this.#refuse(frame, leaving(false));
      return;
    }
    if (frame.bytes === undefined) {
      this.#start(frame, textOf(payload));
      return;
    }
    if (payload !== undefined && payload.length > 0) {
      this.#refuse(frame, failure("refused_by_device", "not_started", "The request has a payload and announces another."));
    } else if (frame.bytes === 0) {
      this.#start(frame, "");
    } else {
      this.#expect(frame, frame.bytes);
    }
  }

  #expect(frame: Call, bytes: number): void {
    const { credit, offset } = this.#inbox.open(frame, bytes);
    const from = offset === 0 ? {} : { offset };
    if (credit > 0) this.#port?.send({ type: "credit", stream: frame.callId, bytes: credit, ...from });
    else
      this.#refuse(
        frame,
        failure("too_large", "not_started", "The request is larger than the agent takes.", { size: bytes, cap: EDGE.maxRequestBytes }),
      );
  }

  #chunk(stream: string, offset: number, payload: Payload | undefined): void {
    const piece = typeof payload === "string" ? encoder.encode(payload) : (payload ?? new Uint8Array());
    const arrival = this.#inbox.chunk(stream, offset, piece);
    if (arrival?.kind === "more" && arrival.credit > 0) this.#port?.send({ type: "credit", stream, bytes: arrival.credit });
    if (arrival?.kind === "whole") this.#start(arrival.frame, textOf(arrival.payload));
    if (arrival?.kind === "broken")
      this.#refuse(arrival.frame, failure("refused_by_device", "not_started", `The request is broken: ${arrival.problem}.`));
  }

  /** A call that is known is never started again: it is continued, or what the journal knows is said. */
  #repeated(frame: Call): boolean {
    if (this.#calls.has(frame.callId)) {
      this.#attach(frame.callId, 0, 0, frame.credit);
      this.#port?.send({ type: "ack", callId: frame.callId });
      return true;
    }
    const answer = answerFromJournal(this.#options.journal, frame.callId);
    if (answer !== undefined) this.#say(frame.callId, 1, answer);
    return answer !== undefined;
  }

  #start(frame: Call, payload: string | null): void {
    const params = payload === null ? "the payload is not UTF-8" : readParams(frame, payload);
    if (typeof params === "string") {
      this.#refuse(frame, failure("refused_by_device", "not_started", `The request breaks the tunnel protocol: ${params}.`));
      return;
    }
    if (this.running >= this.#options.maxConcurrentCalls) {
      const text = `The agent runs ${this.#options.maxConcurrentCalls} calls, which is its limit.`;
      this.#refuse(frame, failure("rate_limited", "not_started", text, { retryAfterMs: QUEUE.retryAfterMs }));
      return;
    }
    this.#options.journal.begin(frame.callId);
    const call = this.#add(frame);
    setTimeout(() => this.#acknowledge(call), CALL.ackDelayMs).unref();
    const { target } = frame;
    this.#options.log({
      type: "call",
      callId: frame.callId,
      method: frame.method,
      target,
      grant: frame.caller.grant,
      label: frame.caller.label,
    });
    void this.#run(call, params);
  }

  async #run(call: ActiveCall, params: CheckedParams): Promise<void> {
    const outcome = await this.#outcome(call, requestOf(call.frame, params));
    // All results together have a bound as well; what nobody reads makes room first.
    const room = JOURNAL.outcomeBytes - this.#makeRoom();
    call.finish(outcome, Math.max(0, Math.min(this.#maxResultBytes, room)));
  }

  async #outcome(call: ActiveCall, request: UpstreamCall): Promise<UpstreamOutcome> {
    try {
      const refusal = await this.#options.admit(call.frame, request.params.bytes, call.signal);
      if (refusal !== undefined) return { kind: "failed", failure: refusal };
      return await this.#options.run(request, call, call.signal, call.frame.ref);
    } catch {
      return { kind: "failed", failure: failure("upstream_failed", "unknown", "The call failed inside the agent.") };
    }
  }

  #add(frame: Call): ActiveCall {
    const call = new ActiveCall(frame, {
      hasOutput: () => {
        // One that was cancelled is forgotten by now, and has nothing more to say.
        if (this.#calls.get(call.id) === call) this.#talking.add(call);
        this.pump();
      },
      ended: (ended, outcome) => this.#ended(ended, outcome),
      progress: ({ id }, params) => {
        const step = readProgress(params);
        if (step !== undefined) this.#options.log({ type: "progress", callId: id, ...step });
      },
      warning: (message) => this.#options.log({ type: "warning", message }),
    });
    if (this.#port) call.output.attach(0, 0, frame.credit);
    this.#calls.set(frame.callId, call);
    this.#running.add(call);
    return call;
  }

  #acknowledge(call: ActiveCall): void {
    if (call.output.hasSent || !call.output.isAttached || this.#calls.get(call.id) !== call) return;
    if (this.#port?.send({ type: "ack", callId: call.id }) === true) call.output.markSent();
  }

  #ended(call: ActiveCall, outcome: string): void {
    this.#running.delete(call);
    this.#endedBytes += call.output.heldBytes;
    this.#options.journal.end(call.id);
    this.#options.log({ type: "call_end", callId: call.id, outcome });
    // Cancelled, or an outcome that nobody will ask for.
    if (!call.output.hasOutcome || (!call.output.isAttached && !this.#windows.has(call.id))) this.#forget(call);
  }

  #attach(callId: string, seq: number, offset: number, credit: number): void {
    const call = this.#calls.get(callId);
    if (call) {
      this.#windows.close(callId);
      call.touch();
      call.output.attach(seq, offset, credit);
      this.#talking.add(call);
      return;
    }
    const { journal } = this.#options;
    this.#say(callId, seq + 1, answerFromJournal(journal, callId) ?? neverBegun(journal));
  }

  #credit(callId: string, bytes: number): void {
    const call = this.#calls.get(callId);
    if (!call) return;
    call.touch();
    call.output.addCredit(bytes);
    this.#talking.add(call);
  }

  #cancel(callId: string, reason: CancelReason): void {
    this.#inbox.drop(callId);
    const call = this.#calls.get(callId);
    if (!call) return;
    call.cancel(reason);
    this.#forget(call);
  }

  #delivered(callId: string): void {
    const call = this.#calls.get(callId);
    if (!call) return;
    // "Nobody will ask again" can come for a call that still runs: it runs on, its outcome is dropped.
    if (call.isOver) this.#forget(call);
    else call.output.detach();
  }

  #refuse(frame: Call, problem: AgentFailure): void {
    this.#options.log({ type: "call_end", callId: frame.callId, outcome: `${problem.reason}: ${problem.message}` });
    this.#say(frame.callId, 1, problem);
  }

  #say(callId: string, seq: number, problem: AgentFailure): void {
    this.#port?.send({ ...failureMessage(callId, problem).frame, seq });
  }

  #forget(call: ActiveCall): void {
    this.#windows.close(call.id);
    this.#talking.delete(call);
    if (this.#calls.delete(call.id) && call.isOver) this.#endedBytes -= call.output.heldBytes;
  }

  #unattended(callId: string): void {
    const call = this.#calls.get(callId);
    if (call === undefined || call.output.isAttached) return;
    // A question to a person has its own, longer time.
    if (call.openAsks.length > 0) this.#windows.open(callId);
    else if (call.isOver) this.#forget(call);
    // A legacy caller's disconnect is no cancel: the call runs to its end, and its outcome is dropped.
    else if (call.frame.client.era === "modern") this.#cancel(callId, "caller_left");
  }

  /** Gives up the oldest outcomes that nobody reads while there is too much. Returns the bytes that stay. */
  #makeRoom(): number {
    let held = this.#endedBytes;
    for (const call of this.#running) held += call.output.heldBytes;
    for (const call of this.#calls.values()) {
      if (held <= JOURNAL.outcomeBytes / 2 && this.#calls.size <= JOURNAL.entries) break;
      if (!call.isOver || call.output.isAttached) continue;
      held -= call.output.heldBytes;
      this.#forget(call);
    }
    return held;
  }
}
