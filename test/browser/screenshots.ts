/** `npm run screenshots`: every page in light and dark, on a phone and a desktop, into test-results/screenshots. */
import { join } from "node:path";
import type { BrowserContext } from "playwright-core";
import { answerOf, postTool } from "../support/modern-call.ts";
import { type ConsoleStack, DEVICE, ownerContext, PAGES, SIZES, startConsole } from "./console-stack.ts";

const INTO = join(import.meta.dirname, "../../test-results/screenshots");
const SCHEMES = ["light", "dark"] as const;
/** Pages that are only reached by doing something. */
const DONE = ["shared", "result", "live", "sign-in"] as const;

type Shoot = (name: string) => Promise<void>;

async function shootDone(
  all: ConsoleStack,
  context: BrowserContext,
  shoot: (page: Awaited<ReturnType<BrowserContext["newPage"]>>) => Shoot,
): Promise<void> {
  const page = await context.newPage();
  await page.goto(`${DEVICE}/share`);
  await page.getByLabel("Name of the person or client").fill("Ada's laptop");
  await page.locator('input[name="tool"]').first().check();
  await page.getByRole("button", { name: "Share" }).click();
  await shoot(page)("shared");
  await page.goto(`${DEVICE}/try?tool=camera_snapshot`);
  await page.getByRole("button", { name: "Call it" }).click();
  await shoot(page)("result");
  const stopped = new AbortController();
  const options = { meta: { progressToken: "p" }, signal: stopped.signal };
  const running = postTool(all.stack, "firmware_update", { ms: 20_000 }, options)
    .then(answerOf)
    .catch(() => undefined);
  await page.goto(DEVICE);
  await page.getByText(/Writing block \d+/).waitFor();
  await shoot(page)("live");
  stopped.abort();
  await running;
  await page.close();
  await context.clearCookies();
  const stranger = await context.newPage();
  await stranger.goto("/sign-in");
  await shoot(stranger)("sign-in");
}

const all = await startConsole();
try {
  for (const name of ["garden-cam", "workshop-pi"]) await all.stack.relay.addDevice(name);
  for (const size of ["desktop", "phone"] as const) {
    for (const colorScheme of SCHEMES) {
      const context = await ownerContext(all, { viewport: SIZES[size], colorScheme });
      const page = await context.newPage();
      const path = (name: string): string => join(INTO, `${name}-${size}-${colorScheme}.png`);
      for (const [name, at] of PAGES) {
        await page.goto(at);
        await page.screenshot({ path: path(name), fullPage: true });
      }
      await page.close();
      await shootDone(all, context, (shown) => async (name) => void (await shown.screenshot({ path: path(name), fullPage: true })));
      await context.close();
    }
  }
  console.log(`${(PAGES.length + DONE.length) * 4} screenshots are in ${INTO}`);
} finally {
  await all.stop();
}
