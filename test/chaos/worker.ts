/** The relay's Worker with one more route, for tests only: it resets a device's object, as a deploy or a move would. */
import { DeviceTunnel as Tunnel } from "../../durable/device-tunnel.ts";
import type { Env } from "../../src/env.ts";
import worker from "../../src/worker.ts";

export * from "../../src/worker.ts";

/** DeviceTunnel that can be told to lose its memory and its sockets. */
export class DeviceTunnel extends Tunnel {
  resetNow(): void {
    this.ctx.abort("reset by a test");
  }
}

const RESET = /^\/reset-for-tests\/([0-9a-f]{32})$/;

export default {
  async fetch(request, env, context) {
    const deviceId = RESET.exec(new URL(request.url).pathname)?.[1];
    if (deviceId === undefined) return worker.fetch(request, env, context);
    // SAFETY: the class above, which this Worker binds under the same name.
    const stub = env.TUNNEL.getByName(deviceId) as unknown as { resetNow(): Promise<void> };
    await stub.resetNow().catch(() => undefined);
    return new Response(null, { status: 204 });
  },
} satisfies ExportedHandler<Env>;
