/** The official client's whole OAuth flow against a real relay and a real device, with a person in a real browser. */
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { authorized, type Callback, connectWithOAuth, MemoryProvider, startCallback } from "../support/oauth-client.ts";
import { startProcess } from "../support/processes.ts";
import { longline } from "../support/relay-process.ts";
import { FIXTURE_STDIO, startStack, type Stack } from "../support/stack.ts";
import { freePort } from "../support/tcp-proxy.ts";
import { startChromium } from "./chromium.ts";

let stack: Stack;
let browser: Browser;
let callback: Callback;
let context: BrowserContext;

beforeAll(async () => {
  browser = await startChromium();
  stack = await startStack({ agent: ["--", ...FIXTURE_STDIO] });
  callback = await startCallback();
});
afterAll(async () => {
  await browser?.close();
  await callback?.stop();
  await stack?.stop();
});
beforeEach(async () => {
  context = await browser.newContext();
});
afterEach(() => context.close());

const TEXT = "test_simple_text";
const IMAGE = "test_image_content";

/** Opens the page of an authorization request, signs in if the relay asks, does what `act` says, and waits for the answer. */
async function visit(url: URL, act: (page: Page) => Promise<void>): Promise<URLSearchParams> {
  const page = await context.newPage();
  await page.goto(url.href);
  if (new URL(page.url()).pathname === "/sign-in") {
    await page.getByLabel("Owner token").fill(stack.relay.ownerToken);
    await page.getByRole("button", { name: "Sign in", exact: true }).click();
  }
  await page.waitForURL((at) => at.pathname === "/oauth/authorize");
  await act(page);
  const params = await callback.next();
  // A page that is closed on its way can keep Chromium busy for minutes.
  await page.waitForURL((at) => at.pathname === "/callback");
  await page.close();
  return params;
}

function allowOnly(...tools: readonly string[]): (url: URL) => Promise<URLSearchParams> {
  return (url) =>
    visit(url, async (page) => {
      for (const box of await page.locator('input[name="tool"]').all())
        await box.setChecked(tools.includes((await box.getAttribute("value")) ?? ""));
      await page.getByRole("button", { name: "Allow" }).click();
    });
}

const decline = (url: URL): Promise<URLSearchParams> => visit(url, (page) => page.getByRole("button", { name: "Decline" }).click());

/** Nobody decides: the relay answers by itself. */
async function nobody(url: URL): Promise<URLSearchParams> {
  const page = await context.newPage();
  await page.goto(url.href);
  const params = await callback.next();
  await page.close();
  return params;
}

async function revoke(provider: MemoryProvider, token: string): Promise<Response> {
  return await fetch(`${stack.relay.url}/oauth/revoke`, {
    method: "POST",
    headers: { "Content-Type": "application/x-www-form-urlencoded" },
    body: new URLSearchParams({ token, client_id: provider.info?.client_id ?? "" }),
  });
}

describe("the official client", () => {
  test("discovers, registers, gets consent, calls, refreshes, steps up and is revoked", async () => {
    const provider = new MemoryProvider(callback.url);
    const { client, transport } = await connectWithOAuth(stack.mcpUrl, provider, (url) =>
      visit(url, async (page) => {
        expect(await page.locator("#client").textContent()).toBe("Official Client");
        expect(await page.locator("#redirect").textContent()).toBe(new URL(callback.url).host);
        expect(await page.locator("#device").textContent()).toBe(stack.device);
        for (const box of await page.locator('input[name="tool"]').all()) await box.setChecked((await box.getAttribute("value")) === TEXT);
        await page.getByRole("button", { name: "Allow" }).click();
      }),
    );
    expect((await client.listTools()).tools.map((tool) => tool.name)).toEqual([TEXT]);
    expect((await client.callTool({ name: TEXT, arguments: {} })).isError).not.toBe(true);

    // The access token is gone; the client renews it without a person.
    const first = provider.stored;
    if (first === undefined) throw new Error("the client has no tokens");
    provider.stored = { ...first, access_token: "expired" };
    expect((await client.callTool({ name: TEXT, arguments: {} })).isError).not.toBe(true);
    expect(provider.stored.refresh_token).not.toBe(first.refresh_token);
    expect(provider.sent).toHaveLength(1);

    // A tool beyond the grant leads to one more question, which names it.
    const image = await authorized({ transport }, provider, allowOnly(TEXT, IMAGE), () => client.callTool({ name: IMAGE, arguments: {} }));
    expect(JSON.stringify(image.content)).toContain("image/png");
    expect(provider.sent).toHaveLength(2);
    expect(provider.sent[1]?.searchParams.get("scope")).toContain(`tool:${IMAGE}`);

    const refreshToken = provider.stored.refresh_token ?? "";
    expect((await revoke(provider, refreshToken)).status).toBe(200);
    await expect(client.callTool({ name: TEXT, arguments: {} })).rejects.toThrow();
    // 401, no refresh, so it would have to ask again.
    expect(provider.sent).toHaveLength(3);
    await client.close();
  });

  test("a tool that is declined does not loop", async () => {
    const provider = new MemoryProvider(callback.url);
    const { client, transport } = await connectWithOAuth(stack.mcpUrl, provider, allowOnly(TEXT));
    const asked = authorized({ transport }, provider, allowOnly(TEXT), () => client.callTool({ name: IMAGE, arguments: {} }));
    await expect(asked).rejects.toThrow(/unknown|not found|no such/i);
    expect(provider.sent).toHaveLength(2);
    await expect(client.callTool({ name: IMAGE, arguments: {} })).rejects.toThrow(/unknown|not found|no such/i);
    expect(provider.sent).toHaveLength(2);
    expect((await client.callTool({ name: TEXT, arguments: {} })).isError).not.toBe(true);
    await client.close();
  });

  test("a person who declines ends it, and a client that asks again at once bothers nobody", async () => {
    const provider = new MemoryProvider(callback.url);
    const { client } = await connectWithOAuth(stack.mcpUrl, provider, allowOnly(TEXT));
    await expect(client.callTool({ name: IMAGE, arguments: {} })).rejects.toThrow();
    const url = provider.sent[1];
    if (url === undefined) throw new Error("the client did not ask");
    expect((await decline(url)).get("error")).toBe("access_denied");
    expect((await nobody(url)).get("error")).toBe("access_denied");
    await client.close();
  });

  test("`longline token revoke` ends what was given in the browser", async () => {
    const provider = new MemoryProvider(callback.url);
    const { client } = await connectWithOAuth(stack.mcpUrl, provider, allowOnly(TEXT));
    const [, payload = ""] = (provider.stored?.access_token ?? "").split(".");
    const { grant } = JSON.parse(Buffer.from(payload, "base64url").toString("utf8")) as { grant: string };
    const { code } = await longline(["token", "revoke", grant], { env: stack.relay.env });
    expect(code).toBe(0);
    await expect(client.callTool({ name: TEXT, arguments: {} })).rejects.toThrow();
    expect(provider.sent).toHaveLength(2);
    await client.close();
  });
});

test("the consent page works without scripts, and cannot be put into a frame", async () => {
  const provider = new MemoryProvider(callback.url);
  await context.close();
  context = await browser.newContext({ javaScriptEnabled: false });
  const { client } = await connectWithOAuth(stack.mcpUrl, provider, allowOnly(TEXT));
  await client.close();
  await context.close();

  context = await browser.newContext();
  const page = await context.newPage();
  // A page of the same site: its frames have the relay's cookies.
  await page.route(new URL("/", callback.url).href, (route) =>
    route.fulfill({ contentType: "text/html", body: `<iframe src="${(provider.sent[0]?.href ?? "").replaceAll("&", "&amp;")}"></iframe>` }),
  );
  await page.goto(new URL("/", callback.url).href);
  await expect.poll(() => page.frames().map((frame) => frame.url())).toContain("chrome-error://chromewebdata/");
});

test("the conformance suite's authorization scenarios pass", async () => {
  const port = await freePort();
  const registered = await fetch(`${stack.relay.url}/oauth/register`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({
      client_name: "Suite",
      redirect_uris: [`http://127.0.0.1:${port}/callback`],
      token_endpoint_auth_method: "none",
    }),
  });
  const { client_id: clientId } = (await registered.json()) as { client_id: string };
  const suite = startProcess(process.execPath, [
    join(import.meta.dirname, "../../node_modules/@modelcontextprotocol/conformance/dist/index.js"),
    "authorization",
    "--url",
    stack.relay.url,
    "--client-id",
    clientId,
    "--resource",
    stack.mcpUrl,
    "--port",
    String(port),
  ]);
  try {
    const url = await suite.line("stdout", (line) => line.startsWith(`${stack.relay.url}/oauth/authorize?`));
    const page = await context.newPage();
    await page.goto(url);
    await page.getByLabel("Owner token").fill(stack.relay.ownerToken);
    await page.getByRole("button", { name: "Sign in", exact: true }).click();
    await page.getByRole("button", { name: "Allow" }).click();
    expect((await suite.ended()).code).toBe(0);
    expect(suite.output.stdout).toContain("authorization-server-metadata-endpoint: 2 passed, 0 failed");
    expect(suite.output.stdout).toContain("authorization-code-grant: 1 passed, 0 failed");
  } finally {
    await suite.stop();
  }
});
