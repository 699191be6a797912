/** A relay that is asked to stop: what is in flight ends first, and the agent is back by itself after the next start. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { modernRequest, readMessages } from "../support/clients.ts";
import { counting } from "../support/counting.ts";
import { EventReader } from "../support/event-reader.ts";
import { LegacySession } from "../support/legacy-session.ts";
import { eventually, temporaryDir } from "../support/processes.ts";
import { longline, startAgent, startRelay, type AgentProcess, type RelayProcess } from "../support/relay-process.ts";
import { FIXTURE_STDIO } from "../support/stack.ts";

let dir: Awaited<ReturnType<typeof temporaryDir>>;
let relay: RelayProcess;
let agent: AgentProcess | undefined;

beforeEach(async () => {
  dir = await temporaryDir();
  relay = await startRelay({ dataDir: `${dir.path}/data` });
});

afterEach(async () => {
  await agent?.stop();
  agent = undefined;
  await relay.stop();
  await dir.remove();
});

test("SIGTERM lets a call in flight end, refuses new ones as not started, and the agent comes back after a restart", async () => {
  const { args, runs } = counting(dir.path);
  const { deviceKey, mcpUrl } = await relay.addDevice("pi");
  const { token } = await relay.createToken("pi");
  agent = await startAgent({ relay: relay.url, deviceKey, args });
  const call = (key: string, ms: number) =>
    fetch(mcpUrl, modernRequest(token, "tools/call", { name: "count", arguments: { key, ms } })).then(readMessages);

  const slow = call("slow", 2_500);
  await eventually("the slow call runs", () => runs("slow") === 1);
  const stopped = relay.process.stop();
  const refused = await eventually("a call is refused because the relay leaves", async () => {
    const [answer] = await call("new", 0);
    return answer?.["error"] === undefined ? undefined : answer["error"];
  });
  expect(refused).toMatchObject({ code: 1006, data: { outcome: "not_started", reason: "rate_limited", retryAfterMs: expect.any(Number) } });
  expect((await slow).at(-1)).toMatchObject({ result: { content: [{ text: "slow::slow" }] } });
  expect(await stopped).toEqual({ code: 0, signal: null });
  expect(runs("slow")).toBe(1);

  relay = await startRelay({ dataDir: `${dir.path}/data` });
  await eventually("the agent is online again", async () => {
    const { stdout } = await longline(["status", "pi", "--json"], { env: relay.env });
    return (JSON.parse(stdout) as { state: string }).state === "online";
  });
  expect((await call("after", 0)).at(-1)).toMatchObject({ result: { content: [{ text: "after::after" }] } });
});

test.each(["online", "away"])("SIGTERM ends listeners of both eras in order while the device is %s", async (state) => {
  const { deviceKey, mcpUrl } = await relay.addDevice("pi");
  const { token } = await relay.createToken("pi");
  agent = await startAgent({ relay: relay.url, deviceKey, args: ["--", ...FIXTURE_STDIO] });
  const session = await LegacySession.open(mcpUrl, token);
  if (state === "away") await agent.stop();
  const request = modernRequest(token, "subscriptions/listen", { notifications: { toolsListChanged: true } }, { id: "L1" });
  const listener = new EventReader(await fetch(mcpUrl, request));
  expect(await listener.next()).toMatchObject({ method: "notifications/subscriptions/acknowledged" });
  const stream = await session.stream();
  expect(await stream.block()).toBe(":");

  const stopped = relay.process.stop();
  expect(await listener.next()).toEqual({
    jsonrpc: "2.0",
    id: "L1",
    result: { resultType: "complete", _meta: { "io.modelcontextprotocol/subscriptionId": "L1" } },
  });
  // A connection that was broken off would reject here.
  expect(await listener.next()).toBeNull();
  expect(await stream.next()).toBeNull();
  expect(await stopped).toEqual({ code: 0, signal: null });
});

test("a call that outlasts the relay's time is told that the relay stopped, before its connection ends", async () => {
  const { args, runs } = counting(dir.path);
  const { deviceKey, mcpUrl } = await relay.addDevice("pi");
  const { token } = await relay.createToken("pi");
  agent = await startAgent({ relay: relay.url, deviceKey, args });
  const slow = fetch(mcpUrl, modernRequest(token, "tools/call", { name: "count", arguments: { key: "slow", ms: 60_000 } })).then(
    readMessages,
  );
  await eventually("the slow call runs", () => runs("slow") === 1);
  expect(await relay.process.stop()).toEqual({ code: 0, signal: null });
  expect((await slow).at(-1)).toMatchObject({ error: { code: 1003, data: { reason: "tunnel_lost", outcome: "unknown" } } });
});

test("SIGINT on the agent lets a short call end and tells the caller of a long one at once", async () => {
  const { args, runs } = counting(dir.path);
  const { deviceKey, mcpUrl } = await relay.addDevice("pi");
  const { token } = await relay.createToken("pi");
  agent = await startAgent({ relay: relay.url, deviceKey, args });
  const call = (key: string, ms: number) =>
    fetch(mcpUrl, modernRequest(token, "tools/call", { name: "count", arguments: { key, ms } })).then(readMessages);
  const [short, long] = [call("short", 700), call("long", 60_000)];
  await eventually("both calls run", () => runs("short") + runs("long") === 2);
  agent.process.child.kill("SIGINT");
  expect((await short).at(-1)).toMatchObject({ result: { content: [{ text: "short::short" }] } });
  expect((await long).at(-1)).toMatchObject({ error: { code: 1004, data: { reason: "agent_restarted", outcome: "unknown" } } });
  expect(await agent.process.ended()).toEqual({ code: 0, signal: null });
  const [late] = await call("late", 0);
  expect(late).toMatchObject({ error: { data: { reason: "device_offline", outcome: "not_started" } } });
});

test("SIGTERM without a call in flight does not wait", async () => {
  const { args } = counting(dir.path);
  const { deviceKey } = await relay.addDevice("pi");
  agent = await startAgent({ relay: relay.url, deviceKey, args });
  // The whole of the time that calls would get is TUNNEL.drainMs; an end within it shows that nobody waited.
  expect(await relay.process.stop(4_000)).toEqual({ code: 0, signal: null });
});
