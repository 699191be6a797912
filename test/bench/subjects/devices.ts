/** Devices and tokens by the owner's API, many at a time: a command for each would take the longest part of a run. */
import { z } from "zod";

const Added = z.object({ deviceKey: z.string(), mcpUrl: z.string() });
const Created = z.object({ token: z.string() });
const AT_ONCE = 8;
/** Caps are on and high enough: the most calls in flight a grant can have, and more calls a minute than can be made. */
const CAPS = { inFlight: 64, callsPerMinute: 10_000_000 };

/** A device with its key, and a caller's way to it. */
export interface BenchDevice {
  deviceKey: string;
  url: URL;
  token: string;
}

/** Adds devices `NAME0`, `NAME1`…, each with a token. */
export async function addDevices(relay: { url: string; ownerToken: string }, name: string, count: number): Promise<BenchDevice[]> {
  const post = async <T>(shape: z.ZodType<T>, path: string, body: object): Promise<T> => {
    const headers = { authorization: `Bearer ${relay.ownerToken}`, "content-type": "application/json" };
    const response = await fetch(`${relay.url}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
    if (!response.ok) throw new Error(`${path}: HTTP ${response.status}: ${await response.text()}`);
    return shape.parse(await response.json());
  };
  const add = async (device: string): Promise<BenchDevice> => {
    const { deviceKey, mcpUrl } = await post(Added, "/api/devices", { name: device });
    const { token } = await post(Created, `/api/devices/${device}/tokens`, { for: "bench", ...CAPS });
    return { deviceKey, url: new URL(mcpUrl), token };
  };
  const devices: BenchDevice[] = [];
  for (let at = 0; at < count; at += AT_ONCE) {
    const names = Array.from({ length: Math.min(AT_ONCE, count - at) }, (_, index) => `${name}${at + index}`);
    devices.push(...(await Promise.all(names.map(add))));
  }
  return devices;
}
