/**
 * Settings of one device that change how the edge speaks to its callers (design section 6, "Compatibility switches").
 * All are off by default: each answers clients in a way that the protocol's text does not. Pure.
 */
import { z } from "zod";
import { shownWakeUrl } from "./wake-url.ts";

export const DeviceSettings = z.strictObject({
  /** A modern version header without `_meta` and without `Mcp-Method` counts as having empty capabilities; `ping` answers. */
  headerOnlyModern: z.boolean().default(false),
  /** A session may be opened at the stateless revision and is answered in its terms. */
  initializedModern: z.boolean().default(false),
  /** `strict`: an idle session ends, and is 404 from then on. `sleep`: its next request within a day wakes it. */
  sessionExpiry: z.enum(["sleep", "strict"]).default("sleep"),
  /** Posted to when a call comes while the device is away. */
  wakeUrl: z.string().optional(),
});
export type DeviceSettings = z.output<typeof DeviceSettings>;

/** What a change of settings names; the rest stays as it is. */
export const DeviceSettingsChange = z.strictObject({
  headerOnlyModern: z.boolean().optional(),
  initializedModern: z.boolean().optional(),
  sessionExpiry: z.enum(["sleep", "strict"]).optional(),
  /** null takes it away. */
  wakeUrl: z.string().nullable().optional(),
});
export type DeviceSettingsChange = z.output<typeof DeviceSettingsChange>;

/** The names that `--switch` takes. */
export const SWITCH_NAMES = ["headerOnlyModern", "initializedModern"] as const;

/** Settings as they are stored; what cannot be read counts as never set. */
export function readDeviceSettings(text: string): DeviceSettings {
  try {
    const parsed = DeviceSettings.safeParse(JSON.parse(text));
    return parsed.success ? parsed.data : DeviceSettings.parse({});
  } catch {
    return DeviceSettings.parse({}); // Not JSON: only this program writes the column.
  }
}

/** Settings as `status` shows them: of the wake URL only whose it is, because the rest is often a secret. */
export function shownSettings({ wakeUrl, ...settings }: DeviceSettings): DeviceSettings {
  return wakeUrl === undefined ? settings : { ...settings, wakeUrl: shownWakeUrl(wakeUrl) };
}
