/** Change notices through the whole Worker: event streams that outlive a sleeping and a lost object. */
import { abortAllDurableObjects, evictAllDurableObjects } from "cloudflare:test";
import { env, exports } from "cloudflare:workers";
import { afterEach, expect, test } from "vitest";
import { EventReader } from "../support/event-reader.ts";
import { addDevice, addToken, startRelay } from "./api-support.ts";
import { Caller, connect, type ScriptedAgent } from "./edge-support.ts";
import { eventually } from "./support/device.ts";
import { catalogueOf } from "./support/listening.ts";

const SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId";
const agents: ScriptedAgent[] = [];
const readers: EventReader[] = [];
afterEach(async () => {
  for (const reader of readers.splice(0)) await reader.cancel();
  for (const agent of agents.splice(0)) agent.close();
});

function reading(response: Response): EventReader {
  const reader = new EventReader(response);
  readers.push(reader);
  return reader;
}

async function online() {
  const relay = await startRelay({ TUNNEL: env.TUNNEL });
  const added = await addDevice(relay);
  const { token, mcpUrl } = await addToken(relay, added.device, { for: "a test" });
  const agent = await dial(added.deviceKey);
  const caller = new Caller(mcpUrl, token);
  const listen = (notifications: object, id: unknown = "L1") => caller.modern("subscriptions/listen", { notifications }, {}, id);
  const get = (session: string) =>
    exports.default.fetch(mcpUrl, {
      headers: { authorization: `Bearer ${token}`, accept: "text/event-stream", "mcp-session-id": session },
    });
  // The catalogue is taken in its turn; from then on the device has something to tell.
  await eventually(async () => {
    const response = await listen({});
    await response.body?.cancel();
    expect(response.status).toBe(200);
  });
  return { relay, added, agent, caller, listen, get, mcpUrl, token };
}

/** An agent that dials in and tells a catalogue with notices. */
async function dial(deviceKey: string, tools: readonly string[] = ["lamp"]): Promise<ScriptedAgent> {
  const agent = await connect(deviceKey);
  agents.push(agent);
  agent.send({ type: "catalogue", digest: tools.join() }, catalogueOf(tools));
  return agent;
}

test("the object sleeps while listeners of both eras wait, and what happens then reaches them", async () => {
  const { agent, caller, listen, get } = await online();
  const modern = reading(await listen({ promptsListChanged: true }));
  expect(await modern.next()).toMatchObject({ params: { notifications: { promptsListChanged: true } } });
  const stream = await get(await caller.open("2025-11-25"));
  expect([stream.status, stream.headers.get("content-type")]).toEqual([200, "text/event-stream"]);
  const legacy = reading(stream);
  expect(await legacy.block()).toBe(":");
  for (let round = 0; round < 2; round += 1) {
    await evictAllDurableObjects();
    agent.send({ type: "changed", what: "prompts" });
    expect(await modern.next()).toEqual({
      jsonrpc: "2.0",
      method: "notifications/prompts/list_changed",
      params: { _meta: { [SUBSCRIPTION]: "L1" } },
    });
    expect(await legacy.next()).toEqual({ jsonrpc: "2.0", method: "notifications/prompts/list_changed" });
  }
});

test("a lost object ends no listener: the stream goes on, with what changed meanwhile", async () => {
  const { added, listen } = await online();
  const modern = reading(await listen({ toolsListChanged: true, promptsListChanged: true }));
  await modern.next();
  await abortAllDurableObjects();
  const agent = await dial(added.deviceKey, ["lamp", "oven"]);
  expect(await modern.next()).toMatchObject({ method: "notifications/tools/list_changed" });
  await eventually(async () => {
    agent.send({ type: "changed", what: "prompts" });
    expect(await modern.next()).toMatchObject({ method: "notifications/prompts/list_changed" });
  });
});

test("a client that leaves takes its listener with it", async () => {
  const { listen } = await online();
  const open: EventReader[] = [];
  const fill = async (): Promise<void> => {
    while (open.length < 16) open.push(new EventReader(await streamed(listen({ toolsListChanged: true }))));
  };
  // Those of before may still be on their way out.
  await eventually(fill);
  expect(await (await listen({ toolsListChanged: true })).json()).toMatchObject({ error: { data: { reason: "rate_limited" } } });
  for (const reader of open.splice(0)) await reader.cancel();
  await eventually(fill);
  for (const reader of open) await reader.cancel();
});

async function streamed(response: Promise<Response>): Promise<Response> {
  const answered = await response;
  if (answered.headers.get("content-type") !== "text/event-stream") throw new Error(await answered.text());
  return answered;
}

test("R117: a session's stream is 404 for who has no such session, and ends with DELETE", async () => {
  const { caller, get, relay, added, mcpUrl } = await online();
  expect((await get("unknown")).status).toBe(404);
  const session = await caller.open("2025-06-18");
  const other = await addToken(relay, added.device, { for: "another" });
  const foreign = await exports.default.fetch(mcpUrl, {
    headers: { authorization: `Bearer ${other.token}`, accept: "text/event-stream", "mcp-session-id": session },
  });
  expect(foreign.status).toBe(404);
  const stream = reading(await get(session));
  await stream.block();
  const deleted = await caller.send(undefined, { "mcp-session-id": session }, { method: "DELETE" });
  expect(deleted.status).toBe(204);
  expect(await stream.next()).toBeNull();
  expect((await get(session)).status).toBe(404);
});
