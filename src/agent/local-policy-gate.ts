/** Where the device's own policy meets a call: decides, asks, refuses, and writes down what is run and refused. */
import { POLICY } from "../limits.ts";
import type { Prefixes } from "../policy/other-names.ts";
import type { Call } from "../tunnel/frames.ts";
import { QuestionQueue } from "./ask/question-queue.ts";
import { askWord, type Asker } from "./ask/question.ts";
import type { CallLog, LoggedCall } from "./call-log.ts";
import { failure, type AgentFailure } from "./failure.ts";
import { judge, type LocalPolicy, type ToolFacts } from "./local-policy.ts";
import type { StopSwitch } from "./stop-switch.ts";

export interface GateOptions {
  policy: LocalPolicy;
  asker: Asker;
  log: CallLog;
  stop: Pick<StopSwitch, "look">;
  /** What the lists say of a tool now. */
  factsOf: (tool: string) => ToolFacts | undefined;
  /** Prefixes before names of upstreams now. */
  prefixes(): Prefixes | undefined;
}

export class PolicyGate {
  readonly #options: GateOptions;
  readonly #questions: QuestionQueue;
  /** In force from the next call on. */
  policy: LocalPolicy;

  constructor(options: GateOptions) {
    this.#options = options;
    this.#questions = new QuestionQueue(options.asker);
    this.policy = options.policy;
  }

  /** Whether a call may run: undefined, or why not. Never rejects. `params` is the call's payload, as JSON text. */
  async admit(call: Call, params: Uint8Array, signal: AbortSignal): Promise<AgentFailure | undefined> {
    const verdict = judge(this.policy, call, this.#options.factsOf, this.#options.prefixes());
    if (verdict === undefined) return undefined;
    const entry = this.#entry(call, params);
    const refuse = (rule: string, why: string) => {
      this.#options.log.refused(entry, rule, why);
      return failure("refused_by_device", "not_started", `The device refused this call: ${why} (${rule}).`, { rule });
    };
    if (this.#options.stop.look()) return refuse("stopped", STOPPED);
    if (verdict.action === "deny") return refuse(verdict.rule, "its policy does not allow it");
    if (verdict.action === "ask") {
      const answer = await this.#ask(call, params, signal);
      if (answer.kind === "refused") return refuse(verdict.rule, answer.why);
      // Both may have changed while somebody thought about it.
      if (this.#options.stop.look()) return refuse("stopped", STOPPED);
      if (signal.aborted) return refuse(verdict.rule, "the call ended before somebody answered");
    }
    this.#options.log.started(entry, verdict.action === "ask" ? `${verdict.rule}: allowed by a person` : verdict.rule);
    return undefined;
  }

  async #ask(call: Call, params: Uint8Array, signal: AbortSignal) {
    const { caller, method, target } = call;
    const argumentsText = compact(params);
    return await this.#questions.ask({ caller, method, target, argumentsText, seconds: this.policy.askSeconds, word: askWord() }, signal);
  }

  #entry(call: Call, params: Uint8Array): LoggedCall {
    const { callId, method, target, caller } = call;
    const kept = this.policy.logArguments ? { arguments: compact(params).slice(0, POLICY.loggedArguments) } : {};
    return { callId, method, target, caller, ...kept };
  }
}

/** Why nothing is run while all is stopped. */
export const STOPPED = "somebody stopped all calls at the device";

/** The arguments on one line; what is not JSON, as it is. */
function compact(params: Uint8Array): string {
  const text = Buffer.from(params).toString("utf8");
  try {
    const value: unknown = JSON.parse(text);
    const { arguments: given, ...rest } = value as Record<string, unknown>;
    return JSON.stringify(Object.keys(rest).length === 0 ? (given ?? {}) : value);
  } catch {
    return text;
  }
}
