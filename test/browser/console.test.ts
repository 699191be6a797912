/** The console in a real browser, against a real relay and a real device. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { BrowserContext, Page } from "playwright-core";
import { answerOf, postTool } from "../support/modern-call.ts";
import { type ConsoleStack, DEVICE, ownerContext, startConsole, watchedPage } from "./console-stack.ts";

let all: ConsoleStack;
let context: BrowserContext;
let page: Page;
let complaints: string[];

beforeAll(async () => {
  all = await startConsole();
});
afterAll(() => all?.stop());
beforeEach(async () => {
  context = await ownerContext(all);
  ({ page, complaints } = await watchedPage(context));
});
afterEach(async () => {
  await context.close();
  expect(complaints).toEqual([]);
});

/** The page's text, as a person reads it. */
const words = async (): Promise<string> => (await page.locator("main").innerText()).replace(/\s+/g, " ");

async function press(name: string | RegExp): Promise<void> {
  await page.getByRole("button", { name }).click();
}

/** Shares the device for a label, with these tools ticked, and gives the token that is shown. */
async function shareToken(label: string, tools: readonly string[]): Promise<string> {
  await page.goto(`${DEVICE}/share`);
  await page.getByLabel("Name of the person or client").fill(label);
  for (const tool of tools) await page.locator(`input[name="tool"][value="${tool}"]`).check();
  await press("Share");
  return await page.getByRole("region", { name: "token", exact: true }).innerText();
}

const callWith = async (token: string, tool: string, args: Record<string, unknown> = {}) =>
  answerOf(await postTool({ mcpUrl: all.stack.mcpUrl, token }, tool, args));

describe("sharing", () => {
  test("ends in a token for the picked tools, shown once, with set-up for each client and who cannot reach this relay", async () => {
    const token = await shareToken("Ada's laptop", ["climate_read"]);
    const result = await callWith(token, "climate_read");
    expect(result).toMatchObject({ result: { structuredContent: { celsius: 21.5 } } });
    expect(await callWith(token, "lamp_set", { room: "study", on: true })).toHaveProperty("error");

    const clients = await page.locator("details.entry").evaluateAll((entries) => entries.map((entry) => entry.getAttribute("data-client")));
    expect(clients).toEqual(["claude-code", "vscode", "cursor", "codex", "gemini", "json", "claude", "chatgpt"]);
    expect(await page.locator("details.entry", { hasText: "cannot reach this relay" }).count()).toBe(2);
    expect(await page.locator('[data-client="claude-code"] pre').innerText()).toContain(
      `${all.stack.mcpUrl} --header "Authorization: Bearer ${token}"`,
    );

    await page.goto(DEVICE);
    expect(await words()).toContain("Ada's laptop Active tools: climate_read");
    expect(await page.content()).not.toContain(token);
  });

  test("ends in an invitation link, with which a member sees their own part only", async () => {
    await page.goto(`${DEVICE}/share`);
    await page.getByLabel("An invitation link").check();
    await page.getByLabel("Name of the person or client").fill("Grace");
    await page.locator('input[name="tool"][value="lamp_set"]').check();
    await press("Share");
    const link = await page.getByRole("region", { name: "invitation link" }).innerText();

    const guest = await all.browser.newContext({ baseURL: all.stack.relay.url });
    const theirs = await watchedPage(guest);
    await theirs.page.goto(link);
    await theirs.page.getByLabel("Your name").fill("Grace");
    await theirs.page.getByRole("button", { name: "Accept" }).click();
    await theirs.page.waitForURL("**/console");
    await theirs.page.getByRole("link", { name: "bench" }).click();
    expect(await theirs.page.getByRole("heading", { name: "Your access" }).isVisible()).toBe(true);
    expect(await theirs.page.getByRole("link", { name: /Share|Remove|Edit|People/ }).count()).toBe(0);
    for (const path of ["/console/people", `${DEVICE}/share`, `${DEVICE}/remove`])
      expect((await theirs.page.goto(path))?.status()).toBe(403);
    expect((await theirs.page.goto(`${DEVICE}/try?tool=door_unlock`))?.status()).toBe(404);
    expect((await theirs.page.goto("/console/audit"))?.status()).toBe(200);
    expect(await theirs.page.locator("main").innerText()).not.toContain("invitation.create");
    await guest.close();

    await page.goto("/console/people");
    expect(await words()).toContain("Grace 0 grants, 1 browser signed in");
    await page.getByRole("link", { name: "Remove Grace" }).click();
    await press("Remove Grace");
    expect(await words()).toContain("Removed.");
    expect(await page.getByRole("link", { name: "Remove Grace" }).count()).toBe(0);
  });

  test("says what is missing, and keeps what was typed", async () => {
    await page.goto(`${DEVICE}/share`);
    await page.getByLabel("Name of the person or client").fill("Nobody");
    await press("Share");
    expect(await page.getByRole("alert").innerText()).toBe("Pick at least one tool, or choose everything.");
    expect(await page.getByLabel("Name of the person or client").inputValue()).toBe("Nobody");
    complaints.length = 0; // Chromium reports the status of the form's answer.
  });
});

describe("a grant", () => {
  test("is edited, paused and, after a question, revoked; each holds at the next call and is in the audit", async () => {
    const token = await shareToken("Robot", ["climate_read"]);
    await page.goto(DEVICE);
    await page.getByRole("link", { name: "Edit Robot" }).click();
    await page.locator('input[name="tool"][value="lamp_set"]').check();
    await press("Save");
    expect(await words()).toContain("Saved.");
    expect(await callWith(token, "lamp_set", { room: "study", on: true })).toHaveProperty("result");

    await press("Pause Robot");
    expect(await callWith(token, "climate_read")).toHaveProperty("error");
    await press("Resume Robot");
    expect(await callWith(token, "climate_read")).toHaveProperty("result");

    await page.getByRole("link", { name: "Revoke Robot" }).click();
    expect(await callWith(token, "climate_read")).toHaveProperty("result");
    await press("Revoke Robot");
    expect(await callWith(token, "climate_read")).toHaveProperty("error");

    await page.goto("/console/audit?device=bench");
    for (const action of ["token.change", "token.pause", "token.resume", "token.revoke"]) expect(await words()).toContain(action);
  });
});

describe("trying a tool", () => {
  const result = () => page.locator("section[data-outcome]");
  const open = (tool: string) => page.goto(`${DEVICE}/try?tool=${tool}`);

  test("has a field for each argument of its schema, and checks what was typed", async () => {
    await open("lamp_set");
    await page.getByLabel("room").selectOption("kitchen");
    await page.getByLabel("on", { exact: true }).selectOption("true");
    expect(await page.getByLabel("brightness").inputValue()).toBe("60");
    await page.getByLabel("colour").fill("{hue");
    await press("Call it");
    expect(await page.getByRole("alert").innerText()).toBe("“colour” must be JSON.");
    await page.getByLabel("colour").fill('{"hue": 30}');
    await page.getByLabel("Note for the log").fill("evening");
    await press("Call it");
    expect(await result().locator("pre").innerText()).toBe("kitchen: on at 60 %, hue 30\n  note: evening");
    complaints.length = 0; // Chromium reports the status of the form's answer.
  });

  test("shows structured content and raster images, and names what it does not show", async () => {
    await open("climate_read");
    await press("Call it");
    expect(JSON.parse(await page.getByRole("region", { name: "structured result" }).innerText())).toEqual({ celsius: 21.5, humidity: 43 });
    await open("camera_snapshot");
    await press("Call it");
    expect(await page.locator("img.result").evaluate((image: { naturalWidth: number }) => image.naturalWidth)).toBe(480);
    await open("drawing_read");
    await press("Call it");
    expect(await result().locator("img").count()).toBe(0);
    expect(await result().innerText()).toContain("image content of type image/svg+xml");
    await open("door_unlock");
    await page.getByLabel("seconds").fill("5");
    await press("Call it");
    expect(await result().innerText()).toContain("The tool reports an error");
  });

  test("prints a device's text without its tricks", async () => {
    await open("hostile_text");
    await press("Call it");
    expect(await result().locator("pre").innerText()).toBe('<script>document.title = "owned"</script>redtxt');
    expect(await page.title()).toBe("Try hostile_text · Longline");
  });
});

describe("the tools of a device", () => {
  test("are marked when they are new since the last look", async () => {
    await page.goto(DEVICE);
    await press(/^Mark/);
    expect(await words()).toContain("Nothing is new since you last looked.");
    await page.goto(`${DEVICE}/try?tool=plugin_add`);
    await press("Call it");
    await expect
      .poll(async () => {
        await page.goto(DEVICE);
        return await page.locator("ul.tools > li").first().innerText();
      })
      .toMatch(/blinds_move\s+New/);
    await press("Mark as seen");
    expect(await page.locator(".badge.new").count()).toBe(0);
  });
});

describe("calls as they happen", () => {
  const row = () => page.locator("#live-calls > li", { hasText: "firmware_update" });

  test("appear with their progress, and are cancelled from the page", async () => {
    await page.goto(DEVICE);
    await page.getByRole("status").getByText("live", { exact: true }).waitFor();
    const running = postTool(all.stack, "firmware_update", { ms: 60_000 }, { meta: { progressToken: "p" } }).then(answerOf);
    await row()
      .getByText(/Writing block \d+ of 100/)
      .waitFor();
    expect(
      await row()
        .locator("progress")
        .evaluate((bar: { value: number }) => bar.value),
    ).toBeGreaterThan(0);
    await row().getByRole("button", { name: "Cancel" }).click();
    await row().getByText("cancelled (caller_asked)").waitFor();
    expect(await running).toMatchObject({ error: { data: { reason: "cancelled" } } });
    await page.goto("/console/audit?device=bench");
    expect(await words()).toContain("call.cancel");
  });

  test("show the agent's leaving and coming back", async () => {
    await page.goto(DEVICE);
    await page.getByRole("status").getByText("live", { exact: true }).waitFor();
    await all.stack.agent.stop();
    await page.getByRole("status").getByText("live; the device went away").waitFor();
    expect(await page.locator("h1").innerText()).toContain("Offline");
    await page.reload();
    expect(await page.locator("h1").innerText()).toContain("Offline");
    all.stack.agent = await all.restartAgent();
    await page.getByRole("status").getByText("live; the device is back").waitFor();
  });
});

describe("the audit", () => {
  test("is filtered, plotted with a table beside it, and given as CSV", async () => {
    await page.goto("/console/audit");
    expect(await page.getByRole("img", { name: /calls, \d+ of them failed/ }).isVisible()).toBe(true);
    expect(await page.getByRole("img", { name: /Latency/ }).isVisible()).toBe(true);
    await page.getByText("The same as a table").click();
    const [when, calls] = await page.getByRole("region", { name: "Calls and latency" }).locator("tbody td").allInnerTexts();
    expect(when).toMatch(/^\d\d-\d\d \d\d:00$/);
    expect(Number(calls)).toBeGreaterThan(0);

    await page.getByLabel("Outcome").selectOption("cancelled");
    await press("Show");
    const outcomes = await page.getByRole("region", { name: "Audit rows" }).locator("tbody tr td:nth-child(5) .badge").allInnerTexts();
    expect(new Set(outcomes)).toEqual(new Set(["cancelled"]));
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: "CSV" }).click()]);
    const lines = (await (await download.createReadStream()).toArray()).join("").trim().split("\r\n");
    expect(lines[0]).toMatch(/^at,kind,device,/);
    expect(lines).toHaveLength(1 + outcomes.length);
  });
});

describe("a device", () => {
  test("is paused after a question, resumed, set, and renamed", async () => {
    await page.goto(DEVICE);
    await page.getByRole("link", { name: "Pause", exact: true }).click();
    await press("Pause bench");
    expect(await page.locator("h1").innerText()).toContain("Paused");
    expect(await callWith(all.stack.token, "climate_read")).toHaveProperty("error");
    await press("Resume");
    expect(await callWith(all.stack.token, "climate_read")).toHaveProperty("result");
    await page.getByLabel("An idle session").selectOption("strict");
    await press("Save");
    expect(await page.getByLabel("An idle session").inputValue()).toBe("strict");
    await page.getByLabel("Name").fill("workbench");
    await press("Rename");
    await page.waitForURL("**/console/devices/workbench?*");
    expect(await callWith(all.stack.token, "climate_read")).toHaveProperty("result");
    await page.getByLabel("Name").fill("bench");
    await press("Rename");
    await page.waitForURL("**/console/devices/bench?*");
  });
});
