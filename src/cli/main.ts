/** Entry of the `longline` command. */
import { run } from "./program.ts";
import { processTerminal } from "./terminal.ts";

// A reader that left, such as `head`, ends the command quietly.
process.stdout.on("error", () => process.exit(0));
// A terminal that was closed takes no more lines; the stop signal it sent ends the command in order.
process.stderr.on("error", () => undefined);

const code = await run(process.argv.slice(2), processTerminal());
// Waits for what is still in the pipe; connections that are kept alive must not hold the process.
process.stdout.write("", () => process.exit(code));
