/** Real processes for tests: started without a shell, read line by line, waited for with deadlines, and always ended. */
import { spawn, type ChildProcess } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";

/** How a process ended. */
export interface Ended {
  code: number | null;
  signal: NodeJS.Signals | null;
}

/** A process under test. */
export interface RunningProcess {
  child: ChildProcess;
  pid: number;
  /** Everything printed so far. */
  output: { stdout: string; stderr: string };
  /** The first line of a stream that fits, also one printed before the call; fails with the output at the deadline. */
  line(stream: "stdout" | "stderr", fits: (line: string) => boolean, withinMs?: number): Promise<string>;
  /** Waits for the end; fails with the output at the deadline. */
  ended(withinMs?: number): Promise<Ended>;
  /** SIGTERM, then SIGKILL at the deadline. */
  stop(withinMs?: number): Promise<Ended>;
}

const DEADLINE_MS = 30_000;
const POLL_MS = 25;

const running = new Set<ChildProcess>();
// A test run that is interrupted leaves nothing behind.
process.once("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/**
 * Starts a program. Its environment is the test's own, with `env` on top; undefined removes a variable. `detached`
 * makes it the leader of a process group, so that `process.kill(-pid, "SIGINT")` reaches all of it, as Ctrl-C does.
 */
export function startProcess(
  command: string,
  args: readonly string[],
  options: { cwd?: string; env?: Record<string, string | undefined>; stdin?: "pipe"; detached?: boolean } = {},
): RunningProcess {
  const child = spawn(command, args, {
    cwd: options.cwd,
    detached: options.detached === true,
    env: { ...process.env, ...options.env },
    stdio: [options.stdin ?? "ignore", "pipe", "pipe"],
  });
  running.add(child);
  const output = { stdout: "", stderr: "" };
  const lines: { stream: "stdout" | "stderr"; line: string }[] = [];
  const changed = new Set<() => void>();
  const wake = (): void => changed.forEach((look) => look());
  for (const stream of ["stdout", "stderr"] as const) {
    child[stream]?.setEncoding("utf8").on("data", (text: string) => (output[stream] += text));
    const source = child[stream];
    if (source === null) continue;
    createInterface(source).on("line", (line) => {
      lines.push({ stream, line });
      wake();
    });
  }
  let end: Ended | undefined;
  // "close" comes after the last output, "exit" may not.
  child.once("close", (code, signal) => {
    end = { code, signal };
    running.delete(child);
    wake();
  });
  child.once("error", (error) => {
    output.stderr += String(error);
    end ??= { code: null, signal: null };
    running.delete(child);
    wake();
  });

  /** Resolves when `look` gives a value; fails at the deadline, or when the process ends first unless `alsoAfterEnd`. */
  function wait<T>(what: string, look: () => T | undefined, withinMs: number): Promise<T> {
    return new Promise((resolve, reject) => {
      const done = (settle: () => void): void => {
        clearTimeout(timer);
        changed.delete(check);
        settle();
      };
      const fail = (why: string): void =>
        done(() => reject(new Error(`${what}: ${why}\n--- stdout\n${output.stdout}\n--- stderr\n${output.stderr}`)));
      const check = (): void => {
        const value = look();
        if (value !== undefined) done(() => resolve(value));
        else if (end !== undefined) fail(`the process ended (${end.code ?? end.signal})`);
      };
      const timer = setTimeout(() => fail(`nothing within ${withinMs} ms`), withinMs);
      changed.add(check);
      check();
    });
  }

  const ended = (withinMs = DEADLINE_MS): Promise<Ended> => wait("waiting for the end", () => end, withinMs);
  return {
    child,
    pid: child.pid ?? -1,
    output,
    line: (stream, fits, withinMs = DEADLINE_MS) =>
      wait(`waiting for a line on ${stream}`, () => lines.find((l) => l.stream === stream && fits(l.line))?.line, withinMs),
    ended,
    stop: async (withinMs = DEADLINE_MS) => {
      if (end !== undefined) return end;
      child.kill("SIGTERM");
      return await ended(withinMs).catch(async () => {
        child.kill("SIGKILL");
        return await ended();
      });
    },
  };
}

/** Asks again and again until `look` gives something other than undefined or false; fails at the deadline. */
export async function eventually<T>(
  what: string,
  look: () => T | undefined | false | Promise<T | undefined | false>,
  withinMs = DEADLINE_MS,
): Promise<T> {
  const until = Date.now() + withinMs;
  for (;;) {
    const value = await look();
    if (value !== undefined && value !== false) return value;
    if (Date.now() >= until) throw new Error(`${what}: not within ${withinMs} ms`);
    await sleep(POLL_MS);
  }
}

/** True while a process with this id exists. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** A new directory of its own, removed by `remove`. */
export async function temporaryDir(): Promise<{ path: string; remove: () => Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), "longline-test-"));
  return { path, remove: async () => await rm(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 }) };
}
