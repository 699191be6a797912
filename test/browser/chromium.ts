/** A real browser for tests: the system's Chromium, without a window. */
import { existsSync } from "node:fs";
import { chromium, type Browser } from "playwright-core";

const PLACES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/** Starts Chromium; fails with what to install when there is none. `LONGLINE_CHROMIUM` names another program. */
export async function startChromium(): Promise<Browser> {
  const executablePath = process.env["LONGLINE_CHROMIUM"] ?? PLACES.find((path) => existsSync(path));
  if (executablePath === undefined) {
    throw new Error("These tests need Chromium. Install it (Debian: apt-get install chromium), or name the program in LONGLINE_CHROMIUM.");
  }
  // A container has no user namespaces for the sandbox, and a small /dev/shm.
  return await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
}
