/** Every page of the console, in light and dark, on a phone and a desktop: accessible, quiet, and readable without scripts. */
import axe from "axe-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Page } from "playwright-core";
import { answerOf, postTool } from "../support/modern-call.ts";
import { type ConsoleStack, DEVICE, ownerContext, PAGES, SIZES, startConsole, watchedPage } from "./console-stack.ts";

let all: ConsoleStack;

beforeAll(async () => {
  all = await startConsole();
});
afterAll(() => all?.stop());

interface Found {
  violations: { id: string; nodes: { html: string }[] }[];
}
/** What of a page is looked at from the inside. */
interface Inside {
  axe: { run(options: object): Promise<Found> };
  document: { documentElement: { scrollWidth: number; clientWidth: number } };
}

test.each([
  ["phone", "light"],
  ["desktop", "dark"],
] as const)(
  "on a %s, loaded in %s colours, every page is accessible in both, fits, and breaks no rule of its own",
  async (size, colorScheme) => {
    const context = await ownerContext(all, { viewport: SIZES[size], colorScheme });
    const { page, complaints } = await watchedPage(context);
    for (const [name, path] of PAGES) {
      expect((await page.goto(path))?.status(), name).toBe(200);
      await page.evaluate(axe.source);
      expect(await violations(page, {}), name).toEqual([]);
      await page.emulateMedia({ colorScheme: colorScheme === "dark" ? "light" : "dark" });
      expect(await violations(page, { runOnly: ["color-contrast"] }), `${name} in the other colours`).toEqual([]);
      await page.emulateMedia({ colorScheme });
      const fits = await page.evaluate(() => {
        const { scrollWidth, clientWidth } = (globalThis as unknown as Inside).document.documentElement;
        return scrollWidth <= clientWidth;
      });
      expect(fits, `${name} is no wider than the screen`).toBe(true);
    }
    expect(complaints).toEqual([]);
    await context.close();
  },
);

async function violations(page: Page, options: { runOnly?: string[] }): Promise<string[]> {
  const found = await page.evaluate((asked) => (globalThis as unknown as Inside).axe.run(asked), options);
  return found.violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join("\n")}`);
}

test("every page allows nothing but itself, and is not kept", async () => {
  const context = await ownerContext(all);
  for (const [name, path] of PAGES) {
    const { headers } = await context.request.get(path).then((response) => ({ headers: response.headers() }));
    const policy = headers["content-security-policy"] ?? "";
    expect(policy, name).toMatch(/^default-src 'none'; style-src 'nonce-[\w-]+'; script-src 'nonce-[\w-]+';/);
    expect(policy, name).toContain("form-action 'self'; base-uri 'none'; frame-ancestors 'none'");
    expect(headers["cache-control"], name).toBe("no-store");
  }
  await context.close();
});

test("without scripts every page reads, and a device is shared and its call cancelled", async () => {
  const context = await ownerContext(all, { javaScriptEnabled: false });
  const { page } = await watchedPage(context);
  for (const [name, path] of PAGES) {
    await page.goto(path);
    expect((await page.locator("main").innerText()).length, name).toBeGreaterThan(40);
    expect(await page.getByRole("button", { name: /^Copy/ }).count(), name).toBe(0);
  }
  await page.goto(`${DEVICE}/share`);
  await page.getByLabel("Everything it offers").check();
  await page.getByLabel("Name of the person or client").fill("No scripts");
  await page.getByRole("button", { name: "Share" }).click();
  expect(await page.getByRole("region", { name: "token", exact: true }).innerText()).toMatch(/^eyJ/);

  const running = postTool(all.stack, "firmware_update", { ms: 60_000 }).then(answerOf);
  await expect
    .poll(async () => {
      await page.goto(DEVICE);
      return await page.locator("#live-calls > li").count();
    })
    .toBe(1);
  await page.getByRole("button", { name: "Cancel" }).click();
  expect(await page.getByText("Cancelled.").isVisible()).toBe(true);
  expect(await running).toMatchObject({ error: { data: { reason: "cancelled" } } });
  await context.close();
});

test("a change that another site's page asks for is refused", async () => {
  const context = await ownerContext(all);
  const ask = (origin: string | undefined) =>
    context.request.post(`${DEVICE}/remove`, { form: {}, headers: origin === undefined ? {} : { Origin: origin }, maxRedirects: 0 });
  for (const origin of ["https://evil.example", undefined]) expect((await ask(origin)).status()).toBe(403);
  expect((await context.request.get(DEVICE)).status()).toBe(200);
  await context.close();
});
