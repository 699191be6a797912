/** Quantiles and what the benchmark says of a ratio. Pure. */

/** The quantile `q` (0 to 1) of sorted numbers, interpolated; NaN without any. */
export function quantile(sorted: readonly number[], q: number): number {
  if (sorted.length === 0) return Number.NaN;
  const at = (sorted.length - 1) * q;
  const low = sorted[Math.floor(at)] ?? Number.NaN;
  const high = sorted[Math.ceil(at)] ?? Number.NaN;
  return low + (high - low) * (at - Math.floor(at));
}

/** A figure with its spread over the rounds. */
export interface Spread {
  median: number;
  q1: number;
  q3: number;
  rounds: number;
}

/** Median and quartiles. */
export function spread(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b);
  return {
    median: round(quantile(sorted, 0.5)),
    q1: round(quantile(sorted, 0.25)),
    q3: round(quantile(sorted, 0.75)),
    rounds: sorted.length,
  };
}

/** Four significant digits: more would be noise. */
export function round(value: number): number {
  return Number.isFinite(value) ? Number(value.toPrecision(4)) : value;
}
