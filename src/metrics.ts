/**
 * Counts for an operator, in the text format of Prometheus (exposition format 0.0.4). They live in the isolate's memory,
 * which on the embedded relay is one for all: they start at zero with the process, as counters may.
 */
import type { NewAuditRow } from "./db/audit.ts";

/** Upper bounds of the buckets of a call's duration, s: from what a tunnel adds to what a person takes to answer. */
const DURATION_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300] as const;

type Labels = Readonly<Record<string, string>>;

/** One number for each set of labels. */
class Counter {
  readonly #name: string;
  readonly #help: string;
  readonly #values = new Map<string, number>();

  constructor(name: string, help: string) {
    this.#name = name;
    this.#help = help;
  }

  add(labels: Labels, by = 1): void {
    const key = labelText(labels);
    this.#values.set(key, (this.#values.get(key) ?? 0) + by);
  }

  lines(): string[] {
    const values = [...this.#values].map(([labels, value]) => `${this.#name}${labels} ${value}`);
    return [`# HELP ${this.#name} ${this.#help}`, `# TYPE ${this.#name} counter`, ...values];
  }
}

/** How often a value was at most each bound. */
class Histogram {
  readonly #name: string;
  readonly #help: string;
  readonly #bounds: readonly number[];
  readonly #counts: number[];
  #sum = 0;
  #count = 0;

  constructor(name: string, help: string, bounds: readonly number[]) {
    this.#name = name;
    this.#help = help;
    this.#bounds = bounds;
    this.#counts = bounds.map(() => 0);
  }

  observe(value: number): void {
    this.#sum += value;
    this.#count += 1;
    const at = this.#bounds.findIndex((bound) => value <= bound);
    if (at >= 0) this.#counts[at] = (this.#counts[at] ?? 0) + 1;
  }

  lines(): string[] {
    let below = 0;
    const buckets = this.#bounds.map((bound, at) => {
      below += this.#counts[at] ?? 0;
      return `${this.#name}_bucket{le="${bound}"} ${below}`;
    });
    const head = [`# HELP ${this.#name} ${this.#help}`, `# TYPE ${this.#name} histogram`];
    return [
      ...head,
      ...buckets,
      `${this.#name}_bucket{le="+Inf"} ${this.#count}`,
      `${this.#name}_sum ${this.#sum}`,
      `${this.#name}_count ${this.#count}`,
    ];
  }
}

const requests = new Counter("longline_http_requests_total", "HTTP requests answered, by status class.");
const calls = new Counter("longline_calls_total", "Calls that ended, by outcome as in the audit.");
const failures = new Counter("longline_call_failures_total", "Calls that failed for a reason of the relay or the agent.");
const refused = new Counter("longline_refused_total", "Attempts that were refused before they became a call.");
const bytes = new Counter("longline_call_bytes_total", "Bytes of params and results that passed.");
const durations = new Histogram("longline_call_duration_seconds", "Time from a call's arrival to its outcome.", DURATION_BUCKETS);

/** Counts an answered request. */
export function countRequest(status: number): void {
  requests.add({ class: `${Math.floor(status / 100)}xx` });
}

/** Counts what a device's object puts on record. */
export function countRow(row: NewAuditRow): void {
  if (row.kind === "refused") return refused.add({ reason: row.reason ?? "" });
  if (row.kind !== "call") return;
  calls.add({ outcome: row.outcome });
  if (row.outcome === "failed") failures.add({ reason: row.reason ?? "" });
  bytes.add({ direction: "in" }, row.bytesIn ?? 0);
  bytes.add({ direction: "out" }, row.bytesOut ?? 0);
  durations.observe((row.durationMs ?? 0) / 1000);
}

/** A number that is as it is now. */
export interface Gauge {
  name: string;
  help: string;
  value: number;
  labels?: Labels;
}

/** Everything counted, with these gauges, as text. */
export function metricsText(gauges: readonly Gauge[]): string {
  const now = gauges.flatMap(({ name, help, value, labels }) => [
    `# HELP ${name} ${help}`,
    `# TYPE ${name} gauge`,
    `${name}${labelText(labels ?? {})} ${value}`,
  ]);
  const counted = [requests, calls, failures, refused, bytes, durations].flatMap((metric) => metric.lines());
  return `${[...now, ...counted].join("\n")}\n`;
}

/** Values hold no quote, backslash or newline but those escaped here. */
function labelText(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${value.replace(/["\\]/g, "\\$&").replace(/\n/g, "\\n")}"`);
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}
