/**
 * "Stop all now": a file in the state directory. While it is there no call is run; it outlives a restart, and whoever
 * may write there can set it, from a terminal, another process or by hand. Each call looks for itself; a poll finds
 * it for the calls that run.
 */
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { POLICY } from "../limits.ts";

const NAME = "stopped";

/** Stops all calls of the agent with this state directory, until `resumeAll`. */
export function stopAll(stateDir: string): void {
  writeFileSync(join(stateDir, NAME), "No call is run while this file is here. `longline agent --resume` removes it.\n", { mode: 0o600 });
}

/** Takes a stop back. */
export function resumeAll(stateDir: string): void {
  rmSync(join(stateDir, NAME), { force: true });
}

/** True while calls are stopped. */
export function isStopped(stateDir: string): boolean {
  return existsSync(join(stateDir, NAME));
}

export class StopSwitch {
  readonly #stateDir: string;
  readonly #onChange: (isStopped: boolean) => void;
  readonly #timer: NodeJS.Timeout;
  #known: boolean;

  /** `onChange` is told of each change, and at once when it is stopped already. */
  constructor(stateDir: string, onChange: (isStopped: boolean) => void) {
    this.#stateDir = stateDir;
    this.#onChange = onChange;
    this.#known = isStopped(stateDir);
    if (this.#known) onChange(true);
    this.#timer = setInterval(() => this.look(), POLICY.stopPollMs);
    this.#timer.unref();
  }

  /** True while calls are stopped, as of now. */
  look(): boolean {
    const now = isStopped(this.#stateDir);
    if (now === this.#known) return now;
    this.#known = now;
    this.#onChange(now);
    return now;
  }

  close(): void {
    clearInterval(this.#timer);
  }
}
