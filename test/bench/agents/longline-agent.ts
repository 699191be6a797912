/**
 * Longline agents as they are, with the demo tools and two tools of the benchmark: `node longline-agent.ts RELAY DIR`,
 * device keys one a line on standard input. Prints `ready` when all are online, then ends with its standard input.
 */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { runAgent } from "../../../src/agent/run-agent.ts";
import { demoTools } from "../../../src/agent/tools/demo.ts";
import type { BuiltinTool } from "../../../src/agent/types.ts";
import { EVENT_PAUSE_MS, monotonicMs } from "./shared.ts";

const anyObject = { type: "object", properties: {} };

const image: BuiltinTool = {
  name: "bench_image",
  description: "Returns an image of so many base64 characters.",
  inputSchema: anyObject,
  run: ({ size }) => ({ content: [{ type: "image", mimeType: "image/png", data: picture.slice(0, Number(size)) }] }),
};

const events: BuiltinTool = {
  name: "bench_events",
  description: "Reports progress so many times, each with the time it was reported at.",
  inputSchema: anyObject,
  run: async ({ count }, context) => {
    for (let step = 1; step <= Number(count); step += 1) {
      await sleep(EVENT_PAUSE_MS);
      context.progress(step, Number(count), String(monotonicMs()));
    }
    return { content: [] };
  },
};

const runs = new Map<unknown, number>();
/** Tells how often it ran for a name. */
const once: BuiltinTool = {
  name: "bench_once",
  description: "Counts its runs by name.",
  inputSchema: anyObject,
  run: ({ name, ms }) => {
    runs.set(name, (runs.get(name) ?? 0) + 1);
    return sleep(Number(ms ?? 0)).then(() => ({ content: [{ type: "text", text: String(runs.get(name)) }] }));
  },
};

const picture = "A".repeat(8 << 20);
const [relay = "", dir = ""] = process.argv.slice(2);
const keys: string[] = [];

for await (const line of createInterface({ input: process.stdin })) {
  if (line === "") break;
  keys.push(line);
}
// Leaving the loop closes the reader; the end of the input still ends the process.
process.stdin.on("end", () => process.exit(0)).resume();

await Promise.all(
  keys.map(async (deviceKey, index) => {
    const stateDir = join(dir, `agent-${index}`);
    await mkdir(stateDir, { mode: 0o700, recursive: true });
    const { promise, resolve } = Promise.withResolvers<void>();
    await runAgent({
      relay: new URL(relay),
      deviceKey,
      stateDir,
      upstreams: [{ kind: "builtin", alias: "bench", tools: [...demoTools(), image, events, once] }],
      log: (event) => {
        if (event.type === "online") resolve();
        if (event.type === "warning") console.error(event.message);
      },
    });
    await promise;
  }),
);
console.log("ready");
