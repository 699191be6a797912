/** What is measured in rounds, and for which subjects. */
import { Connection, type Target } from "./http-connection.ts";
import { callOnce, closedLoop, mustSucceed, type LoopOptions } from "./closed-loop.ts";
import { quantile } from "./statistics.ts";
import type { Subject } from "./subjects/subject.ts";
import { monotonicMs } from "./agents/shared.ts";

/** What one slice of a workload measured. */
export type Metrics = Readonly<Record<string, number>>;

export interface Workload {
  name: string;
  subjects: readonly string[];
  run(subject: Subject, sliceMs: number): Promise<Metrics>;
}

const EVENTS = 100;
const BURST_CALLS = 200;
/** Devices that the burst goes to. */
export const BURST_DEVICES = 50;

function calls(connections: number, subjects: readonly string[]): Workload {
  return {
    name: `call1KbC${connections}`,
    subjects,
    run: async (subject, durationMs) => await measured(subject, subject.call(), { connections, durationMs }),
  };
}

/** A closed loop, with the CPU time that each process of the subject spent on a call. */
async function measured(subject: Subject, target: Target, options: LoopOptions): Promise<Metrics> {
  const before = await subject.cpu();
  const result = await closedLoop(target, options);
  const after = await subject.cpu();
  const cpu = Object.fromEntries(
    Object.entries(after).map(([name, ms]) => [`${name}CpuMsPerCall`, (ms - (before[name] ?? 0)) / result.calls]),
  );
  return { perSecond: result.perSecond, bytesPerSecond: result.bytesPerSecond, p50: result.p50, p99: result.p99, ...cpu };
}

function images(name: string, size: number): Workload {
  return {
    name,
    subjects: ["floor", "longline"],
    run: async (subject, durationMs) => await measured(subject, must(subject.image)(size), { connections: 1, durationMs }),
  };
}

async function legacy(subject: Subject, durationMs: number): Promise<Metrics> {
  return await measured(subject, must(subject.legacyCall), { connections: 16, durationMs });
}

/** Time from the tool's report to the client's having it, each event on its own. */
async function eventLatency(subject: Subject): Promise<Metrics> {
  const times: number[] = [];
  await callOnce(must(subject.events)(EVENTS), (bytes) => {
    const now = monotonicMs();
    for (const [, at] of bytes.toString("latin1").matchAll(/"message":"([\d.]+)"/g)) times.push(now - Number(at));
  });
  if (times.length !== EVENTS) throw new Error(`${times.length} of ${EVENTS} events came`);
  times.sort((a, b) => a - b);
  return { p50: quantile(times, 0.5), p99: quantile(times, 0.99) };
}

/** All calls at once, over many devices. */
async function burst(subject: Subject): Promise<Metrics> {
  const targets = Array.from({ length: BURST_CALLS }, (_, index) => subject.call(index % BURST_DEVICES));
  const connections = await Promise.all(targets.map((target) => Connection.open(target.port)));
  try {
    const startedAt = performance.now();
    const times = await Promise.all(
      targets.map(async (target, index) => {
        mustSucceed(await must(connections[index]).exchange(target.request));
        return performance.now() - startedAt;
      }),
    );
    times.sort((a, b) => a - b);
    return { p50: quantile(times, 0.5), p99: quantile(times, 0.99), totalMs: times.at(-1) ?? Number.NaN };
  } finally {
    for (const connection of connections) connection.close();
  }
}

function must<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("this subject has no such request");
  return value;
}

/** The workloads, in the order of a round. */
export const WORKLOADS: readonly Workload[] = [
  calls(1, ["floor", "longline", "direct"]),
  calls(16, ["floor", "longline", "sdk", "direct"]),
  calls(64, ["floor", "longline"]),
  { name: "legacyC16", subjects: ["longline"], run: legacy },
  { name: "events100", subjects: ["floor", "longline"], run: eventLatency },
  images("image64K", 64 << 10),
  images("image1M", 1 << 20),
  images("image8M", 8 << 20),
  { name: "burst200", subjects: ["floor", "longline"], run: burst },
];
