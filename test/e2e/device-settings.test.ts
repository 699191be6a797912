/** `longline device set`: an owner switches a rule off for one device, sees it in `status`, and switches it on again. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { longline, startRelay, type RelayProcess } from "../support/relay-process.ts";

let relay: RelayProcess;
beforeAll(async () => {
  relay = await startRelay();
});
afterAll(() => relay?.stop());

test("a switch is in force with the next request, and shown", async () => {
  const { mcpUrl } = await relay.addDevice("phone");
  const { token } = await relay.createToken("phone");
  const ping = async () =>
    await fetch(mcpUrl, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json", "mcp-protocol-version": "2026-07-28" },
      body: '{"jsonrpc":"2.0","id":1,"method":"ping"}',
    });
  const run = (...args: string[]) => longline(["device", "set", "phone", ...args], { env: relay.env });
  expect((await ping()).status).toBe(400);

  const set = await run("--switch", "headerOnlyModern=on", "--switch", "initializedModern=on", "--session-expiry", "strict", "--json");
  expect(set.code, set.stderr).toBe(0);
  const settings = { headerOnlyModern: true, initializedModern: true, sessionExpiry: "strict" };
  expect(JSON.parse(set.stdout)).toEqual({ device: "phone", settings });
  expect((await ping()).status).toBe(200);
  const { stdout } = await longline(["status", "phone"], { env: relay.env });
  expect(stdout).toMatch(/switches +headerOnlyModern, initializedModern/);
  expect(stdout).toMatch(/sessions end +strict/);

  expect((await run("--switch", "headerOnlyModern=off")).stdout).toMatch(/switches +initializedModern\nsession expiry +strict/);
  expect((await ping()).status).toBe(400);
});

test.each([
  [["--switch", "headerOnlyModern"], "--switch takes NAME=on or NAME=off"],
  [["--switch", "other=on"], "--switch takes NAME=on or NAME=off"],
  [["--session-expiry", "never"], "--session-expiry takes sleep or strict"],
  [[], "Name a setting"],
])("%j is refused with one line that says what to do", async (args, text) => {
  const { code, stdout, stderr } = await longline(["device", "set", "phone", ...args], { env: relay.env });
  expect([code, stdout]).toEqual([2, ""]);
  expect(stderr.trim().split("\n")).toEqual([expect.stringContaining(text)]);
});
