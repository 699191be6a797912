/**
 * One child process of the agent: no shell, its own process group, bounded stderr, and an end in three steps:
 * end of input, TERM, KILL, to the whole group.
 */
import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { UPSTREAM } from "../../limits.ts";
import { cleanTail, redact } from "../clean-text.ts";
import type { StdioConfig } from "../types.ts";
import { childEnvironment } from "./environment.ts";
import { planProgram, signalGroup, startProblem } from "./process-group.ts";
import type { Watchdog } from "./watchdog.ts";

export interface ChildListener {
  stdout(chunk: Buffer): void;
  /** Once, after its output has ended. `problem` says why, cleaned. */
  exit(problem: string): void;
}

export class Child {
  readonly #process: ChildProcessWithoutNullStreams;
  readonly #listener: ChildListener;
  readonly #config: StdioConfig;
  readonly #watchdog: Watchdog;
  readonly #gone: Promise<void>;
  #stderr = "";
  #isGone = false;

  constructor(config: StdioConfig, watchdog: Watchdog, listener: ChildListener) {
    this.#config = config;
    this.#watchdog = watchdog;
    this.#listener = listener;
    const plan = planProgram(config.command, config.args, { env: childEnvironment(process.env, config.env), cwd: config.cwd });
    this.#process = spawn(plan.file, plan.args, { ...plan.options, stdio: ["pipe", "pipe", "pipe"] });
    const { pid } = this.#process;
    if (pid !== undefined) watchdog.add(pid);
    this.#gone = new Promise((resolve) => {
      this.#listen(resolve);
    });
  }

  get pid(): number | null {
    return this.#process.pid ?? null;
  }

  get isGone(): boolean {
    return this.#isGone;
  }

  /** The end of what it wrote to stderr, cleaned and without the secrets it was given; "" for nothing. */
  get lastWords(): string {
    return cleanTail(redact(this.#stderr, Object.values(this.#config.env ?? {})));
  }

  /** False when too much waits for a child that does not read. */
  write(text: string): boolean {
    if (this.#isGone || this.#process.stdin.writableLength > UPSTREAM.maxQueuedBytes) return false;
    this.#process.stdin.write(text);
    return true;
  }

  /** Ends it: end of input, TERM, KILL. Resolves when it is gone. */
  async stop(): Promise<void> {
    if (this.#isGone) return this.#gone;
    this.#process.stdin.end();
    const term = setTimeout(() => this.#signal("SIGTERM"), UPSTREAM.stopMs);
    const kill = setTimeout(() => this.#signal("SIGKILL"), 2 * UPSTREAM.stopMs);
    await this.#gone;
    clearTimeout(term);
    clearTimeout(kill);
  }

  #listen(gone: () => void): void {
    const child = this.#process;
    child.stdout.on("data", (chunk: Buffer) => this.#listener.stdout(chunk));
    child.stderr.on("data", (chunk: Buffer) => {
      this.#stderr = (this.#stderr + chunk.toString("utf8")).slice(-UPSTREAM.stderrBytes);
    });
    // EPIPE: the child's exit, which follows, says more.
    child.stdin.on("error", () => undefined);
    const finish = (problem: string) => {
      if (this.#isGone) return;
      this.#isGone = true;
      // What the child left behind in its group goes with it.
      this.#signal("SIGKILL");
      if (child.pid !== undefined) this.#watchdog.remove(child.pid);
      child.stdout.destroy();
      child.stderr.destroy();
      child.stdin.destroy();
      this.#listener.exit(problem);
      gone();
    };
    child.on("error", (error: NodeJS.ErrnoException) => {
      if (child.pid === undefined) finish(startProblem(this.#config.command, error, this.#config.cwd));
    });
    let code = "";
    child.on("exit", (exitCode, signal) => {
      code = signal === null ? `exit code ${exitCode}` : `signal ${signal}`;
      // Its grandchildren may hold the pipes open; their output is not waited for.
      this.#signal("SIGTERM");
      setTimeout(() => finish(this.#problem(code)), UPSTREAM.exitDrainMs).unref();
    });
    child.on("close", () => finish(this.#problem(code)));
  }

  #problem(code: string): string {
    const tail = this.lastWords;
    return tail === "" ? `The tool server ended with ${code}.` : `The tool server ended with ${code}: ${tail}`;
  }

  #signal(signal: NodeJS.Signals): void {
    signalGroup(this.#process.pid, signal);
  }
}
