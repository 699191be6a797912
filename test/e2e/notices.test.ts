/** Change notices end to end: official clients of both generations hear what a device tells, through a real relay and agent. */
import { ToolListChangedNotificationSchema, ResourceUpdatedNotificationSchema } from "@modelcontextprotocol/sdk/types.js";
import type { Client as ClientV1 } from "@modelcontextprotocol/sdk/client/index.js";
import type { Client as ClientV2, VersionNegotiationMode } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { rawServer } from "../agent/raw-server.ts";
import { connectV1, connectV2, modernRequest } from "../support/clients.ts";
import { within } from "../support/deadline.ts";
import { EventReader } from "../support/event-reader.ts";
import { eventually } from "../support/processes.ts";
import { longline, startAgent } from "../support/relay-process.ts";
import { FIXTURE_STACKS, startStack } from "../support/stack.ts";
import type { Stack } from "../support/stack.ts";

const SOON_MS = 10_000;
const SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId";

/** Counts what comes; waits until there is more than before. */
class Heard {
  readonly all: unknown[] = [];
  readonly take = (message: unknown): void => {
    this.all.push(message);
  };

  async more(than: number): Promise<void> {
    await eventually("a notice", () => this.all.length > than);
  }
}

async function listening(stack: Stack, notifications: object, id: unknown = "L1"): Promise<EventReader> {
  const response = await fetch(stack.mcpUrl, modernRequest(stack.token, "subscriptions/listen", { notifications }, { id }));
  expect(response.status).toBe(200);
  return new EventReader(response);
}

describe.each(FIXTURE_STACKS)("with $name behind it", ({ start }) => {
  let stack: Stack;
  beforeAll(async () => {
    stack = await start();
  });
  afterAll(() => stack?.stop());

  const trigger = async (name = "test_trigger_tool_change"): Promise<void> => {
    const response = await fetch(stack.mcpUrl, modernRequest(stack.token, "tools/call", { name, arguments: {} }));
    expect(await response.text()).toContain("published");
  };

  test("three listeners each hear of a change under their own id, and of nothing they did not ask for", async () => {
    const readers = [
      await listening(stack, { toolsListChanged: true }, 7),
      await listening(stack, { toolsListChanged: true, promptsListChanged: true }, "7"),
      await listening(stack, { promptsListChanged: true }, 0),
    ];
    for (const reader of readers) expect(await reader.next()).toMatchObject({ method: "notifications/subscriptions/acknowledged" });
    await trigger();
    await trigger("test_trigger_prompt_change");
    const expected = [
      [7, "tools"],
      ["7", "tools"],
      ["7", "prompts"],
      [0, "prompts"],
    ] as const;
    for (const [id, kind] of expected) {
      const reader = readers[[7, "7", 0].indexOf(id)];
      expect(await reader?.next()).toEqual({
        jsonrpc: "2.0",
        method: `notifications/${kind}/list_changed`,
        params: { _meta: { [SUBSCRIPTION]: id } },
      });
    }
    for (const reader of readers) await reader.cancel();
  });

  test.each([
    ["pinned to 2026-07-28", { pin: "2026-07-28" }],
    ["auto", "auto"],
  ] as [string, VersionNegotiationMode][])("the 2.x client, %s, listens, and ends its listener alone", async (_name, mode) => {
    const client = await connectV2(stack.mcpUrl, stack.token, mode);
    expect(client.getServerCapabilities()).toMatchObject({ tools: { listChanged: true }, resources: { subscribe: true } });
    const heard = new Heard();
    client.setNotificationHandler("notifications/tools/list_changed", heard.take);
    const subscription = await client.listen({ toolsListChanged: true, resourceSubscriptions: ["test://watched-resource"] });
    expect(subscription.honoredFilter).toMatchObject({ toolsListChanged: true, resourceSubscriptions: ["test://watched-resource"] });
    await trigger();
    await heard.more(0);
    await subscription.close();
    expect(await subscription.closed).toBe("local");
    expect((await client.listTools()).tools.length).toBeGreaterThan(0);
    await client.close();
  });

  test("the 1.x client hears of changes on its session's own stream, and subscribes", async () => {
    const client = await connectV1(stack.mcpUrl, stack.token);
    expect(client.getServerCapabilities()).toMatchObject({ tools: { listChanged: true }, resources: { subscribe: true } });
    const heard = new Heard();
    client.setNotificationHandler(ToolListChangedNotificationSchema, heard.take);
    await client.subscribeResource({ uri: "test://watched-resource" });
    // The client opens its stream without telling when it stands.
    await eventually("a notice", async () => {
      await trigger();
      return heard.all.length > 0;
    });
    await client.unsubscribeResource({ uri: "test://watched-resource" });
    await client.close();
  });
});

/** A tool server whose tool `grow` adds a tool, and whose tool `touch` updates a resource. */
const GROWING = rawServer(`
  server.capabilities = { tools: { listChanged: true }, resources: { subscribe: true } };
  const named = (name) => ({ name, inputSchema: { type: "object" } });
  server.tools = ["grow", "touch", ...process.argv.slice(1)].map(named);
  on("resources/subscribe", (m) => reply(m.id, {})); on("resources/unsubscribe", (m) => reply(m.id, {}));
  tool((m) => {
    if (m.params.name === "grow") { server.tools = [...server.tools, named("grown")]; send({ method: "notifications/tools/list_changed" }); }
    if (m.params.name === "touch") send({ method: "notifications/resources/updated", params: { uri: "file:///dir/part" } });
    reply(m.id, text("ok"));
  });
`);
const command = (...more: string[]): string[] => ["--isolation", "shared", "--", process.execPath, "-e", GROWING, ...more];

describe("with a server that changes behind it", () => {
  let stack: Stack;
  beforeAll(async () => {
    stack = await startStack({ agent: command() });
  });
  afterAll(() => stack?.stop());

  const call = async (name: string): Promise<void> => {
    const response = await fetch(stack.mcpUrl, modernRequest(stack.token, "tools/call", { name, arguments: {} }));
    expect(await response.text()).toContain("ok");
  };
  const toolNames = async (): Promise<string[]> => {
    const response = await fetch(stack.mcpUrl, modernRequest(stack.token, "tools/list"));
    return ((await response.json()) as { result: { tools: { name: string }[] } }).result.tools.map((tool) => tool.name);
  };

  test("the list is right on the next request, and everybody who listens is told of it", async () => {
    const clients: [ClientV1, ClientV2] = [await connectV1(stack.mcpUrl, stack.token), await connectV2(stack.mcpUrl, stack.token, "auto")];
    const [old, young] = clients;
    const [atOld, atYoung] = [new Heard(), new Heard()];
    old.setNotificationHandler(ToolListChangedNotificationSchema, atOld.take);
    young.setNotificationHandler("notifications/tools/list_changed", atYoung.take);
    await young.listen({ toolsListChanged: true });
    await call("grow");
    expect(await toolNames()).toContain("grown");
    await atYoung.more(0);
    await eventually("a notice on the session's stream", async () => {
      await call("grow");
      return atOld.all.length > 0;
    });
    expect((await old.listTools()).tools.map((tool) => tool.name)).toContain("grown");
    for (const client of clients) await client.close();
  });

  test("updates reach whoever subscribed, in both eras, and nobody else", async () => {
    const old = await connectV1(stack.mcpUrl, stack.token);
    const idle = await connectV1(stack.mcpUrl, stack.token);
    const [atOld, atIdle] = [new Heard(), new Heard()];
    old.setNotificationHandler(ResourceUpdatedNotificationSchema, atOld.take);
    idle.setNotificationHandler(ResourceUpdatedNotificationSchema, atIdle.take);
    await old.subscribeResource({ uri: "file:///dir" });
    const listener = await listening(stack, { resourceSubscriptions: ["file:///dir"] });
    expect(await listener.next()).toMatchObject({ params: { notifications: { resourceSubscriptions: ["file:///dir"] } } });
    await eventually("an update on the session's stream", async () => {
      await call("touch");
      return atOld.all.length > 0;
    });
    expect(await listener.next()).toMatchObject({ method: "notifications/resources/updated", params: { uri: "file:///dir/part" } });
    await old.unsubscribeResource({ uri: "file:///dir" });
    // The listener's own subscription is its own.
    await call("touch");
    expect(await listener.next()).toMatchObject({ method: "notifications/resources/updated" });
    expect(atIdle.all).toEqual([]);
    await listener.cancel();
    await old.close();
    await idle.close();
  });

  test("a listener outlives the agent, and hears what is different when it is back", async () => {
    const listener = await listening(stack, { toolsListChanged: true, resourceSubscriptions: ["file:///dir"] });
    await listener.next();
    await stack.agent.stop();
    const agent = await startAgent({ relay: stack.relay.url, deviceKey: stack.deviceKey, args: command("another") });
    expect(await listener.next()).toMatchObject({ method: "notifications/tools/list_changed" });
    expect(await toolNames()).toContain("another");
    await eventually("a call", async () => {
      await call("touch");
      return true;
    });
    expect(await listener.next()).toMatchObject({ method: "notifications/resources/updated", params: { uri: "file:///dir/part" } });
    await listener.cancel();
    await agent.stop();
  });

  test("revoking the token ends its listeners with the closing result, and its sessions' streams", async () => {
    const listener = await listening(stack, { toolsListChanged: true }, "bye");
    await listener.next();
    const initialize = {
      jsonrpc: "2.0",
      id: 0,
      method: "initialize",
      params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "c", version: "1" } },
    };
    const headers = {
      authorization: `Bearer ${stack.token}`,
      accept: "application/json, text/event-stream",
      "content-type": "application/json",
    };
    const opened = await fetch(stack.mcpUrl, { method: "POST", headers, body: JSON.stringify(initialize) });
    const session = opened.headers.get("mcp-session-id") ?? "";
    const get = await fetch(stack.mcpUrl, { headers: { ...headers, "mcp-session-id": session } });
    expect([get.status, get.headers.get("content-type")]).toEqual([200, "text/event-stream"]);
    const stream = new EventReader(get);
    expect(await stream.block()).toBe(":");
    const revoked = await longline(["token", "revoke", stack.grant], { env: stack.relay.env });
    expect(revoked.code).toBe(0);
    expect(await within(SOON_MS, "the end", listener.next())).toEqual({
      jsonrpc: "2.0",
      id: "bye",
      result: { resultType: "complete", _meta: { [SUBSCRIPTION]: "bye" } },
    });
    expect(await listener.next()).toBeNull();
    expect(await stream.next()).toBeNull();
  });
});
