/** Interleaved rounds: each round runs every workload on every subject, so that what disturbs one disturbs all. */
import { warmUp } from "./closed-loop.ts";
import { spread, type Spread } from "./statistics.ts";
import type { Subject } from "./subjects/subject.ts";
import type { Metrics, Workload } from "./workloads.ts";

/** What was measured, by workload and subject, one entry per round. */
export type Samples = ReadonlyMap<string, ReadonlyMap<string, readonly Metrics[]>>;

export interface RoundOptions {
  rounds: number;
  sliceMs: number;
  log: (line: string) => void;
}

/** Warms each subject up, then measures. Every second round goes through the subjects backwards. */
export async function runRounds(workloads: readonly Workload[], subjects: readonly Subject[], options: RoundOptions): Promise<Samples> {
  for (const subject of subjects) await warmUp(subject.call(), options.sliceMs * 2);
  const samples = new Map(workloads.map(({ name }) => [name, new Map<string, Metrics[]>()]));
  for (let round = 0; round < options.rounds; round += 1) {
    options.log(`round ${round + 1} of ${options.rounds}`);
    const order = round % 2 === 0 ? subjects : subjects.toReversed();
    for (const workload of workloads) {
      const bySubject = samples.get(workload.name);
      for (const subject of order) {
        if (!workload.subjects.includes(subject.name)) continue;
        const metrics = await workload.run(subject, options.sliceMs);
        bySubject?.set(subject.name, [...(bySubject.get(subject.name) ?? []), metrics]);
      }
    }
  }
  return samples;
}

/** Each metric's median and quartiles. */
export function summarise(samples: Samples): Record<string, Record<string, Record<string, Spread>>> {
  const summary: Record<string, Record<string, Record<string, Spread>>> = {};
  for (const [workload, bySubject] of samples) {
    const ofWorkload: Record<string, Record<string, Spread>> = {};
    for (const [subject, rounds] of bySubject) {
      const names = Object.keys(rounds[0] ?? {});
      ofWorkload[subject] = Object.fromEntries(names.map((name) => [name, spread(rounds.map((metrics) => metrics[name] ?? Number.NaN))]));
    }
    summary[workload] = ofWorkload;
  }
  return summary;
}
