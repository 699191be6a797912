/** The subjects without a relay of their own: a Worker of `workers/` on workerd, on a direct socket, storing nothing on disk. */
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { Miniflare } from "miniflare";
import { bundleWorker } from "../../../src/serve/bundle.ts";
import { workerdBelow } from "./processes.ts";

/** A Worker that listens. */
export interface PlainWorker {
  port: number;
  workerdPid: number;
  stop(): Promise<void>;
}

/** As the product's own, so that both run the same runtime behaviour. */
const COMPATIBILITY_DATE = "2026-08-01";

/** Starts `workers/NAME.mjs`. */
export async function startPlainWorker(name: string): Promise<PlainWorker> {
  const before = new Set(await workerdBelow(process.pid));
  const code = await bundleWorker(fileURLToPath(new URL(`../workers/${name}.mjs`, import.meta.url)));
  const mf = new Miniflare({
    workers: [
      {
        name,
        modules: [{ type: "ESModule", path: "worker.js", contents: code }],
        compatibilityDate: COMPATIBILITY_DATE,
        compatibilityFlags: ["enable_request_signal"],
        durableObjects: { TUNNEL: { className: "Tunnel", useSQLite: true } },
        unsafeDirectSockets: [{ host: "127.0.0.1", port: 0 }],
      },
    ],
    host: "127.0.0.1",
    port: 0,
    cf: false,
    handleRuntimeStdio: (stdout: Readable, stderr: Readable) => {
      stdout.resume();
      stderr.on("data", (text: Buffer) => process.stderr.write(text));
    },
  });
  await mf.ready;
  const url = await mf.unsafeGetDirectURL(name);
  const [workerdPid = -1] = (await workerdBelow(process.pid)).filter((pid) => !before.has(pid));
  return { port: Number(url.port), workerdPid, stop: async () => await mf.dispose() };
}
