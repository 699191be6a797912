/** The published ratios: each the median over the rounds of the ratio within a round. Pure. */
import type { Samples } from "./rounds.ts";
import { spread, type Spread } from "./statistics.ts";
import type { Metrics } from "./workloads.ts";

/** A ratio's bar, and on which side of it is good. */
export interface Bar {
  bar: number;
  good: "above" | "below";
}

/** What has to be reached. `throughputVsSdkC16` is reported only. */
export const BARS: Readonly<Record<string, Bar>> = {
  throughputVsFloorC16: { bar: 0.8, good: "above" },
  throughputVsFloorC64: { bar: 0.8, good: "above" },
  p50OverFloorC1: { bar: 1.25, good: "below" },
  legacyVsModern: { bar: 0.9, good: "above" },
  eventLatencyOverFloor: { bar: 1.3, good: "below" },
  bytesPerSecondVsFloor1M: { bar: 0.7, good: "above" },
  bytesPerSecondVsFloor8M: { bar: 0.7, good: "above" },
  p99OverP50C16VsFloor: { bar: 1.2, good: "below" },
  costGrowth: { bar: 1.2, good: "below" },
  idleBytesPerDeviceVsFloor: { bar: 1.5, good: "below" },
  reconnect1000Seconds: { bar: 45, good: "below" },
};

type Pick = readonly [workload: string, subject: string, of: (metrics: Metrics) => number];

const metric = (name: string) => (metrics: Metrics) => metrics[name] ?? Number.NaN;
const perSecond = metric("perSecond");
const bytes = metric("bytesPerSecond");
const p50 = metric("p50");
const tail = (metrics: Metrics) => (metrics["p99"] ?? Number.NaN) / (metrics["p50"] ?? Number.NaN);

const RATIOS: Readonly<Record<string, readonly [above: Pick, below: Pick]>> = {
  throughputVsFloorC16: [
    ["call1KbC16", "longline", perSecond],
    ["call1KbC16", "floor", perSecond],
  ],
  throughputVsFloorC64: [
    ["call1KbC64", "longline", perSecond],
    ["call1KbC64", "floor", perSecond],
  ],
  p50OverFloorC1: [
    ["call1KbC1", "longline", p50],
    ["call1KbC1", "floor", p50],
  ],
  legacyVsModern: [
    ["legacyC16", "longline", perSecond],
    ["call1KbC16", "longline", perSecond],
  ],
  throughputVsSdkC16: [
    ["call1KbC16", "longline", perSecond],
    ["call1KbC16", "sdk", perSecond],
  ],
  eventLatencyOverFloor: [
    ["events100", "longline", p50],
    ["events100", "floor", p50],
  ],
  bytesPerSecondVsFloor1M: [
    ["image1M", "longline", bytes],
    ["image1M", "floor", bytes],
  ],
  bytesPerSecondVsFloor8M: [
    ["image8M", "longline", bytes],
    ["image8M", "floor", bytes],
  ],
  p99OverP50C16VsFloor: [
    ["call1KbC16", "longline", tail],
    ["call1KbC16", "floor", tail],
  ],
};

/** The ratios that come from rounds. */
export function ratiosOf(samples: Samples): Record<string, Spread> {
  const values = ([workload, subject, of]: Pick): number[] => (samples.get(workload)?.get(subject) ?? []).map(of);
  return Object.fromEntries(
    Object.entries(RATIOS).map(([name, [above, below]]) => {
      const divisors = values(below);
      return [name, spread(values(above).map((value, round) => value / (divisors[round] ?? Number.NaN)))];
    }),
  );
}

/** Whether a figure meets a bar that is made `slack` times easier; always true for one without a bar. */
export function meets(name: string, median: number, slack = 1): boolean {
  const known = BARS[name];
  if (known === undefined) return true;
  return known.good === "above" ? median >= known.bar / slack : median <= known.bar * slack;
}
