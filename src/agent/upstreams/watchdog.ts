/**
 * Ends the agent's children when the agent itself is killed: a shell that reads a pipe from us, keeps the list of
 * process groups, and ends them when the pipe closes. A process that left its group is out of reach.
 */
import { spawn } from "node:child_process";
import { UPSTREAM } from "../../limits.ts";

/** Reads `+ PID` and `- PID`; at the end of input TERM, a pause, KILL. */
const SCRIPT = `
groups=""
while read -r op pid; do
  case $op in
    +) groups="$groups $pid" ;;
    -) rest=""; for g in $groups; do [ "$g" = "$pid" ] || rest="$rest $g"; done; groups=$rest ;;
  esac
done
[ -z "$groups" ] && exit 0
for g in $groups; do kill -s TERM -- "-$g" 2>/dev/null; done
sleep ${UPSTREAM.stopMs / 1000}
for g in $groups; do kill -s KILL -- "-$g" 2>/dev/null; done
`;

/** What is used of the shell's input. */
interface Input {
  write(line: string): unknown;
  end(): unknown;
}

export class Watchdog {
  readonly #groups = new Set<number>();
  /** The shell's input; null while there is none. */
  #input: Input | null = null;

  /** Watches a process group, named by its leader's pid. */
  add(pid: number): void {
    this.#groups.add(pid);
    if (process.platform === "win32") return;
    if (this.#input) this.#write(`+ ${pid}\n`);
    else this.#start();
  }

  remove(pid: number): void {
    if (!this.#groups.delete(pid)) return;
    this.#write(`- ${pid}\n`);
  }

  /** Ends the watchdog; groups still listed are ended with it. */
  close(): void {
    this.#input?.end();
    this.#input = null;
  }

  #start(): void {
    const child = spawn("/bin/sh", ["-c", SCRIPT], {
      // Its own session: a signal to the agent's group must not reach it.
      detached: true,
      stdio: ["pipe", "ignore", "ignore"],
      env: { PATH: "/usr/bin:/bin" },
    });
    const input = child.stdin;
    child.on("error", () => this.#lost(input));
    child.on("exit", () => this.#lost(input));
    input.on("error", () => this.#lost(input));
    // Neither process nor pipe keeps the agent alive.
    child.unref();
    if ("unref" in input && typeof input.unref === "function") input.unref();
    this.#input = input;
    for (const group of this.#groups) this.#write(`+ ${group}\n`);
  }

  #lost(input: Input): void {
    // The next child starts another one.
    if (this.#input === input) this.#input = null;
  }

  #write(line: string): void {
    this.#input?.write(line);
  }
}
