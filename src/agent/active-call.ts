/**
 * One call at the agent, from its start until its outcome is delivered: deadline, input requests, and what it has to
 * say. It ends once; what an upstream still says after that is dropped.
 */
import { CALL } from "../limits.ts";
import type { Answer, Call, CancelReason } from "../tunnel/frames.ts";
import { CallOutput } from "./call-output.ts";
import { Deadline } from "./deadline.ts";
import { failure, leaving } from "./failure.ts";
import { failureMessage, outcomeMessage } from "./outcome-frames.ts";
import type { AskAnswer, CallSink, InputMethod, UpstreamOutcome } from "./upstreams/upstream.ts";

export interface ActiveCallListener {
  /** There is something to send. */
  hasOutput(): void;
  /** It has its outcome, or was cancelled. `outcome` is a word for the log. */
  ended(call: ActiveCall, outcome: string): void;
  /** The upstream told how far it is. */
  progress(call: ActiveCall, params: Uint8Array): void;
  warning(message: string): void;
}

interface OpenAsk {
  settle(answer: AskAnswer): void;
}

const TOO_LARGE = `{"code":-32603,"message":"The request is too large to be passed on"}`;

export class ActiveCall implements CallSink {
  readonly id: string;
  readonly frame: Call;
  readonly output: CallOutput;
  readonly #listener: ActiveCallListener;
  readonly #abort = new AbortController();
  readonly #deadline: Deadline;
  readonly #asks = new Map<string, OpenAsk>();
  #inputTimer: ReturnType<typeof setTimeout> | null = null;
  #askCount = 0;
  #hasBegun = false;
  #isOver = false;
  /** Epoch ms since when its outcome waits to be fetched; null while it runs. */
  idleSince: number | null = null;

  constructor(frame: Call, listener: ActiveCallListener) {
    this.id = frame.callId;
    this.frame = frame;
    this.output = new CallOutput(frame.callId);
    this.#listener = listener;
    this.#deadline = new Deadline(frame.timeoutMs, () => this.#timedOut());
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  get openAsks(): string[] {
    return [...this.#asks.keys()];
  }

  /** Somebody fetches what it has to say. */
  touch(): void {
    if (this.idleSince !== null) this.idleSince = Date.now();
  }

  begun(): void {
    this.#hasBegun = true;
  }

  event(method: "notifications/progress" | "notifications/message", params: Uint8Array): void {
    if (this.#isOver) return;
    if (method === "notifications/progress") this.#listener.progress(this, params);
    if (this.output.event(method, params)) this.#listener.hasOutput();
    else this.#listener.warning(`call ${this.id}: a notification of ${params.length} bytes is too large to be passed on`);
  }

  ask(method: InputMethod, params: Uint8Array, signal?: AbortSignal): Promise<AskAnswer> {
    if (this.#isOver || signal?.aborted === true) return Promise.resolve({ kind: "cancelled" });
    this.#askCount += 1;
    const askId = `a${this.#askCount}`;
    if (!this.output.ask(askId, method, params)) return Promise.resolve({ kind: "error", body: TOO_LARGE });
    return new Promise((resolve) => {
      const settle = (answer: AskAnswer) => {
        if (!this.#asks.delete(askId)) return;
        this.#watchInput();
        resolve(answer);
      };
      this.#asks.set(askId, { settle });
      this.#watchInput();
      signal?.addEventListener("abort", () => settle({ kind: "cancelled" }), { once: true });
      this.#listener.hasOutput();
    });
  }

  /** Takes the client's answer; one that nobody waits for is dropped. */
  answer(frame: Answer, body: string): void {
    this.#asks.get(frame.askId)?.settle({ kind: frame.kind, body });
  }

  /** Ends the call with what the upstream said. */
  finish(outcome: UpstreamOutcome, maxResultBytes: number): void {
    if (this.#isOver) return;
    this.output.outcome(outcomeMessage(this.id, outcome, maxResultBytes));
    this.#over(outcome.kind === "failed" ? outcome.failure.reason : outcome.kind);
  }

  /** Ends the call on the relay's behalf: nothing more is sent for it. */
  cancel(reason: CancelReason | "agent_stopped"): void {
    if (this.#isOver) return;
    this.#over("cancelled", reason);
  }

  /** Ends the call on the device's behalf; `rule` says which of its rules did. */
  interrupt(rule: string, message: string): void {
    if (this.#isOver) return;
    this.output.outcome(
      failureMessage(this.id, failure("refused_by_device", this.#hasBegun ? "unknown" : "not_started", message, { rule })),
    );
    this.#over("refused_by_device", "device_stopped");
  }

  /** The agent ends before the call does: its caller is told now, as far as it is known. */
  abandon(): void {
    if (this.#isOver) return;
    this.output.outcome(failureMessage(this.id, leaving(this.#hasBegun)));
    this.#over("agent_restarted", "agent_stopped");
  }

  #timedOut(): void {
    const limitMs = this.frame.timeoutMs;
    const outcome = this.#hasBegun ? "unknown" : "not_started";
    const problem = failure("device_timeout", outcome, `The call took longer than ${limitMs} ms.`, { limitMs, setBy: "relay" });
    this.output.outcome(failureMessage(this.id, problem));
    this.#over("device_timeout", "deadline");
  }

  #inputExpired(): void {
    const limitMs = CALL.inputTimeoutMs;
    const problem = failure("input_expired", "unknown", `Nobody answered within ${limitMs} ms.`, { limitMs, setBy: "relay" });
    this.output.outcome(failureMessage(this.id, problem));
    this.#over("input_expired", "deadline");
  }

  /** The call's own time stands still while somebody is asked, and that time has its own limit. */
  #watchInput(): void {
    const isWaiting = this.#asks.size > 0 && !this.#isOver;
    if (!isWaiting) {
      if (this.#inputTimer) clearTimeout(this.#inputTimer);
      this.#inputTimer = null;
      if (!this.#isOver) this.#deadline.resume();
      return;
    }
    this.#deadline.pause();
    this.#inputTimer ??= setTimeout(() => this.#inputExpired(), CALL.inputTimeoutMs);
  }

  #over(outcome: string, reason?: string): void {
    this.#isOver = true;
    this.idleSince = Date.now();
    this.#deadline.clear();
    if (this.#inputTimer) clearTimeout(this.#inputTimer);
    for (const ask of this.#asks.values()) ask.settle({ kind: "cancelled" });
    if (reason !== undefined) this.#abort.abort(reason);
    this.#listener.ended(this, outcome);
    this.#listener.hasOutput();
  }
}
