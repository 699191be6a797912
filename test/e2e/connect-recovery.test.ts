/** `longline connect` when the relay restarts, or gave its session up: its client does not notice. */
import { expect, test } from "vitest";
import { runningRelay } from "../../src/serve/lock.ts";
import { startAgent, startRelay } from "../support/relay-process.ts";
import { startSessionSpy } from "../support/session-spy.ts";
import { FIXTURE_STDIO } from "../support/stack.ts";
import { stdioV1, stdioV2 } from "../support/stdio-clients.ts";

test("a session that is gone is opened again, and the client does not notice", async () => {
  const gate = await startSessionSpy();
  const relay = await startRelay({ args: ["--origin", gate.url] });
  const local = runningRelay(relay.dataDir) ?? "";
  gate.target(local);
  const { deviceKey, mcpUrl } = await relay.addDevice("pi");
  const { token } = await relay.createToken("pi");
  const agent = await startAgent({ relay: local, deviceKey, args: ["--", ...FIXTURE_STDIO] });
  const client = await stdioV1({ mcpUrl, env: { LONGLINE_TOKEN: token } });
  await client.setLoggingLevel("warning");
  const [session] = gate.sessions;
  const ended = await fetch(mcpUrl, { method: "DELETE", headers: { authorization: `Bearer ${token}`, "mcp-session-id": session ?? "" } });
  expect(ended.ok).toBe(true);
  const { content } = await client.callTool({ name: "test_simple_text", arguments: {} });
  expect(JSON.stringify(content)).toContain("simple text");
  expect(gate.sessions).toHaveLength(2);
  await client.close();
  await agent.stop();
  await relay.stop();
  await gate.stop();
});

test("clients of both eras go on after a restart of the relay, and a call in between waits for it", async () => {
  const first = await startRelay();
  const { deviceKey, mcpUrl } = await first.addDevice("pi");
  const { token } = await first.createToken("pi");
  const stack = { mcpUrl, env: { LONGLINE_TOKEN: token } };
  const agent = await startAgent({ relay: first.url, deviceKey, args: ["--", ...FIXTURE_STDIO] });
  const old = await stdioV1(stack);
  const modern = await stdioV2(stack, { pin: "2026-07-28" });
  for (const client of [old, modern]) expect((await client.listTools()).tools.length).toBeGreaterThan(0);
  await first.process.stop();
  const between = Promise.all([old.listTools(), modern.listTools()]);
  const second = await startRelay({ dataDir: first.dataDir, args: ["--port", new URL(first.url).port] });
  for (const { tools } of await between) expect(tools.length).toBeGreaterThan(0);
  await agent.process.line("stderr", (text) => text.includes("online as"));
  for (const client of [old, modern]) {
    const called = async () => await client.callTool({ name: "test_simple_text", arguments: {} });
    await expect.poll(async () => JSON.stringify(await called().catch(() => null)), { timeout: 20_000 }).toContain("simple text");
    await client.close();
  }
  await agent.stop();
  await second.stop();
  await first.stop();
});
