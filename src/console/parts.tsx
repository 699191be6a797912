/** Small parts that several pages are made of. */
import type { Child } from "hono/jsx";
import type { DeviceState } from "../auth/device-status.ts";

/** What went wrong with what was just sent. */
export function Problem({ text }: { text: string | undefined }) {
  return text === undefined ? null : (
    <p class="problem" role="alert">
      {text}
    </p>
  );
}

/** What was just done. */
export function Done({ text }: { text: string | undefined }) {
  return text === undefined ? null : (
    <p class="done" role="status">
      {text}
    </p>
  );
}

const SPANS: readonly [string, number][] = [
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
  ["second", 1000],
];

/** How long ago (or until) `at` is at `now`, in words; both epoch ms. */
function spanText(at: number, now: number): string {
  const distance = Math.abs(now - at);
  if (distance < 2000) return "just now";
  const [unit, ms] = SPANS.find(([, size]) => distance >= size) ?? (["second", 1000] as const);
  const count = Math.floor(distance / ms);
  const words = `${count} ${unit}${count === 1 ? "" : "s"}`;
  return at <= now ? `${words} ago` : `in ${words}`;
}

/** A point in time (epoch ms) as its distance from now; a script keeps it current. */
export function Age({ at, none = "never" }: { at: number | null; none?: string }) {
  if (at === null) return <span class="muted">{none}</span>;
  const iso = new Date(at).toISOString();
  return (
    <time datetime={iso} title={`${iso.slice(0, 19).replace("T", " ")} UTC`} data-age>
      {spanText(at, Date.now())}
    </time>
  );
}

/** A day (epoch ms), in UTC. */
export function dayText(at: number): string {
  return new Date(at).toISOString().slice(0, 10);
}

/** Text to be copied as it is; the button needs scripts. */
export function Copyable({ text, label }: { text: string; label: string }) {
  return (
    <div class="copyable">
      <pre tabindex={0} role="region" aria-label={label}>
        {text}
      </pre>
      <button type="button" class="copy quiet small" aria-label={`Copy ${label}`} hidden>
        Copy
      </button>
    </div>
  );
}

const STATES: Readonly<Record<DeviceState, { text: string; tone: string }>> = {
  online: { text: "Online", tone: "ok" },
  offline: { text: "Offline", tone: "bad" },
  never: { text: "Never connected", tone: "" },
  paused: { text: "Paused", tone: "warn" },
  revoked: { text: "No key", tone: "bad" },
};

/** A device's state, in words and colour. */
export function StateBadge({ state }: { state: DeviceState }) {
  return <span class={`badge ${STATES[state].tone}`}>{STATES[state].text}</span>;
}

/** A form that is one button. */
export function Act({ action, fields = {}, text, label, tone = "quiet small" }: ActProps) {
  return (
    <form method="post" action={action} class="inline">
      {Object.entries(fields).map(([name, value]) => (
        <input type="hidden" name={name} value={value} />
      ))}
      <button type="submit" class={tone} {...(label === undefined ? {} : { "aria-label": label })}>
        {text}
      </button>
    </form>
  );
}

interface ActProps {
  action: string;
  fields?: Record<string, string>;
  text: string;
  /** Read out in place of the text, where several buttons read alike. */
  label?: string;
  tone?: string;
}

/** Heading with the way back above it and actions beside it. */
export function Heading({ title, back, children }: { title: Child; back?: { to: string; text: string }; children?: Child }) {
  return (
    <>
      {back === undefined ? null : (
        <p class="crumb">
          <a href={back.to}>← {back.text}</a>
        </p>
      )}
      <div class="head">
        <h1>{title}</h1>
        {children === undefined ? null : <div class="actions">{children}</div>}
      </div>
    </>
  );
}

/** A table that scrolls sideways by itself on a small screen, by keyboard too. */
export function Table({
  label,
  head,
  children,
}: {
  label: string;
  head: readonly (string | { text: string; num: true })[];
  children: Child;
}) {
  return (
    <div class="scroll" tabindex={0} role="region" aria-label={label}>
      <table>
        <thead>
          <tr>
            {head.map((cell) =>
              typeof cell === "string" ? (
                <th scope="col">{cell}</th>
              ) : (
                <th scope="col" class="num">
                  {cell.text}
                </th>
              ),
            )}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}
