/** The first page of the console: every device with how it is now, or a guide when there is none. */
import type { Context } from "hono";
import type { StatusView } from "../auth/device-status.ts";
import type { TokenHolder } from "../db/owner-tokens.ts";
import type { AppEnv } from "../env.ts";
import { NAMES } from "../limits.ts";
import { page } from "./page.tsx";
import { Age, Done, Heading, Problem, StateBadge } from "./parts.tsx";
import { devicePath } from "./paths.ts";

/** When the upstream that answered last did so (epoch ms). */
function upstreamAt(status: StatusView): number | null {
  const times = status.upstreams.flatMap(({ lastRoundTripAt }) => lastRoundTripAt ?? []);
  return times.length === 0 ? null : Math.max(...times);
}

/** The three ages that say whether a device works: its agent, what is behind it, and a call that went through. */
export function Ages({ status }: { status: StatusView }) {
  return (
    <dl class="ages">
      <dt>Agent heard from</dt>
      <dd>
        <Age at={status.lastSeenAt} />
      </dd>
      <dt>Tools answered the agent</dt>
      <dd>
        <Age at={upstreamAt(status)} none="not yet" />
      </dd>
      <dt>Last call that succeeded</dt>
      <dd>
        <Age at={status.lastCallAt} none="none yet" />
      </dd>
    </dl>
  );
}

/** What of a device needs attention, in one sentence. */
export function concern({ state, upstreams, rivalAt }: StatusView): string | undefined {
  if (state === "revoked") return "Every key was revoked. Rotate the key to let an agent in again.";
  if (rivalAt !== null) return "Another machine tried to use this device's key. If that was not you, rotate the key.";
  const broken = upstreams.find((upstream) => upstream.state === "crashed" || upstream.state === "stopped");
  return broken === undefined ? undefined : `Its upstream “${broken.alias}” is ${broken.state}.`;
}

function DeviceCard({ status }: { status: StatusView }) {
  const problem = concern(status);
  return (
    <li>
      <article class="card device">
        <header>
          <h2>
            <a href={devicePath(status.device)}>{status.device}</a>
          </h2>
          <StateBadge state={status.state} />
        </header>
        {problem === undefined ? null : <p class="note">{problem}</p>}
        {status.inFlight === 0 ? null : <p class="note">{status.inFlight === 1 ? "1 call" : `${status.inFlight} calls`} running now</p>}
        <Ages status={status} />
      </article>
    </li>
  );
}

function FirstRun() {
  return (
    <section class="card">
      <h2>Connect your first device</h2>
      <p class="note">
        A device is any machine whose tools you want to reach: a phone, a board, a workstation. Nothing has to be opened on it.
      </p>
      <ol class="steps">
        <li>
          <h3>Name it</h3>
          <AddForm />
        </li>
        <li>
          <h3>Start its agent</h3>
          <p class="note">The next page shows the command, with the device's key in it.</p>
        </li>
        <li>
          <h3>Share it</h3>
          <p class="note">Pick tools and a person, and paste the ready set-up into Claude, VS Code, Cursor or another client.</p>
        </li>
      </ol>
    </section>
  );
}

function AddForm({ name = "" }: { name?: string }) {
  return (
    <form method="post" action="/console/devices">
      <label for="name">Name of the device</label>
      <input
        id="name"
        name="name"
        value={name}
        maxlength={NAMES.device}
        autocomplete="off"
        autocapitalize="none"
        spellcheck={false}
        placeholder="kitchen-pi"
        aria-describedby="name-hint"
        required
      />
      <p class="note" id="name-hint">
        Lower-case letters, digits and hyphens. It becomes part of the device's address and can be changed later.
      </p>
      <button type="submit">Add the device</button>
    </form>
  );
}

/** The list of devices that a person may see. */
export function devicesPage(
  c: Context<AppEnv>,
  { person, devices, done }: { person: TokenHolder; devices: readonly StatusView[]; done: string | undefined },
): Promise<Response> {
  const isOwner = person.role === "owner";
  const none = isOwner ? (
    <FirstRun />
  ) : (
    <p class="card">No device is shared with you yet. Ask the owner of this relay for an invitation.</p>
  );
  return page(c, {
    title: "Devices",
    console: { person, here: "devices" },
    heading: (
      <Heading title="Devices">
        {isOwner && devices.length > 0 ? (
          <>
            <a class="button quiet" href="/pair">
              Approve a pairing
            </a>
            <a class="button" href="/console/devices/new">
              Add a device
            </a>
          </>
        ) : null}
      </Heading>
    ),
    body: (
      <>
        <Done text={done} />
        {devices.length === 0 ? (
          none
        ) : (
          <ul class="grid">
            {devices.map((status) => (
              <DeviceCard status={status} />
            ))}
          </ul>
        )}
        {isOwner && devices.length === 0 ? (
          <p class="note">
            Does a device already show a code? <a href="/pair">Approve it here</a>.
          </p>
        ) : null}
      </>
    ),
  });
}

/** Asks for the name of a new device. */
export function addDevicePage(
  c: Context<AppEnv>,
  { person, name, problem }: { person: TokenHolder; name?: string; problem?: string },
): Promise<Response> {
  return page(c, {
    title: "Add a device",
    status: problem === undefined ? 200 : 400,
    console: { person, here: "devices" },
    heading: <Heading title="Add a device" back={{ to: "/console", text: "Devices" }} />,
    body: (
      <section class="card">
        <Problem text={problem} />
        <AddForm name={name ?? ""} />
        <p class="note">
          Or start <code>longline agent</code> on the device without a key: it shows a code that you <a href="/pair">approve here</a>.
        </p>
      </section>
    ),
  });
}
