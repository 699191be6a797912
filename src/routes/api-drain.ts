/** `/drain`, below `/api`, for owners: tells every connected agent that the relay is about to be replaced. */
import { Hono } from "hono";
import { audited } from "../auth/admin-audit.ts";
import { ownersOnly } from "../auth/owner.ts";
import { listDevices } from "../db/devices.ts";
import { type AppEnv, tunnelOf } from "../env.ts";
import { API } from "../limits.ts";

/** The drain route. Its answer is the number of calls still in flight; asked again, it tells no agent twice. */
export function drainRoutes(): Hono<AppEnv> {
  return new Hono<AppEnv>().post("/drain", ownersOnly, async (c) => {
    const inFlight = await audited(c, { name: "relay.drain", target: undefined }, async () => {
      const online = (await listDevices(c.env.DB, API.listRows)).filter((device) => device.online);
      // An object that does not answer is no reason to keep the others waiting: its agent finds out by the closed socket.
      const counts = await Promise.all(
        online.map(
          async ({ id }) =>
            await tunnelOf(c.env, id)
              .drain(false)
              .catch(() => 0),
        ),
      );
      return counts.reduce((sum, count) => sum + count, 0);
    });
    return c.json({ inFlight });
  });
}
