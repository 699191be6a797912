/** A helper program of the benchmark: started, told its input, waited for until it is ready, always ended. */
import { fileURLToPath } from "node:url";
import { startProcess, type RunningProcess } from "../../support/processes.ts";

/** ms that a helper has to be ready. */
const READY_MS = 120_000;

/** A helper that is ready; `line` is what it printed first. */
export interface Helper {
  pid: number;
  line: string;
  process: RunningProcess;
  stop(): Promise<void>;
}

/** Starts `agents/NAME.ts`. `nodeArgs` are for Node itself, such as `--cpu-prof`. */
export async function startHelper(
  name: string,
  args: readonly string[],
  options: { input?: readonly string[]; nodeArgs?: readonly string[] } = {},
): Promise<Helper> {
  const script = fileURLToPath(new URL(`../agents/${name}.ts`, import.meta.url));
  const child = startProcess(process.execPath, [...(options.nodeArgs ?? []), script, ...args], { stdin: "pipe" });
  // An empty line ends the input; the pipe stays open, because its end stops the helper.
  if (options.input !== undefined) child.child.stdin?.write(`${options.input.join("\n")}\n\n`);
  const line = await child.line("stdout", () => true, READY_MS);
  return {
    pid: child.pid,
    line,
    process: child,
    stop: async () => {
      child.child.stdin?.end();
      await child.ended().catch(async () => await child.stop());
    },
  };
}
