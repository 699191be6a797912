/** `longline agent --stop-all` and `--resume`: end all calls of this machine's agents, and let them run again. */
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { resumeAll, stopAll } from "../../agent/stop-switch.ts";
import { ApiError } from "../../errors.ts";
import { agentStateDirs } from "../state-dir.ts";
import type { Terminal } from "../terminal.ts";

/** Stops or resumes the agent with this state directory; without one, every agent of this user. */
export function stopCalls(terminal: Terminal, what: "stop" | "resume", state: string | undefined): void {
  const given = state === undefined ? undefined : resolve(terminal.cwd, state);
  const directories = given === undefined ? agentStateDirs(terminal.env) : [given].filter((path) => existsSync(path));
  if (directories.length === 0) throw new ApiError("not_found", "No agent was ever run here. Pass --state DIR if it was started with one.");
  for (const directory of directories) (what === "stop" ? stopAll : resumeAll)(directory);
  const agents = directories.length === 1 ? "the agent" : `${directories.length} agents`;
  terminal.out(
    what === "stop" ? `Stopped all calls of ${agents}. \`longline agent --resume\` lets them run again.` : `Calls of ${agents} run again.`,
  );
}
