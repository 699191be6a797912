/** The page of one device: how it is, what runs, what it offers, who may use it, and what its owner can change. */
import type { Context } from "hono";
import type { OfferedTool } from "../../durable/rpc.ts";
import type { StatusView, UpstreamView } from "../auth/device-status.ts";
import type { GrantRecord } from "../db/grants.ts";
import type { TokenHolder } from "../db/owner-tokens.ts";
import type { AppEnv } from "../env.ts";
import { cleanText } from "../policy/clean-text.ts";
import type { LiveCall } from "../tunnel/live.ts";
import { DeviceSettings } from "./device-settings.tsx";
import { Ages, concern } from "./devices-page.tsx";
import { GrantRows } from "./grant-rows.tsx";
import { LIVE_SCRIPT } from "./live-script.ts";
import { LiveCalls } from "./live-calls.tsx";
import { page } from "./page.tsx";
import { Act, Age, Done, Heading, StateBadge } from "./parts.tsx";
import { devicePath } from "./paths.ts";
import { WAIT_SCRIPT } from "./scripts.ts";

/** A tool, and whether it is new or other than when this person last looked. */
export interface MarkedTool extends OfferedTool {
  mark: "new" | "changed" | undefined;
}

/** What the page shows. */
export interface DeviceView {
  person: TokenHolder;
  status: StatusView;
  mcpUrl: string;
  /** Null while the device has not said what it offers. */
  tools: readonly MarkedTool[] | null;
  /** When (epoch ms) this person last looked at the tools; null for never. */
  lookedAt: number | null;
  grants: readonly GrantRecord[];
  calls: readonly LiveCall[];
  done: string | undefined;
}

function Upstreams({ upstreams }: { upstreams: readonly UpstreamView[] }) {
  const tones = { ready: "ok", starting: "warn", crashed: "bad", stopped: "bad", unknown: "" };
  if (upstreams.length === 0) return null;
  return (
    <ul class="rows">
      {upstreams.map(({ alias, state, era, lastRoundTripMs, lastRoundTripAt, problem }) => (
        <li>
          <div class="split">
            <h3>{cleanText(alias)}</h3>
            <span class={`badge ${tones[state]}`}>{state}</span>
          </div>
          <p class="note">
            {era === null ? "" : `${era} protocol · `}
            {lastRoundTripMs === null ? "" : `${Math.round(lastRoundTripMs)} ms · `}
            answered <Age at={lastRoundTripAt} none="not yet" />
          </p>
          {problem === null ? null : <pre>{cleanText(problem)}</pre>}
        </li>
      ))}
    </ul>
  );
}

function Now({ status, mcpUrl }: Pick<DeviceView, "status" | "mcpUrl">) {
  const problem = concern(status);
  return (
    <section class="card" aria-labelledby="now">
      <header>
        <h2 id="now">Now</h2>
      </header>
      {problem === undefined ? null : <p class="warning">{problem}</p>}
      <dl>
        <dt>Address</dt>
        <dd>
          <code>{mcpUrl}</code>
        </dd>
        <dt>Agent</dt>
        <dd>{status.agentVersion === null ? "none yet" : `version ${cleanText(status.agentVersion)}, link ${status.generation}`}</dd>
        <dt>Sessions</dt>
        <dd>{status.sessions}</dd>
      </dl>
      <Ages status={status} />
    </section>
  );
}

function Waiting({ device }: { device: string }) {
  return (
    <section class="card" id="waiting" data-look={devicePath(device, "presence")}>
      <h2>Waiting for its agent</h2>
      <p>
        No agent has dialled in with this device's key. Start <code>longline agent</code> on the device; this page then shows what it
        offers.
      </p>
      <p>
        Lost the key? <a href={devicePath(device, "rotate-key")}>Make a new one</a>.
      </p>
    </section>
  );
}

const MARKS = { new: "New", changed: "Changed" } as const;

function Tools({ status, tools, lookedAt }: Pick<DeviceView, "status" | "tools" | "lookedAt">) {
  if (tools === null) return null;
  const marked = tools.filter(({ mark }) => mark !== undefined).length;
  return (
    <section class="card" aria-labelledby="tools">
      <header>
        <h2 id="tools">Tools ({tools.length})</h2>
        <Act action={devicePath(status.device, "looked")} text={lookedAt === null ? "Mark all as seen" : "Mark as seen"} />
      </header>
      <p class="note">
        {lookedAt === null
          ? "Mark them as seen, and tools that appear or change later stand out here: a grant for everything picks them up by itself."
          : marked === 0
            ? "Nothing is new since you last looked."
            : `${marked === 1 ? "1 is" : `${marked} are`} new or changed since you last looked. Grants for everything cover them already.`}
      </p>
      <ul class="rows tools">
        {tools
          .toSorted((a, b) => Number(b.mark !== undefined) - Number(a.mark !== undefined))
          .map((tool) => (
            <li class="split">
              <div>
                <code>{cleanText(tool.name)}</code>{" "}
                {tool.mark === undefined ? null : <span class="badge plain new">{MARKS[tool.mark]}</span>}{" "}
                {tool.readOnly ? <span class="badge plain">reads</span> : null}
                {tool.destructive ? <span class="badge plain warn">can destroy</span> : null}
                {tool.description === undefined ? null : <div class="note">{tool.description}</div>}
              </div>
              <a
                class="button quiet small"
                href={`${devicePath(status.device, "try")}?${new URLSearchParams({ tool: tool.name }).toString()}`}
                aria-label={`Try ${cleanText(tool.name)}`}
              >
                Try
              </a>
            </li>
          ))}
      </ul>
    </section>
  );
}

function Manage({ status }: { status: StatusView }) {
  const { device, state } = status;
  const link = (action: string, text: string, tone = "button quiet small") => (
    <a class={tone} href={devicePath(device, action)}>
      {text}
    </a>
  );
  return (
    <section class="card" aria-labelledby="manage">
      <h2 id="manage">Manage</h2>
      <form method="post" action={devicePath(device, "rename")}>
        <label for="rename">Name</label>
        <div class="beside">
          <input id="rename" name="name" value={device} autocapitalize="none" autocomplete="off" spellcheck={false} required />
          <button type="submit" class="quiet">
            Rename
          </button>
        </div>
        <p class="note">Its old address works for 30 days more.</p>
      </form>
      <div class="actions">
        {state === "paused" ? <Act action={devicePath(device, "resume")} text="Resume" /> : link("pause", "Pause")}
        {link("rotate-key", "Rotate key")}
        {link("revoke-keys", "Revoke keys", "button quiet danger small")}
        {link("remove", "Remove", "button quiet danger small")}
      </div>
    </section>
  );
}

/** Shows a device. */
export function devicePage(c: Context<AppEnv>, view: DeviceView): Promise<Response> {
  const { person, status, mcpUrl, grants, calls, done } = view;
  const { device, state, upstreams } = status;
  const isOwner = person.role === "owner";
  const isBorn = state !== "never";
  const heading = (
    <>
      {device} <StateBadge state={state} />
    </>
  );
  return page(c, {
    title: device,
    console: { person, here: "devices" },
    script: isBorn ? LIVE_SCRIPT : isOwner ? WAIT_SCRIPT : "",
    heading: (
      <Heading title={heading} back={{ to: "/console", text: "Devices" }}>
        <a class="button quiet" href={devicePath(device, "setup")}>
          Connect a client
        </a>
        {isOwner ? (
          <a class="button" href={devicePath(device, "share")}>
            Share
          </a>
        ) : null}
      </Heading>
    ),
    body: (
      <>
        <Done text={done} />
        {isBorn ? <LiveCalls device={device} calls={calls} /> : null}
        <div class="pair">
          <div>
            {!isBorn && isOwner ? <Waiting device={device} /> : null}
            <Now status={status} mcpUrl={mcpUrl} />
            {upstreams.length === 0 ? null : (
              <section class="card" aria-labelledby="upstreams">
                <h2 id="upstreams">Upstreams</h2>
                <Upstreams upstreams={upstreams} />
              </section>
            )}
            <Tools {...view} />
          </div>
          <div>
            <GrantRows device={device} grants={grants} isOwner={isOwner} />
            {isOwner ? (
              <>
                <DeviceSettings device={device} settings={status.settings} />
                <Manage status={status} />
              </>
            ) : null}
          </div>
        </div>
      </>
    ),
  });
}
