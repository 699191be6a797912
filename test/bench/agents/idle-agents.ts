/**
 * Simulated agents that only stay connected, with the agent's own dialling and backoff: `node idle-agents.ts RELAY`,
 * device keys one a line on standard input. Prints `online N` each time that all are online for the Nth time.
 */
import { randomUUID } from "node:crypto";
import { createInterface } from "node:readline";
import { TunnelClient } from "../../../src/agent/tunnel-client.ts";
import { TUNNEL } from "../../../src/limits.ts";
import type { Hello } from "../../../src/tunnel/frames.ts";

const [relay = ""] = process.argv.slice(2);
const keys: string[] = [];
for await (const line of createInterface({ input: process.stdin })) {
  if (line === "") break;
  keys.push(line);
}
process.stdin.on("end", () => process.exit(0)).resume();

let online = 0;
let times = 0;

function hello(): Hello {
  return {
    type: "hello",
    protocol: { min: 1, max: 1 },
    agent: { name: "longline-bench", version: "1" },
    installation: randomUUID(),
    instance: randomUUID(),
    limits: { maxFrameBytes: TUNNEL.maxFrameBytes, maxConcurrentCalls: 1 },
    catalogue: null,
    held: [],
    asks: [],
    upstreams: [],
  };
}

for (const deviceKey of keys) {
  const own = hello();
  new TunnelClient({
    relay: new URL(relay),
    deviceKey,
    maxFrameBytes: TUNNEL.maxFrameBytes,
    log: () => undefined,
    listener: {
      hello: () => own,
      online: () => {
        online += 1;
        if (online < keys.length) return;
        times += 1;
        console.log(`online ${times}`);
      },
      offline: () => {
        online -= 1;
      },
      frame: () => undefined,
      drained: () => undefined,
    },
  }).start();
}
