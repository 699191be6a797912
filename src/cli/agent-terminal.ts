/** The agent's terminal as a place to be asked in, and to type `stop` and `resume`. */
import { TerminalAsker } from "../agent/ask/terminal-asker.ts";
import { resumeAll, stopAll } from "../agent/stop-switch.ts";
import type { AgentScreen } from "./agent-screen.ts";

/** Reads the terminal of this process; undefined when nobody can type there or see what is asked. */
export function listenToTerminal(screen: AgentScreen, stateDir: string): TerminalAsker | undefined {
  if (!process.stdin.isTTY || !process.stderr.isTTY) return undefined;
  return new TerminalAsker({
    input: process.stdin,
    write: (line) => screen.line(line),
    asking: (isOpen) => screen.hold(isOpen),
    command: (word) => (word === "stop" ? stopAll(stateDir) : resumeAll(stateDir)),
  });
}
