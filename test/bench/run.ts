/**
 * What the relay adds, measured side by side on one machine.
 *
 *   npm run bench [-- --quick] [--json] [--check] [--only WORKLOAD…] [--no-scale] [--rounds N] [--devices N]
 *
 * `--quick` takes fewer and shorter rounds and fewer devices. `--check` exits 1 when a figure misses twice its bar:
 * machines are noisy, so only gross regressions count. With `--json`, one JSON value on stdout, progress on stderr.
 */
import { readFile } from "node:fs/promises";
import { cpus, loadavg, release, totalmem } from "node:os";
import { parseArgs } from "node:util";
import { callOnce } from "./closed-loop.ts";
import { BARS, meets, ratiosOf } from "./ratios.ts";
import { runRounds, summarise } from "./rounds.ts";
import { runScale } from "./scale.ts";
import type { Spread } from "./statistics.ts";
import { startFloor } from "./subjects/floor.ts";
import { startLongline } from "./subjects/longline.ts";
import { startDirect, startSdk } from "./subjects/sdk.ts";
import type { Subject } from "./subjects/subject.ts";
import { BURST_DEVICES, WORKLOADS, type Workload } from "./workloads.ts";

const FULL = { rounds: 11, sliceMs: 1_000, devices: 1_000 };
const QUICK = { rounds: 5, sliceMs: 400, devices: 100 };
/** How much easier each bar is for `--check`. */
const CHECK_SLACK = 2;

const { values } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
    check: { type: "boolean", default: false },
    only: { type: "string", multiple: true },
    "no-scale": { type: "boolean", default: false },
    rounds: { type: "string" },
    devices: { type: "string" },
  },
});
const base = values.quick ? QUICK : FULL;
const plan = { ...base, rounds: Number(values.rounds ?? base.rounds), devices: Number(values.devices ?? base.devices) };
const log = (line: string): void => console.error(`bench: ${line}`);

async function startSubjects(started: Subject[]): Promise<void> {
  log(`starting, with ${BURST_DEVICES} devices`);
  const longline = await startLongline(BURST_DEVICES);
  started.push(longline);
  const request = longline.call().request;
  const answer = await callOnce(longline.call());
  const sizes = { request: request.length - (request.indexOf("\r\n\r\n") + 4), answer: answer.bytes };
  started.unshift(await startFloor(sizes, BURST_DEVICES));
  started.push(await startSdk(), await startDirect());
}

async function measure(workloads: readonly Workload[]) {
  const subjects: Subject[] = [];
  try {
    await startSubjects(subjects);
    return await runRounds(workloads, subjects, { ...plan, log });
  } finally {
    for (const subject of subjects) await subject.stop();
  }
}

async function versions(): Promise<Record<string, string>> {
  const of = async (name: string): Promise<string> => {
    const text = await readFile(new URL(`../../node_modules/${name}/package.json`, import.meta.url), "utf8").catch(() => "{}");
    return (JSON.parse(text) as { version?: string }).version ?? "unknown";
  };
  const own = JSON.parse(await readFile(new URL("../../package.json", import.meta.url), "utf8")) as { version: string };
  return {
    longline: own.version,
    node: process.versions.node,
    miniflare: await of("miniflare"),
    workerd: await of("workerd"),
    ws: await of("ws"),
    hono: await of("hono"),
  };
}

function print(ratios: Record<string, Spread>): void {
  for (const [name, { median, q1, q3, rounds }] of Object.entries(ratios)) {
    const known = BARS[name];
    const bar = known === undefined ? "" : `${known.good === "above" ? "≥" : "≤"} ${known.bar} ${meets(name, median) ? "met" : "missed"}`;
    console.log(`${name.padEnd(28)} ${String(median).padStart(8)}  (${q1} – ${q3}, ${rounds} rounds)  ${bar}`);
  }
}

const loadBefore = loadavg();
const workloads = WORKLOADS.filter(({ name }) => values.only?.includes(name) ?? true);
const samples = await measure(workloads);
const scale = values["no-scale"] ? { results: {}, ratios: {} } : await runScale({ ...plan, log });
const ratios: Record<string, Spread> = { ...ratiosOf(samples), ...scale.ratios };
for (const [name, { rounds }] of Object.entries(ratios)) if (rounds === 0) delete ratios[name];
const machine = {
  cpu: cpus()[0]?.model ?? "unknown",
  cores: cpus().length,
  memoryBytes: totalmem(),
  system: `${process.platform} ${release()}`,
  loadAverageBefore: loadBefore,
  loadAverageAfter: loadavg(),
};
const report = { machine, versions: await versions(), plan, results: { ...summarise(samples), scale: scale.results }, ratios };
if (values.json) console.log(JSON.stringify(report));
else {
  console.log(`load average ${loadBefore.map((load) => load.toFixed(1)).join(" ")} before, ${loadavg()[0]?.toFixed(1)} after`);
  print(ratios);
}
if (values.check) {
  const missed = Object.entries(ratios).filter(([name, { median }]) => !meets(name, median, CHECK_SLACK));
  for (const [name, { median }] of missed) log(`${name} is ${median}, which misses even half of its bar`);
  process.exitCode = missed.length === 0 ? 0 : 1;
}
