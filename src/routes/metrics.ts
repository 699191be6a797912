/** `GET /metrics`, for owners of an embedded relay: counts and states for Prometheus. */
import { Hono } from "hono";
import { membersOnly, ownersOnly } from "../auth/owner.ts";
import { countDevices } from "../db/devices.ts";
import { type AppEnv, configOf } from "../env.ts";
import { ApiError } from "../errors.ts";
import { metricsText } from "../metrics.ts";
import { VERSION } from "../version.ts";

/** The metrics route. On Cloudflare each isolate has counts of its own, so that there is nothing to scrape. */
export function metricsRoutes(): Hono<AppEnv> {
  return new Hono<AppEnv>().get("/metrics", membersOnly, ownersOnly, async (c) => {
    if (configOf(c.env).runtime !== "embedded")
      throw new ApiError("not_found", "Metrics are for a relay of `longline serve`; on Cloudflare use the Worker's own analytics.");
    const devices = await countDevices(c.env.DB);
    const text = metricsText([
      { name: "longline_build_info", help: "The version that runs.", value: 1, labels: { version: VERSION } },
      { name: "longline_devices", help: "Devices of the relay.", value: devices.all },
      { name: "longline_devices_online", help: "Devices whose agent is connected.", value: devices.online },
    ]);
    return c.body(text, 200, { "Content-Type": "text/plain; version=0.0.4; charset=utf-8" });
  });
}
