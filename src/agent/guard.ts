/** The device's own say in one place: policy, questions, stop switch and log of calls of one agent. */
import type { Prefixes } from "../policy/other-names.ts";
import { CallLog } from "./call-log.ts";
import type { Asker } from "./ask/question.ts";
import { PolicyGate, STOPPED } from "./local-policy-gate.ts";
import { toolFacts, type LocalPolicy, type ToolFacts } from "./local-policy.ts";
import { StopSwitch } from "./stop-switch.ts";
import type { AgentEvent } from "./types.ts";

export interface GuardOptions {
  stateDir: string;
  policy: LocalPolicy;
  asker: Asker;
  /** Tools as they are listed now, each as JSON text. */
  tools(): readonly string[] | undefined;
  /** Prefixes before names of upstreams now. */
  prefixes(): Prefixes | undefined;
  report(event: AgentEvent): void;
  /** Ends every call that runs. */
  interrupt(rule: string, message: string): void;
}

export class Guard {
  readonly gate: PolicyGate;
  readonly log: CallLog;
  readonly #stop: StopSwitch;
  readonly #options: GuardOptions;
  #facts: ReadonlyMap<string, ToolFacts> = new Map();

  constructor(options: GuardOptions) {
    this.#options = options;
    this.log = new CallLog(options.stateDir, (message) => options.report({ type: "warning", message }));
    this.#stop = new StopSwitch(options.stateDir, (isStopped) => {
      options.report({ type: "stopped", isStopped });
      if (isStopped) options.interrupt("stopped", `The device ended this call: ${STOPPED}.`);
    });
    this.gate = new PolicyGate({
      policy: options.policy,
      asker: options.asker,
      log: this.log,
      stop: this.#stop,
      prefixes: () => options.prefixes(),
      factsOf: (tool) => this.#facts.get(tool),
    });
  }

  /** The lists were read anew. */
  listed(): void {
    this.#facts = toolFacts(this.#options.tools() ?? []);
  }

  close(): void {
    this.#stop.close();
    this.log.close();
  }
}
