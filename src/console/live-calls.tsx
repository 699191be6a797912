/** The calls of a device that run now. A script keeps the list current; without scripts it is as of loading the page. */
import { cleanText } from "../policy/clean-text.ts";
import type { LiveCall } from "../tunnel/live.ts";
import { Act, Age } from "./parts.tsx";
import { devicePath } from "./paths.ts";

function Row({ device, call }: { device: string; call: LiveCall }) {
  return (
    <li data-call={call.id}>
      <div class="split">
        <div>
          <code data-what>{cleanText(call.target ?? call.method ?? "")}</code>{" "}
          <span class="note" data-who>
            {[call.label, call.client].flatMap((text) => (text === null ? [] : [cleanText(text)])).join(" · ")}
          </span>
        </div>
        <span class="actions">
          <span class="note" data-state>
            began <Age at={call.startedAt} />
          </span>
          <Act action={devicePath(device, "cancel")} fields={{ call: call.id }} text="Cancel" tone="quiet danger small" />
        </span>
      </div>
      <progress max={1} aria-label="Progress" hidden />
      <p class="note" data-said hidden />
    </li>
  );
}

/** The card, with the pattern of a row for the script. */
export function LiveCalls({ device, calls }: { device: string; calls: readonly LiveCall[] }) {
  const pattern: LiveCall = { id: "", startedAt: Date.now(), method: null, target: null, label: null, client: null };
  return (
    <section class="card" aria-labelledby="live" id="live-card" data-stream={devicePath(device, "live")}>
      <header>
        <h2 id="live">Calls now</h2>
        <span class="note" id="live-state" role="status">
          as of loading this page
        </span>
      </header>
      <p class="note" id="live-none" hidden={calls.length > 0}>
        Nothing runs.
      </p>
      <ul class="rows" id="live-calls">
        {calls.map((call) => (
          <Row device={device} call={call} />
        ))}
      </ul>
      <template id="live-row">
        <Row device={device} call={pattern} />
      </template>
    </section>
  );
}
