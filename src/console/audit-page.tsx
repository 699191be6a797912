/** The audit: plots of calls, filters, rows with a page after them, and the same rows as CSV. */
import type { Context } from "hono";
import { AuditOutcome, type AuditRow } from "../db/audit.ts";
import type { TokenHolder } from "../db/owner-tokens.ts";
import type { AppEnv } from "../env.ts";
import { cleanText } from "../policy/clean-text.ts";
import { page } from "./page.tsx";
import { Heading, Table } from "./parts.tsx";
import { Plots, type Slot } from "./plots.tsx";

/** The times that the filter offers, in ms; the first is preset. */
export const SPANS = [
  { value: "7d", text: "Last 7 days", ms: 7 * 86_400_000 },
  { value: "24h", text: "Last 24 hours", ms: 86_400_000 },
  { value: "30d", text: "Last 30 days", ms: 30 * 86_400_000 },
  { value: "all", text: "All that is kept", ms: undefined },
] as const;

/** What was asked for, as the form has it; empty means any. */
export interface AuditAsked {
  device: string;
  outcome: string;
  grant: string;
  span: string;
  per: "hour" | "day";
}

/** What the page shows. */
export interface AuditView {
  person: TokenHolder;
  asked: AuditAsked;
  devices: readonly string[];
  rows: readonly AuditRow[];
  slots: readonly Slot[];
  /** Where the next older rows begin; undefined at the end. */
  older: number | undefined;
}

function queryOf(asked: AuditAsked, more: Record<string, string> = {}): string {
  const set = Object.entries({ ...asked, ...more }).filter(([, value]) => value !== "");
  return new URLSearchParams(set).toString();
}

const TONES: Partial<Record<AuditOutcome, string>> = {
  ok: "ok",
  error: "bad",
  failed: "bad",
  unknown: "warn",
  refused: "warn",
  incomplete: "warn",
};

function who({ kind, label, grant, memberName, member }: AuditRow): string {
  const person = memberName ?? member;
  if (kind === "admin") return person ?? "–";
  return label ?? grant ?? person ?? "–";
}

function Row({ row }: { row: AuditRow }) {
  return (
    <tr>
      <td>{new Date(row.at).toISOString().slice(0, 19).replace("T", " ")}</td>
      <td>{cleanText(row.device ?? "–")}</td>
      <td class="wrap">
        {cleanText(who(row))}
        {row.client === null ? null : <div class="note">{cleanText(row.client)}</div>}
      </td>
      <td class="wrap">
        <code>{cleanText(row.target ?? row.method ?? "–")}</code>
        {row.target === null || row.method === null ? null : <div class="note">{cleanText(row.method)}</div>}
      </td>
      <td>
        <span class={`badge ${TONES[row.outcome] ?? ""}`}>{row.outcome}</span>
        {row.reason === null ? null : <div class="note">{cleanText(row.reason)}</div>}
      </td>
      <td class="num">{row.durationMs ?? "–"}</td>
    </tr>
  );
}

function Filters({ asked, devices }: { asked: AuditAsked; devices: readonly string[] }) {
  const option = (value: string, text: string, chosen: string) => (
    <option value={value} selected={value === chosen}>
      {text}
    </option>
  );
  return (
    <form method="get" action="/console/audit" class="card filters" aria-label="Filters">
      <div>
        <label for="device">Device</label>
        <select id="device" name="device">
          {option("", "Any", asked.device)}
          {devices.map((name) => option(name, name, asked.device))}
        </select>
      </div>
      <div>
        <label for="outcome">Outcome</label>
        <select id="outcome" name="outcome">
          {option("", "Any", asked.outcome)}
          {AuditOutcome.options.map((name) => option(name, name, asked.outcome))}
        </select>
      </div>
      <div>
        <label for="span">Time</label>
        <select id="span" name="span">
          {SPANS.map(({ value, text }) => option(value, text, asked.span))}
        </select>
      </div>
      <div>
        <label for="per">Plots</label>
        <select id="per" name="per">
          {option("hour", "per hour", asked.per)}
          {option("day", "per day", asked.per)}
        </select>
      </div>
      {asked.grant === "" ? null : (
        <label class="box">
          <input type="checkbox" name="grant" value={asked.grant} checked />
          <span>One grant only</span>
        </label>
      )}
      <div class="actions">
        <button type="submit">Show</button>
        <a class="button quiet" href={`/console/audit.csv?${queryOf(asked)}`}>
          CSV
        </a>
      </div>
    </form>
  );
}

/** Shows the audit. */
export function auditPage(c: Context<AppEnv>, { person, asked, devices, rows, slots, older }: AuditView): Promise<Response> {
  return page(c, {
    title: "Activity",
    console: { person, here: "audit" },
    heading: <Heading title="Activity" />,
    body: (
      <>
        <Filters asked={asked} devices={devices} />
        <Plots slots={slots} />
        <section class="card" aria-labelledby="rows">
          <header>
            <h2 id="rows">{person.role === "owner" ? "Calls and changes" : "Your calls"}</h2>
            <span class="note">times are UTC; arguments and results are never kept</span>
          </header>
          {rows.length === 0 ? (
            <p class="note">Nothing fits.</p>
          ) : (
            <Table label="Audit rows" head={["When", "Device", "Who", "What", "Outcome", { text: "ms", num: true }]}>
              {rows.map((row) => (
                <Row row={row} />
              ))}
            </Table>
          )}
          {older === undefined ? null : (
            <p>
              <a class="button quiet small" href={`/console/audit?${queryOf(asked, { before: String(older) })}`}>
                Older
              </a>
            </p>
          )}
        </section>
      </>
    ),
  });
}
