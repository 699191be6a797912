/**
 * Runs one program to its end, for tools: no shell, its own process group, bounded output, a time limit, and an end
 * for everything it started. Kept apart from `Child`, which holds a conversation.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { UPSTREAM } from "../limits.ts";
import { planProgram, signalGroup, startProblem } from "./upstreams/process-group.ts";

/** Ends programs when the agent itself is killed. */
export interface ProcessWatch {
  add(pid: number): void;
  remove(pid: number): void;
}

export interface ProgramRun {
  command: string;
  args: readonly string[];
  /** On Windows, the arguments are a command line already. */
  isVerbatim?: boolean | undefined;
  /** All of it; nothing is inherited. */
  env: Readonly<Record<string, string>>;
  cwd?: string | undefined;
  stdin?: string | Uint8Array | undefined;
  timeoutMs: number;
  /** Bytes kept of each output; what is beyond is read and dropped. */
  maxOutputBytes: number;
  signal: AbortSignal;
  watch?: ProcessWatch | undefined;
  /** What it leaves behind goes on when it has ended, such as the owner of a clipboard. Its output is not read then. */
  leaves?: boolean;
  onOutput?: (stream: "stdout" | "stderr", chunk: Buffer) => void;
}

/** How a program ended. */
export interface ProgramEnd {
  /** Null when a signal ended it. */
  exitCode: number | null;
  signal: NodeJS.Signals | null;
  stdout: Buffer;
  stderr: Buffer;
  /** Something did not fit. */
  isTruncated: boolean;
  hasTimedOut: boolean;
}

/** A program that could not be started; the text is for a person. */
export class ProgramError extends Error {
  override readonly name = "ProgramError";
}

/** Runs a program. Rejects with a ProgramError, or with the signal's reason once an aborted program is gone. */
export async function runProgram(run: ProgramRun): Promise<ProgramEnd> {
  run.signal.throwIfAborted();
  const child = start(run);
  const stdout = new Gathered(run.maxOutputBytes);
  const stderr = new Gathered(run.maxOutputBytes);
  const read = (stream: "stdout" | "stderr", into: Gathered) =>
    child[stream]?.on("data", (chunk: Buffer) => {
      into.add(chunk);
      run.onOutput?.(stream, chunk);
    });
  read("stdout", stdout);
  read("stderr", stderr);
  // EPIPE: a program may end without reading its input.
  child.stdin?.on("error", () => undefined);
  child.stdin?.end(run.stdin);
  let hasTimedOut = false;
  const stop = stopper(child);
  const timer = setTimeout(() => {
    hasTimedOut = true;
    stop.begin();
  }, run.timeoutMs);
  run.signal.addEventListener("abort", stop.begin, { once: true });
  try {
    const { exitCode, signal } = await ended(child, run);
    run.signal.throwIfAborted();
    const isTruncated = stdout.isTruncated || stderr.isTruncated;
    return { exitCode, signal, stdout: stdout.bytes(), stderr: stderr.bytes(), isTruncated, hasTimedOut };
  } finally {
    clearTimeout(timer);
    stop.clear();
    run.signal.removeEventListener("abort", stop.begin);
  }
}

function start(run: ProgramRun): ChildProcess {
  try {
    const plan = planProgram(run.command, run.args, run);
    const output = run.leaves === true ? "ignore" : "pipe";
    const child = spawn(plan.file, plan.args, { ...plan.options, stdio: [run.stdin === undefined ? "ignore" : "pipe", output, output] });
    if (child.pid !== undefined) run.watch?.add(child.pid);
    return child;
  } catch (error) {
    throw new ProgramError(startProblem(run.command, error, run.cwd));
  }
}

/** TERM to the group, and KILL when that did not help. */
function stopper(child: ChildProcess): { begin: () => void; clear: () => void } {
  let kill: NodeJS.Timeout | undefined;
  return {
    begin: () => {
      signalGroup(child.pid, "SIGTERM");
      kill ??= setTimeout(() => signalGroup(child.pid, "SIGKILL"), UPSTREAM.stopMs);
    },
    clear: () => clearTimeout(kill),
  };
}

/** Resolves when the program is over and its output is read; what others hold open is waited for only a moment. */
async function ended(child: ChildProcess, run: ProgramRun): Promise<{ exitCode: number | null; signal: NodeJS.Signals | null }> {
  return await new Promise((resolve, reject) => {
    let drain: NodeJS.Timeout | undefined;
    const finish = (exitCode: number | null, signal: NodeJS.Signals | null) => {
      clearTimeout(drain);
      if (run.leaves !== true) signalGroup(child.pid, "SIGKILL");
      if (child.pid !== undefined) run.watch?.remove(child.pid);
      child.stdout?.destroy();
      child.stderr?.destroy();
      resolve({ exitCode, signal });
    };
    child.on("error", (error) => {
      if (child.pid === undefined) reject(new ProgramError(startProblem(run.command, error, run.cwd)));
    });
    child.on("exit", (exitCode, signal) => {
      if (run.leaves !== true) signalGroup(child.pid, "SIGTERM");
      drain = setTimeout(() => finish(exitCode, signal), UPSTREAM.exitDrainMs);
    });
    child.on("close", finish);
  });
}

/** The first bytes of an output. */
class Gathered {
  readonly #max: number;
  readonly #chunks: Buffer[] = [];
  #size = 0;
  isTruncated = false;

  constructor(max: number) {
    this.#max = max;
  }

  add(chunk: Buffer): void {
    const room = this.#max - this.#size;
    if (chunk.length > room) this.isTruncated = true;
    if (room <= 0) return;
    const part = chunk.subarray(0, room);
    this.#chunks.push(part);
    this.#size += part.length;
  }

  bytes(): Buffer {
    return Buffer.concat(this.#chunks);
  }
}
