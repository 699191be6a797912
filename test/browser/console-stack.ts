/** The console with everything behind it: a relay, a home's device with its agent, and a signed-in browser. */
import { join } from "node:path";
import type { Browser, BrowserContext, BrowserContextOptions, Page } from "playwright-core";
import { startStack, type Stack } from "../support/stack.ts";
import { startChromium } from "./chromium.ts";

const ROOT = join(import.meta.dirname, "../..");
/** Command of the home's MCP server. */
export const HOME = [process.execPath, join(ROOT, "test/fixtures/upstream/home.mjs")];

/** What a page must not do while a test uses it. */
export interface Watched {
  page: Page;
  /** Console errors, uncaught exceptions and violations of the Content-Security-Policy. */
  complaints: string[];
}

export interface ConsoleStack {
  stack: Stack;
  browser: Browser;
  stop(): Promise<void>;
}

/** Starts everything. */
export async function startConsole(): Promise<ConsoleStack> {
  const [browser, stack] = await Promise.all([startChromium(), startStack({ agent: ["--", ...HOME] })]);
  return {
    stack,
    browser,
    stop: async () => {
      await browser.close();
      await stack.stop();
    },
  };
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

/** A browser context that is signed in as the owner. */
export async function ownerContext({ stack, browser }: ConsoleStack, options: BrowserContextOptions = {}): Promise<BrowserContext> {
  const context = await browser.newContext({ baseURL: stack.relay.url, ...options });
  const page = await context.newPage();
  await page.goto("/sign-in");
  await page.getByLabel("Owner token").fill(stack.relay.ownerToken);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.waitForURL("**/console");
  await page.close();
  return context;
}
