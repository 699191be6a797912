/** The agent of `start`: a process of its own, as it would be on another machine. */
import { fork, type ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";
import { join } from "node:path";
import { ApiError } from "../../errors.ts";
import { CLI } from "../../limits.ts";

/** What the agent is started with. The key travels in the environment, never on the command line. */
export interface AgentProcessOptions {
  relay: string;
  deviceKey: string;
  stateDir: string;
  signal: AbortSignal;
  /** Receives each line the agent prints for a person. */
  log: (line: string) => void;
}

/** An agent that is online. */
export interface AgentProcess {
  /** Resolves when the agent's process has ended by itself. */
  ended: Promise<void>;
  stop(): Promise<void>;
}

/** Starts the agent and resolves when it is online. */
export async function startAgentProcess(options: AgentProcessOptions): Promise<AgentProcess> {
  const args = ["agent", "--relay", options.relay, "--demo", "--state", options.stateDir, "--json"];
  // An IPC channel: when this process is gone, however it ended, the agent notices and ends too.
  const child = fork(entryFile(), args, {
    env: { ...process.env, LONGLINE_DEVICE_KEY: options.deviceKey },
    stdio: ["ignore", "pipe", "pipe", "ipc"],
  });
  const ended = new Promise<void>((done) => child.once("exit", () => done()));
  if (child.stderr !== null) createInterface(child.stderr).on("line", options.log);
  const agent: AgentProcess = { ended, stop: async () => await stop(child, ended) };
  try {
    await waitUntilOnline(child, ended, options.signal);
    return agent;
  } catch (error) {
    await agent.stop();
    throw error;
  }
}

/** The file this process was started with: the command itself. */
function entryFile(): string {
  return process.argv[1] ?? join(import.meta.dirname, "../main.ts");
}

async function waitUntilOnline(child: ChildProcess, ended: Promise<void>, signal: AbortSignal): Promise<void> {
  const { stdout } = child;
  if (stdout === null) throw new Error("the agent has no stdout");
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const timer = setTimeout(
    () => reject(new ApiError("failed", "The agent did not get online in time. The lines above may say why.")),
    CLI.onlineMs,
  );
  const onAbort = (): void => reject(new ApiError("failed", "Stopped before the agent was online."));
  signal.addEventListener("abort", onAbort, { once: true });
  void ended.then(() => reject(new ApiError("failed", "The agent ended at once. The lines above say why.")));
  // With --json the agent prints its one line when it is online.
  createInterface(stdout).once("line", () => resolve());
  try {
    await promise;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
  }
}

async function stop(child: ChildProcess, ended: Promise<void>): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGTERM");
  const timer = setTimeout(() => child.kill("SIGKILL"), CLI.agentStopMs);
  await ended;
  clearTimeout(timer);
}
