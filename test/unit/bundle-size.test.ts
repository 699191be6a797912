/** The Worker stays small: start-up time and the upload limit of Cloudflare's free plan both follow its size. */
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { fileURLToPath } from "node:url";
import { bundleWorker } from "../../src/serve/bundle.ts";

const MOST_BYTES = 400 * 1024;
const BUILD_MS = 60_000;

test(
  "the Worker's bundle is at most 400 KB compressed",
  async () => {
    const code = await bundleWorker(fileURLToPath(new URL("../../src/worker.ts", import.meta.url)));
    expect(gzipSync(code).length).toBeLessThanOrEqual(MOST_BYTES);
  },
  BUILD_MS,
);
