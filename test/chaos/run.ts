/**
 * `npm run chaos [-- --seed N] [--seconds N] [--quick]`: calls by clients of both eras while links are cut, frozen and
 * throttled, agents are killed, objects are reset and the relay restarts. Prints the seed first and the figures last;
 * exit code 1 when a promise was broken.
 */
import { parseArgs } from "node:util";
import { runChaos } from "./chaos.ts";

const { values } = parseArgs({
  options: { seed: { type: "string" }, seconds: { type: "string" }, quick: { type: "boolean" }, verbose: { type: "boolean" } },
});
const seed = values.seed === undefined ? Date.now() % 1_000_000 : Number(values.seed);
const seconds = values.seconds === undefined ? (values.quick === true ? 30 : 600) : Number(values.seconds);
if (!Number.isSafeInteger(seed) || !(seconds > 0)) {
  process.stderr.write("--seed takes a whole number, --seconds a number above 0.\n");
  process.exit(2);
}
process.stdout.write(`seed ${seed}, ${seconds} s\n`);
const startedAt = Date.now();
const log = (line: string): void => {
  process.stderr.write(`${((Date.now() - startedAt) / 1000).toFixed(1).padStart(6)} ${line}\n`);
};
const report = await runChaos({ seed, ms: seconds * 1000, withRelayRestarts: true, log: values.verbose === true ? log : () => undefined });
process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
process.exit(report.violations.length === 0 ? 0 : 1);
