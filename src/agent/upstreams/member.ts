/** One upstream among those of a device: its place in the configuration, the calls on it, and its orderly end. */
import { CONFIG } from "../../limits.ts";
import type { UpstreamState } from "../../tunnel/frames.ts";
import { failure } from "../failure.ts";
import { orAborted } from "../or-aborted.ts";
import type { Naming, UpstreamConfig } from "../types.ts";
import { configKey, configText, namingOf } from "./config-identity.ts";
import type { CallSink, Upstream, UpstreamCall, UpstreamLists, UpstreamOutcome } from "./upstream.ts";

const TAKEN_AWAY = "The device's configuration changed while the call ran. Check what the tool did before calling again.";

export class Member {
  readonly key: string;
  /** Its configuration as text: equal means that nothing changed. */
  readonly text: string;
  /** It may answer for more than it lists, as servers do. */
  readonly isOpen: boolean;
  naming: Naming;
  /** What does not fit beside the other upstreams, for a person; null when all does. */
  conflict: string | null = null;
  readonly #upstream: Upstream;
  /** What its predecessor offered, until it has said itself: the lists do not vanish in between. */
  readonly #inherited: UpstreamLists | null;
  readonly #calls = new Set<AbortController>();
  readonly #begun: Promise<unknown>;
  #hasBegun: boolean;
  #isIdle: () => void = () => undefined;

  /** It starts after `before`: two of them may not share a screen or a port. */
  constructor(config: UpstreamConfig, upstream: Upstream, before?: { gone: Promise<void>; lists: UpstreamLists | null }) {
    this.key = configKey(config);
    this.text = configText(config);
    this.isOpen = config.kind === "stdio" || config.kind === "http";
    this.naming = namingOf(config);
    this.#upstream = upstream;
    this.#inherited = before?.lists ?? null;
    this.#begun = before?.gone ?? Promise.resolve();
    this.#hasBegun = before === undefined;
  }

  get alias(): string {
    return this.#upstream.alias;
  }

  /** Whether this is that upstream's place. */
  is(upstream: Upstream): boolean {
    return this.#upstream === upstream;
  }

  /** What it offers; null until it has said. */
  get lists(): UpstreamLists | null {
    return this.#upstream.lists() ?? (this.#upstream.state().state === "crashed" ? null : this.#inherited);
  }

  /** Whether it has said what it offers, or cannot. */
  get isSettled(): boolean {
    return this.#upstream.lists() !== null || this.#upstream.state().state === "crashed";
  }

  get state(): UpstreamState {
    const state = this.#upstream.state();
    return { ...state, problem: state.problem ?? this.conflict };
  }

  /** Starts at once, or when its predecessor is gone. `isWanted` is asked then. */
  start(isWanted: () => boolean): void {
    void this.#begun.then(() => {
      this.#hasBegun = true;
      if (isWanted()) this.#upstream.start();
    });
  }

  /** Never rejects. */
  async run(call: UpstreamCall, sink: CallSink, signal: AbortSignal): Promise<UpstreamOutcome> {
    const own = new AbortController();
    const any = AbortSignal.any([signal, own.signal]);
    this.#calls.add(own);
    try {
      if (!this.#hasBegun) await orAborted(this.#begun, any);
      const outcome = await this.#upstream.run(call, sink, any);
      return own.signal.aborted && !signal.aborted
        ? { kind: "failed", failure: failure("upstream_failed", "unknown", TAKEN_AWAY) }
        : outcome;
    } finally {
      this.#calls.delete(own);
      if (this.#calls.size === 0) this.#isIdle();
    }
  }

  async subscribe(uri: string, grant: string): Promise<UpstreamOutcome> {
    await this.#begun;
    return await this.#upstream.subscribe(uri, grant);
  }

  async unsubscribe(uri: string, grant: string): Promise<UpstreamOutcome> {
    await this.#begun;
    return await this.#upstream.unsubscribe(uri, grant);
  }

  async probe(): Promise<void> {
    await this.#upstream.probe();
  }

  async stop(): Promise<void> {
    await this.#upstream.stop();
  }

  /** Ends it: calls have a moment to end by themselves. Resolves when it is gone. */
  async leave(): Promise<void> {
    if (this.#calls.size > 0) {
      const idle = new Promise<void>((resolve) => {
        this.#isIdle = resolve;
      });
      const timer = setTimeout(() => this.#isIdle(), CONFIG.drainMs);
      await idle;
      clearTimeout(timer);
      for (const call of this.#calls) call.abort("the configuration changed");
    }
    await this.#upstream.stop();
  }
}
