/** From nothing to a device that answers, in the browser: the guide, the key, and pairing without one. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Browser, Page } from "playwright-core";
import { type AgentProcess, startAgent, startLongline, startRelay, type RelayProcess } from "../support/relay-process.ts";
import { temporaryDir } from "../support/processes.ts";
import { startChromium } from "./chromium.ts";
import { HOME, watchedPage } from "./console-stack.ts";

let relay: RelayProcess;
let browser: Browser;
const agents: AgentProcess[] = [];

beforeAll(async () => {
  [browser, relay] = await Promise.all([startChromium(), startRelay()]);
});
afterAll(async () => {
  await browser?.close();
  for (const agent of agents) await agent.stop();
  await relay?.stop();
});

async function signIn(): Promise<{ page: Page; complaints: string[] }> {
  const watched = await watchedPage(await browser.newContext());
  await watched.page.goto(relay.consoleUrl);
  await watched.page.getByLabel("Owner token").fill(relay.ownerToken);
  await watched.page.getByRole("button", { name: "Sign in", exact: true }).click();
  await watched.page.waitForURL("**/console");
  return watched;
}

test("a new owner is led from an empty list to a device that is online, and can remove it again", async () => {
  const { page, complaints } = await signIn();
  expect(await page.getByRole("heading", { name: "Connect your first device" }).isVisible()).toBe(true);
  await page.getByLabel("Name of the device").fill("kitchen-pi");
  await page.getByRole("button", { name: "Add the device" }).click();
  const key = (await page.getByRole("region", { name: "the key" }).innerText()).replace("export LONGLINE_DEVICE_KEY=", "");
  expect(await page.getByRole("region", { name: "the command with demo tools" }).innerText()).toBe(
    `longline agent --relay ${relay.url} --demo`,
  );
  await page.getByRole("link", { name: "Go to kitchen-pi" }).click();
  expect(await page.getByRole("heading", { name: "Waiting for its agent" }).isVisible()).toBe(true);

  agents.push(await startAgent({ relay: relay.url, deviceKey: key, args: ["--", ...HOME] }));
  // Nobody reloads: the page finds out by itself.
  await page.getByRole("heading", { name: "kitchen-pi Online" }).waitFor();
  await page.goto(`${relay.url}/console`);
  expect(await page.locator("article.device").innerText()).toMatch(
    /kitchen-pi\s+Online\s+Agent heard from\s+\S.*\s+Tools answered the agent\s+\S.*\s+Last call that succeeded\s+none yet/,
  );

  await page.goto(`${relay.url}/console/devices/kitchen-pi`);
  await page.getByRole("link", { name: "Rotate key" }).click();
  await page.getByRole("button", { name: "Rotate the key of kitchen-pi" }).click();
  expect(await page.getByRole("region", { name: "the key" }).innerText()).not.toContain(key);
  await page.goto(`${relay.url}/console/devices/kitchen-pi`);
  await page.getByRole("link", { name: "Remove" }).click();
  await page.getByRole("link", { name: "Cancel" }).click();
  expect(await page.locator("h1").innerText()).toContain("Online");
  await page.getByRole("link", { name: "Remove" }).click();
  await page.getByRole("button", { name: "Remove kitchen-pi" }).click();
  expect(await page.getByRole("heading", { name: "Connect your first device" }).isVisible()).toBe(true);
  await page.goto(`${relay.url}/console/audit`);
  for (const action of ["device.add", "device.rotate-key", "device.remove"])
    expect(await page.locator("main").innerText()).toContain(action);
  expect(complaints).toEqual([]);
  await page.context().close();
});

test("a device without a key is approved by its code and the characters on its screen", async () => {
  const { page, complaints } = await signIn();
  const state = await temporaryDir();
  const agent = startLongline(["agent", "--relay", relay.url, "--state", state.path, "--pair-as", "shed-pi", "--demo"]);
  try {
    const line = await agent.line("stderr", (text) => text.includes("device approve"));
    const [, code = "", screen = ""] = /approve (\S+) --screen (\S+)/.exec(line) ?? [];
    await page
      .getByRole("link", { name: /Approve/ })
      .first()
      .click();
    await page.getByLabel("Code on the device's screen").fill(code);
    await page.getByRole("button", { name: "Continue" }).click();
    await page.getByLabel("The two characters on its screen").fill(screen);
    await page.getByRole("button", { name: "Pair" }).click();
    expect(await page.locator("main").innerText()).toContain("shed-pi gets its key within a few seconds");
    await page.getByRole("link", { name: "Back to your devices" }).click();
    await expect
      .poll(
        async () => {
          await page.reload();
          return await page.locator("main").innerText();
        },
        { timeout: 20_000 },
      )
      .toMatch(/shed-pi\s+Online/);
  } finally {
    await agent.stop();
    await state.remove();
  }
  expect(complaints).toEqual([]);
  await page.context().close();
});
