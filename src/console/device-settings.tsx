/** The settings of a device that change how its callers are answered. */
import type { DeviceSettings as Settings } from "../policy/device-settings.ts";
import { devicePath } from "./paths.ts";

/** The form; every field is sent, so that an unticked box is off. */
export function DeviceSettings({ device, settings }: { device: string; settings: Settings }) {
  return (
    <section class="card" aria-labelledby="settings">
      <h2 id="settings">Compatibility</h2>
      <p class="note">For clients that do not follow the protocol to the letter. Leave everything off unless one needs it.</p>
      <form method="post" action={devicePath(device, "settings")}>
        <label class="box">
          <input type="checkbox" name="headerOnlyModern" value="yes" checked={settings.headerOnlyModern} />
          <span>Accept stateless requests that carry a version header alone</span>
        </label>
        <label class="box">
          <input type="checkbox" name="initializedModern" value="yes" checked={settings.initializedModern} />
          <span>Let sessions be opened at the stateless revision</span>
        </label>
        <label for="sessionExpiry">An idle session</label>
        <select id="sessionExpiry" name="sessionExpiry">
          <option value="sleep" selected={settings.sessionExpiry === "sleep"}>
            sleeps, and wakes with its next request
          </option>
          <option value="strict" selected={settings.sessionExpiry === "strict"}>
            ends, and its client has to begin again
          </option>
        </select>
        <button type="submit" class="quiet small">
          Save
        </button>
      </form>
    </section>
  );
}
