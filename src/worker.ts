/** Entry: the fetch handler and the Durable Object exports, nothing else. */
import { createApp } from "./app.ts";
import type { Env } from "./env.ts";

export { DeviceTunnel } from "../durable/device-tunnel.ts";
export { Pairing } from "../durable/pairing.ts";

const app = createApp();

export default { fetch: (request, env, context) => app.fetch(request, env, context) } satisfies ExportedHandler<Env>;
