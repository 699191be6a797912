/**
 * `npm run soak [-- --seconds N]`: mixed load without an end, half an hour by default, with a cut link once a minute.
 * Prints the resident memory of workerd and of each agent over time; exit code 1 when it keeps growing, or when a promise
 * was broken.
 */
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { runCaller } from "./callers.ts";
import { Ledger } from "./ledger.ts";
import { seeded } from "./random.ts";
import { World } from "./world.ts";

const SAMPLE_MS = 10_000;
const CUT_MS = 60_000;
/** Growth from the second to the last quarter of the run that counts as a leak: a part, and MiB on top. */
const GROWTH = 1.25;
const GROWTH_MIB = 24;

const { values } = parseArgs({ options: { seconds: { type: "string" }, seed: { type: "string" } } });
const ms = Number(values.seconds ?? 1_800) * 1000;
const print = (line: string): void => void process.stdout.write(`${line}\n`);

/** MiB of resident memory. */
function residentMiB(pid: number): number {
  const kib = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return Math.round(Number(kib ?? 0) / 1024);
}

function workerdOf(pid: number): number {
  const children = readdirSync(`/proc/${pid}/task`).flatMap((task) =>
    readFileSync(`/proc/${pid}/task/${task}/children`, "utf8")
      .split(" ")
      .filter((child) => child !== ""),
  );
  const found = children.find((child) => readFileSync(`/proc/${child}/cmdline`, "utf8").includes("workerd"));
  if (found === undefined) throw new Error("the relay has no runtime");
  return Number(found);
}

function median(numbers: readonly number[]): number {
  const sorted = [...numbers].toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}

/** What grew, by name. */
function grown(series: ReadonlyMap<string, number[]>): string[] {
  const lines: string[] = [];
  for (const [name, samples] of series) {
    const quarter = Math.floor(samples.length / 4);
    const [early, late] = [median(samples.slice(quarter, 2 * quarter)), median(samples.slice(-quarter))];
    print(`${name}: ${early} MiB in the second quarter, ${late} MiB in the last, ${Math.max(...samples)} MiB at most`);
    if (late > early * GROWTH + GROWTH_MIB) lines.push(`${name} grew from ${early} to ${late} MiB`);
  }
  return lines;
}

const world = await World.start(print);
const random = seeded(Number(values.seed ?? 1));
const ledger = new Ledger();
const until = AbortSignal.timeout(ms);
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
  ...world.devices.map((d) => [`agent ${d.name}`, d.agent()?.pid ?? 0] as const),
]);
const series = new Map([...pids.keys()].map((name) => [name, [] as number[]]));
let cutAt = Date.now() + CUT_MS;
const startedAt = Date.now();
while (!until.aborted) {
  await sleep(SAMPLE_MS);
  for (const [name, pid] of pids) series.get(name)?.push(residentMiB(pid));
  const seconds = Math.round((Date.now() - startedAt) / 1000);
  print(`${seconds} s, ${ledger.size} calls: ${[...series].map(([name, samples]) => `${name} ${samples.at(-1)} MiB`).join(", ")}`);
  if (Date.now() < cutAt) continue;
  for (const device of world.devices) device.proxy.cut();
  cutAt = Date.now() + CUT_MS;
}
await Promise.all(callers);
await world.quiet(SAMPLE_MS * 6);
const report = ledger.check(world.counts);
const leaks = grown(series);
await world.stop();
print(JSON.stringify({ ...report, leaks }, null, 2));
process.exit(report.violations.length + leaks.length === 0 ? 0 : 1);
