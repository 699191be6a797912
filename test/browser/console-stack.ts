/** The console with everything behind it: a relay, a home's device with its agent, and a signed-in browser. */
import { join } from "node:path";
import type { Browser, BrowserContext, BrowserContextOptions, Page } from "playwright-core";
import { answerOf, postTool } from "../support/modern-call.ts";
import { startAgent, type AgentProcess } from "../support/relay-process.ts";
import { startStack, type Stack } from "../support/stack.ts";
import { startChromium } from "./chromium.ts";

const ROOT = join(import.meta.dirname, "../..");
/** Command of the home's MCP server. */
export const HOME = [process.execPath, join(ROOT, "test/fixtures/upstream/home.mjs")];
/** The page of the device that the stack has. */
export const DEVICE = "/console/devices/bench";

/** Every page of the console, by a name for files and titles. */
export const PAGES: readonly (readonly [name: string, path: string])[] = [
  ["devices", "/console"],
  ["add-device", "/console/devices/new"],
  ["device", DEVICE],
  ["share", `${DEVICE}/share`],
  ["setup", `${DEVICE}/setup`],
  ["try", `${DEVICE}/try?tool=lamp_set`],
  ["remove", `${DEVICE}/remove`],
  ["audit", "/console/audit"],
  ["people", "/console/people"],
  ["account", "/account"],
  ["pair", "/pair"],
];

/** The sizes that every page is looked at in. */
export const SIZES = { desktop: { width: 1280, height: 800 }, phone: { width: 390, height: 844 } } as const;

/** What a page must not do while a test uses it. */
export interface Watched {
  page: Page;
  /** Console errors, which violations of the Content-Security-Policy are too, and uncaught exceptions. */
  complaints: string[];
}

type Cookies = Awaited<ReturnType<BrowserContext["storageState"]>>;

export interface ConsoleStack {
  stack: Stack;
  browser: Browser;
  /** The owner's cookies. */
  owner: Cookies;
  /** Starts an agent of the same device again. */
  restartAgent(): Promise<AgentProcess>;
  stop(): Promise<void>;
}

/** Starts everything, signs the owner in, and makes a few calls, so that there is something to show. */
export async function startConsole(): Promise<ConsoleStack> {
  const [browser, stack] = await Promise.all([startChromium(), startStack({ agent: ["--", ...HOME] })]);
  for (const tool of ["climate_read", "climate_read", "camera_snapshot", "door_unlock", "missing"])
    await answerOf(await postTool(stack, tool));
  return {
    stack,
    browser,
    owner: await signIn(browser, stack),
    restartAgent: () => startAgent({ relay: stack.relay.url, deviceKey: stack.deviceKey, args: ["--", ...HOME] }),
    stop: async () => {
      await browser.close();
      await stack.stop();
    },
  };
}

async function signIn(browser: Browser, { relay }: Pick<Stack, "relay">): Promise<Cookies> {
  const context = await browser.newContext({ baseURL: relay.url });
  const page = await context.newPage();
  await page.goto("/console");
  await page.getByLabel("Owner token").fill(relay.ownerToken);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.waitForURL("**/console");
  const cookies = await context.storageState();
  await context.close();
  return cookies;
}

/** A browser context that is signed in as the owner. */
export async function ownerContext({ stack, browser, owner }: ConsoleStack, options: BrowserContextOptions = {}): Promise<BrowserContext> {
  return await browser.newContext({ baseURL: stack.relay.url, storageState: owner, ...options });
}

/** A new page whose complaints are kept. */
export async function watchedPage(context: BrowserContext): Promise<Watched> {
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on("console", (message) => {
    if (message.type() === "error") complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  return { page, complaints };
}
