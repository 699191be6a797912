/** Official clients of both generations against real upstreams, through a real relay and a real agent. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Client as ClientV1 } from "@modelcontextprotocol/sdk/client/index.js";
import { connectV1, connectV2, modernRequest, readMessages } from "../support/clients.ts";
import { EVERYTHING, FIXTURE_STACKS, startStack } from "../support/stack.ts";
import type { Stack } from "../support/stack.ts";

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

describe.each(FIXTURE_STACKS)("with $name behind it", ({ start }) => {
  let stack: Stack;
  beforeAll(async () => {
    stack = await start();
  });
  afterAll(() => stack?.stop());

  const clients = {
    "sdk 1.x": () => connectV1(stack.mcpUrl, stack.token),
    "client 2.x, default": () => connectV2(stack.mcpUrl, stack.token),
    "client 2.x, auto": () => connectV2(stack.mcpUrl, stack.token, "auto"),
    "client 2.x, pinned to 2026-07-28": () => connectV2(stack.mcpUrl, stack.token, { pin: "2026-07-28" }),
  };

  test.each(Object.entries(clients))("%s lists, calls, reads, completes and gets progress", async (_name, connect) => {
    const client = await connect();
    const { tools } = await client.listTools();
    expect(tools.map((tool) => tool.name)).toContain("test_simple_text");

    const text = await client.callTool({ name: "test_simple_text", arguments: {} });
    expect(text.content).toEqual([{ type: "text", text: "This is a simple text response for testing." }]);

    const image = await client.callTool({ name: "test_image_content", arguments: {} });
    expect(image.content).toEqual([{ type: "image", data: PNG, mimeType: "image/png" }]);

    const failed = await client.callTool({ name: "test_error_handling", arguments: {} });
    expect(failed.isError).toBe(true);

    const { resources } = await client.listResources();
    expect(resources.map((resource) => resource.uri)).toContain("test://static-text");
    const read = await client.readResource({ uri: "test://static-text" });
    expect(read.contents).toMatchObject([{ uri: "test://static-text", text: "This is the content of the static text resource." }]);
    const { resourceTemplates } = await client.listResourceTemplates();
    expect(resourceTemplates.map((template) => template.uriTemplate)).toEqual(["test://template/{id}/data"]);
    const templated = await client.readResource({ uri: "test://template/7/data" });
    expect(JSON.stringify(templated.contents)).toContain("Data for ID: 7");

    const { prompts } = await client.listPrompts();
    expect(prompts.map((prompt) => prompt.name)).toContain("test_prompt_with_arguments");
    const prompt = await client.getPrompt({ name: "test_prompt_with_arguments", arguments: { arg1: "a", arg2: "b" } });
    expect(JSON.stringify(prompt.messages)).toContain("arg1='a', arg2='b'");

    const completion = await client.complete({
      ref: { type: "ref/prompt", name: "test_prompt_with_arguments" },
      argument: { name: "arg1", value: "x" },
    });
    expect(completion.completion.values).toEqual([]);

    const progress: number[] = [];
    const onprogress = (note: { progress: number }): unknown => progress.push(note.progress);
    const params = { name: "test_tool_with_progress", arguments: {} };
    if (client instanceof ClientV1) await client.callTool(params, undefined, { onprogress });
    else await client.callTool(params, { onprogress });
    expect(progress).toEqual([0, 50, 100]);
    await client.close();
  });

  test("raw fetch gets its id back exactly as it was sent", async () => {
    for (const id of ["0", '""', "1", '"1"', "-7", '"ünïcode \\u0041"', "9007199254740991"]) {
      const request = modernRequest(stack.token, "tools/call", { name: "test_simple_text", arguments: {} });
      const body = request.body.replace('"id":1', `"id":${id}`);
      const response = await fetch(stack.mcpUrl, { ...request, body });
      expect(response.status).toBe(200);
      expect(await response.text()).toContain(`"id":${id}`);
    }
  });

  test("two calls with the same id at once get their own answers", async () => {
    const call = async (name: string) =>
      readMessages(await fetch(stack.mcpUrl, modernRequest(stack.token, "tools/call", { name, arguments: {} }, { id: 1 })));
    const [slow, quick] = await Promise.all([call("test_tool_with_progress"), call("test_image_content")]);
    expect(JSON.stringify(slow?.at(-1))).toContain('"text":"undefined"');
    expect(JSON.stringify(quick?.at(-1))).toContain(PNG);
  });
});

describe("with server-everything over stdio behind it", () => {
  let stack: Stack;
  beforeAll(async () => {
    stack = await startStack({ agent: ["--", ...EVERYTHING] });
  });
  afterAll(() => stack?.stop());

  test.each([
    ["sdk 1.x", () => connectV1(stack.mcpUrl, stack.token)],
    ["client 2.x, auto", () => connectV2(stack.mcpUrl, stack.token, "auto")],
    ["client 2.x, pinned to 2026-07-28", () => connectV2(stack.mcpUrl, stack.token, { pin: "2026-07-28" })],
  ] as const)("%s echoes and lists", async (_name, connect) => {
    const client = await connect();
    const { tools } = await client.listTools();
    expect(tools.map((tool) => tool.name)).toContain("echo");
    const result = await client.callTool({ name: "echo", arguments: { message: "hello" } });
    expect(JSON.stringify(result.content)).toContain("hello");
    expect((await client.listPrompts()).prompts.length).toBeGreaterThan(0);
    expect((await client.listResources()).resources.length).toBeGreaterThan(0);
    await client.close();
  });
});
