/** The agent behind a tunnel client, as a test of the link alone wants it: it says hello and nothing more. */
import { TUNNEL } from "../../src/limits.ts";
import type { TunnelListener } from "../../src/agent/tunnel-client.ts";

const nothing = (): void => undefined;

export const quietListener: TunnelListener = {
  hello: () => ({
    type: "hello",
    protocol: { min: 1, max: 1 },
    agent: { name: "test", version: "1" },
    installation: "i",
    instance: "p",
    limits: { maxFrameBytes: TUNNEL.maxFrameBytes, maxConcurrentCalls: 1 },
    catalogue: null,
    held: [],
    asks: [],
    upstreams: [],
  }),
  online: nothing,
  offline: nothing,
  frame: nothing,
  drained: nothing,
};
