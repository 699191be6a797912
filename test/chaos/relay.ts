/**
 * An embedded relay whose Worker is `worker.ts` beside this file, as a process of its own: `longline serve` in all else.
 * Arguments: data directory, port, further origins.
 */
import { join } from "node:path";
import { startRelay } from "../../src/serve/relay.ts";

const [dataDir = "", port = "0", ...origins] = process.argv.slice(2);
const ended = Promise.withResolvers<void>();
const relay = await startRelay({
  dataDir,
  port: Number(port),
  origins,
  main: join(import.meta.dirname, "worker.ts"),
  log: (line) => process.stderr.write(`${line}\n`),
  onExit: () => ended.resolve(),
});
process.stdout.write(`${JSON.stringify({ url: relay.url, ownerToken: relay.ownerToken, consoleUrl: relay.consoleUrl })}\n`);
process.once("SIGTERM", () => ended.resolve());
await ended.promise;
await relay.stop();
process.exit(0);
