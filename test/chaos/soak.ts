/**
 * `npm run soak [-- --minutes N] [--warm-up N] [--seed N]`: mixed load, half an hour by default, with a cut link once a
 * minute. Prints each minute the resident memory of workerd and of each agent, and at the end how it went on after the
 * warm-up; exit code 1 when it keeps growing, or when a promise was broken.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { runCaller } from "./callers.ts";
import { Ledger } from "./ledger.ts";
import { judge, median, residentMiB, workerdOf } from "./memory.ts";
import { seeded } from "./random.ts";
import { World } from "./world.ts";

const MINUTE_MS = 60_000;
const SAMPLES_A_MINUTE = 6;
/** ms in which everything has come to rest after the last call. */
const QUIET_MS = 60_000;
/** ms beyond the minutes asked for after which the run is given up: the longest that a call may take, and the end. */
const LATE_MS = 300_000;

const { values } = parseArgs({ options: { minutes: { type: "string" }, "warm-up": { type: "string" }, seed: { type: "string" } } });
const minutes = Number(values.minutes ?? 30);
const warmUp = Number(values["warm-up"] ?? Math.min(5, Math.floor(minutes / 3)));
if (!Number.isInteger(minutes) || minutes < 1 || !Number.isInteger(warmUp) || warmUp < 0 || warmUp >= minutes) {
  process.stderr.write("--minutes takes a whole number from 1, --warm-up one below it.\n");
  process.exit(2);
}
const print = (line: string): void => void process.stdout.write(`${line}\n`);

const world = await World.start(print);
const late = setTimeout(
  () => {
    print("given up: calls did not come to an end");
    void world.stop().finally(() => process.exit(1));
  },
  minutes * MINUTE_MS + LATE_MS,
);
const random = seeded(Number(values.seed ?? 1));
const ledger = new Ledger();
const until = AbortSignal.timeout(minutes * MINUTE_MS);
const callers = world.devices.flatMap((device) =>
  (["modern", "legacy"] as const).flatMap((era) =>
    device.tokens.map((token, at) =>
      runCaller({
        name: `${device.name}-${era}-${at}`,
        era,
        mcpUrl: device.mcpUrl,
        token,
        random: random.fork(),
        ledger,
        until,
        up: () => world.up(),
      }),
    ),
  ),
);
const pids = new Map([
  ["workerd", workerdOf(world.relay?.pid ?? 0)],
  ["relay", world.relay?.pid ?? 0],
  ...world.devices.map((d) => [`agent ${d.name}`, d.agent()?.pid ?? 0] as const),
]);
const series = new Map([...pids.keys()].map((name) => [name, [] as number[]]));

for (let minute = 1; minute <= minutes; minute += 1) {
  const samples = new Map([...pids.keys()].map((name) => [name, [] as number[]]));
  for (let count = 0; count < SAMPLES_A_MINUTE; count += 1) {
    await sleep(MINUTE_MS / SAMPLES_A_MINUTE);
    for (const [name, pid] of pids) samples.get(name)?.push(residentMiB(pid));
  }
  for (const [name, taken] of samples) series.get(name)?.push(median(taken));
  print(`minute ${minute}, ${ledger.size} calls: ${[...series].map(([name, all]) => `${name} ${all.at(-1)} MiB`).join(", ")}`);
  for (const device of world.devices) device.proxy.cut();
}
await Promise.all(callers);
await world.quiet(QUIET_MS);
const report = ledger.check(world.counts);
const memory = Object.fromEntries([...series].map(([name, all]) => [name, judge(all.slice(warmUp))]));
clearTimeout(late);
await world.stop();
print(JSON.stringify({ ...report, warmUpMinutes: warmUp, memory }, null, 2));
const isGrowing = Object.values(memory).some(({ verdict }) => verdict === "growing");
process.exit(report.violations.length > 0 || isGrowing ? 1 : 0);
