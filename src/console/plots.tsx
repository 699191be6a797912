/** Plots of calls and latency, drawn here as SVG: they need no scripts. The table beside them says the same in figures. */
import { scaleBand, scaleLinear } from "d3-scale";
import { line } from "d3-shape";
import type { CallStats } from "../db/audit-stats.ts";
import { Table } from "./parts.tsx";

const WIDTH = 640;
const HEIGHT = 190;
const LEFT = 44;
const BOTTOM = 24;
const TOP = 8;
const TICKS = 4;
/** Labels along the time axis, at most. */
const LABELS = 6;

/** One hour or day of the plotted span; one without calls has no latency. */
export interface Slot {
  label: string;
  calls: number;
  errors: number;
  p50: number | null;
  p95: number | null;
}

/** Every hour or day of a span, those without calls included; `last` is the newest bucket. */
export function slotsOf(stats: readonly CallStats[], { last, count, bucketMs }: { last: number; count: number; bucketMs: number }): Slot[] {
  const known = new Map(stats.map((row) => [row.bucket, row]));
  return Array.from({ length: count }, (_, index) => {
    const bucket = last - count + 1 + index;
    const { calls = 0, errors = 0, p50 = null, p95 = null } = known.get(bucket) ?? {};
    const iso = new Date(bucket * bucketMs).toISOString();
    const label = bucketMs < 86_400_000 ? `${iso.slice(5, 10)} ${iso.slice(11, 16)}` : iso.slice(0, 10);
    return { label, calls, errors, p50, p95 };
  });
}

const bandOf = (slots: readonly Slot[]) =>
  scaleBand<number>()
    .domain(slots.map((_, index) => index))
    .range([LEFT, WIDTH])
    .padding(0.2);

const valueScale = (most: number) =>
  scaleLinear()
    .domain([0, Math.max(1, most)])
    .nice(TICKS)
    .range([HEIGHT - BOTTOM, TOP]);

function Axes({ slots, y, unit }: { slots: readonly Slot[]; y: ReturnType<typeof valueScale>; unit: string }) {
  const x = bandOf(slots);
  const step = Math.ceil(slots.length / LABELS);
  return (
    <>
      {y
        .ticks(TICKS)
        .filter((tick) => Number.isInteger(tick))
        .map((tick) => (
          <>
            <line class="grid-line" x1={LEFT} x2={WIDTH} y1={y(tick)} y2={y(tick)} />
            <text x={LEFT - 6} y={y(tick) + 4} text-anchor="end">
              {`${tick}${unit}`}
            </text>
          </>
        ))}
      {slots.map((slot, index) =>
        index % step === 0 ? (
          <text x={x(index) ?? 0} y={HEIGHT - 6}>
            {slot.label.slice(-11)}
          </text>
        ) : null,
      )}
    </>
  );
}

function CallsPlot({ slots }: { slots: readonly Slot[] }) {
  const x = bandOf(slots);
  const y = valueScale(Math.max(...slots.map(({ calls }) => calls)));
  const base = HEIGHT - BOTTOM;
  const calls = slots.reduce((sum, slot) => sum + slot.calls, 0);
  const errors = slots.reduce((sum, slot) => sum + slot.errors, 0);
  return (
    <figure class="card">
      <figcaption>
        <h2>Calls</h2>
        <p class="legend">
          <span>
            <i class="calls" />
            succeeded or cancelled
          </span>
          <span>
            <i class="errors" />
            failed
          </span>
        </p>
      </figcaption>
      <div class="scroll" tabindex={0} role="region" aria-label="Plot of calls">
        <svg class="plot" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={`${calls} calls, ${errors} of them failed`}>
          <Axes slots={slots} y={y} unit="" />
          {slots.map((slot, index) =>
            slot.calls === 0 ? null : (
              <g>
                <title>{`${slot.label}: ${slot.calls} calls, ${slot.errors} failed`}</title>
                <rect class="calls" x={x(index)} width={x.bandwidth()} y={y(slot.calls)} height={y(slot.errors) - y(slot.calls)} rx="1.5" />
                <rect class="errors" x={x(index)} width={x.bandwidth()} y={y(slot.errors)} height={base - y(slot.errors)} rx="1.5" />
              </g>
            ),
          )}
        </svg>
      </div>
    </figure>
  );
}

function LatencyPlot({ slots }: { slots: readonly Slot[] }) {
  const x = bandOf(slots);
  const y = valueScale(Math.max(...slots.map(({ p95 }) => p95 ?? 0)));
  const centre = (index: number): number => (x(index) ?? 0) + x.bandwidth() / 2;
  const curves = (["p50", "p95"] as const).map((name) => {
    const path = line<Slot>()
      .defined((slot) => slot[name] !== null)
      .x((_, index) => centre(index))
      .y((slot) => y(slot[name] ?? 0));
    return { name, d: path([...slots]) ?? "" };
  });
  const worst = Math.max(...slots.map(({ p95 }) => p95 ?? 0));
  return (
    <figure class="card">
      <figcaption>
        <h2>Latency</h2>
        <p class="legend">
          <span>
            <i class="p50" />
            half of the calls took at most (p50)
          </span>
          <span>
            <i class="p95" />
            95 % (p95)
          </span>
        </p>
      </figcaption>
      <div class="scroll" tabindex={0} role="region" aria-label="Plot of latency">
        <svg class="plot" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={`Latency; the highest p95 is ${worst} ms`}>
          <Axes slots={slots} y={y} unit=" ms" />
          {curves.map(({ name, d }) => (
            <path class={name} d={d} />
          ))}
          {slots.map((slot, index) =>
            (["p50", "p95"] as const).map((name) =>
              slot[name] === null ? null : (
                <circle class={name} cx={centre(index)} cy={y(slot[name])} r="2.5">
                  <title>{`${slot.label}: ${name} ${slot[name]} ms`}</title>
                </circle>
              ),
            ),
          )}
        </svg>
      </div>
    </figure>
  );
}

const HEAD = ["When (UTC)", ...["Calls", "Failed", "p50, ms", "p95, ms"].map((text) => ({ text, num: true as const }))];

/** Both plots and their table. */
export function Plots({ slots }: { slots: readonly Slot[] }) {
  const busy = slots.filter(({ calls }) => calls > 0).toReversed();
  if (busy.length === 0) return <p class="card note">No calls in this time.</p>;
  return (
    <>
      <div class="pair">
        <CallsPlot slots={slots} />
        <LatencyPlot slots={slots} />
      </div>
      <details class="card">
        <summary>The same as a table</summary>
        <Table label="Calls and latency" head={HEAD}>
          {busy.map(({ label, calls, errors, p50, p95 }) => (
            <tr>
              <td>{label}</td>
              {[calls, errors, p50, p95].map((value) => (
                <td class="num">{value ?? "–"}</td>
              ))}
            </tr>
          ))}
        </Table>
      </details>
    </>
  );
}
