/** Device names: the last segment of a public MCP URL, and a label that can change. */
import { z } from "zod";
import { NAMES } from "../limits.ts";

/** Lower-case letters, digits and inner hyphens, so that a name is the same in a URL, a host label and a file name. */
export const DeviceName = z
  .string()
  .max(NAMES.device, `must have at most ${NAMES.device} characters`)
  .regex(/^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/, "must be lower-case letters, digits and hyphens, without a hyphen at either end");

/** Whether a path segment can be a device name at all; says nothing about whether the device exists. */
export function isDeviceName(text: string): boolean {
  return DeviceName.safeParse(text).success;
}

/** What a device is called: its name, and those of before a rename with the epoch ms until which they count. */
export interface DeviceNames {
  name: string;
  formerNames: readonly { name: string; until: number }[];
}

/** Whether a device is meant by a name at `now` (epoch ms). */
export function isNameOf(device: DeviceNames, name: string, now: number): boolean {
  return device.name === name || device.formerNames.some((former) => former.name === name && former.until > now);
}
