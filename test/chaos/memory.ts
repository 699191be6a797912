/** Resident memory of processes over time, and whether it keeps growing. */
import { readdirSync, readFileSync } from "node:fs";

/** MiB of resident memory of a process. */
export function residentMiB(pid: number): number {
  const kib = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return Math.round(Number(kib ?? 0) / 1024);
}

/** The runtime that a relay's process started. */
export function workerdOf(pid: number): number {
  const children = readdirSync(`/proc/${pid}/task`).flatMap((task) =>
    readFileSync(`/proc/${pid}/task/${task}/children`, "utf8")
      .split(" ")
      .filter((child) => child !== ""),
  );
  const found = children.find((child) => readFileSync(`/proc/${child}/cmdline`, "utf8").includes("workerd"));
  if (found === undefined) throw new Error("the relay has no runtime");
  return Number(found);
}

/** The middle of some numbers; 0 of none. */
export function median(numbers: readonly number[]): number {
  const sorted = [...numbers].toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}

/** How a series of one value a minute goes on: the median of the slopes between all pairs, which single peaks do not move. */
export function slopeOf(minutes: readonly number[]): number {
  return median(minutes.flatMap((late, at) => minutes.slice(0, at).map((early, before) => (late - early) / (at - before))));
}

/** Minutes below which a series says nothing of a leak: the runtime collects its garbage late. */
const TELLING_MINUTES = 10;
/** Growth over the series that counts as a leak: a part of its median, and MiB on top. */
const GROWTH = 0.1;
const GROWTH_MIB = 16;

export interface Verdict {
  verdict: "flat" | "growing" | "too short to tell";
  /** MiB a minute. */
  slope: number;
  medianMiB: number;
  mostMiB: number;
}

/** Judges one value a minute, from after the warm-up. */
export function judge(minutes: readonly number[]): Verdict {
  const [slope, medianMiB] = [slopeOf(minutes), median(minutes)];
  const isGrowing = slope * minutes.length > medianMiB * GROWTH + GROWTH_MIB;
  const verdict = minutes.length < TELLING_MINUTES ? "too short to tell" : isGrowing ? "growing" : "flat";
  return { verdict, slope: Math.round(slope * 100) / 100, medianMiB, mostMiB: Math.max(0, ...minutes) };
}
