/** `longline connect` without a token: a browser opens, a person allows it, and the next start needs nobody. */
import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Browser } from "playwright-core";
import { eventually, startProcess, temporaryDir, type RunningProcess } from "../support/processes.ts";
import { FIXTURE_STDIO, startStack, type Stack } from "../support/stack.ts";
import { startChromium } from "./chromium.ts";

const COMMAND = join(import.meta.dirname, "../../bin/longline.cjs");
const META = { "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} };

let stack: Stack;
let browser: Browser;
let dir: Awaited<ReturnType<typeof temporaryDir>>;
let opener: string;
beforeAll(async () => {
  browser = await startChromium();
  stack = await startStack({ agent: ["--", ...FIXTURE_STDIO] });
  dir = await temporaryDir();
  // Stands for the person's browser: notes the address it was asked to open.
  opener = join(dir.path, "browser");
  await writeFile(opener, `#!/bin/sh\nprintf '%s' "$1" >> "${dir.path}/opened"\n`, { mode: 0o755 });
});
afterAll(async () => {
  await browser?.close();
  await stack?.stop();
  await dir?.remove();
});

function start(): RunningProcess {
  return startProcess(process.execPath, [COMMAND, "connect", stack.device, "--relay", stack.relay.url], {
    stdin: "pipe",
    env: { LONGLINE_TOKEN: undefined, BROWSER: opener, XDG_STATE_HOME: join(dir.path, "state") },
  });
}

function list(run: RunningProcess, id: number): void {
  run.child.stdin?.write(`${JSON.stringify({ jsonrpc: "2.0", id, method: "tools/list", params: { _meta: META } })}\n`);
}

const opened = async (): Promise<string> => await readFile(join(dir.path, "opened"), "utf8").catch(() => "");

/** Signs in as the owner and allows what is asked for. */
async function allow(url: string): Promise<void> {
  const page = await (await browser.newContext()).newPage();
  await page.goto(url);
  await page.getByLabel("Owner token").fill(stack.relay.ownerToken);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.waitForURL((at) => at.pathname === "/oauth/authorize");
  expect(await page.locator("#client").textContent()).toBe("longline connect");
  await page.getByRole("button", { name: "Allow" }).click();
  await page.waitForURL((at) => at.pathname === "/callback");
  expect(await page.textContent("body")).toContain("You can close this window");
  await page.close();
}

test("it opens a browser once, keeps what it got in a private file, and renews it by itself", async () => {
  const first = start();
  list(first, 1);
  const url = await eventually("the browser is opened", async () => (await opened()) || undefined);
  expect(first.output.stderr).toContain(url);
  await allow(url);
  expect(JSON.parse(await first.line("stdout", () => true))).toMatchObject({ id: 1, result: { resultType: "complete" } });
  await first.stop();

  const place = `${new URL(stack.relay.url).host}_mcp_${stack.device}`.replaceAll(":", "_");
  const kept = join(dir.path, "state/longline/signed-in", `${place}.json`);
  expect((await stat(kept)).mode & 0o777).toBe(0o600);
  const second = start();
  list(second, 2);
  expect(JSON.parse(await second.line("stdout", () => true))).toMatchObject({ id: 2 });
  await second.stop();

  // An access token that is over is renewed with the refresh token.
  const before = JSON.parse(await readFile(kept, "utf8")) as { tokens: { access_token: string } };
  await writeFile(kept, JSON.stringify({ ...before, expiresAt: Date.now() - 1 }));
  const third = start();
  list(third, 3);
  expect(JSON.parse(await third.line("stdout", () => true))).toMatchObject({ id: 3, result: { resultType: "complete" } });
  const after = JSON.parse(await readFile(kept, "utf8")) as { tokens: { access_token: string } };
  expect(after.tokens.access_token).not.toBe(before.tokens.access_token);
  await third.stop();
  expect(await opened()).toBe(url);
  for (const run of [first, second, third]) expect(run.output.stderr).not.toContain(before.tokens.access_token);
});
