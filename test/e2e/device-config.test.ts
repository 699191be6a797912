/** What the reference devices offer beside MCP, made into tools and a resource by the agent's configuration. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Board } from "../devices/board.ts";
import { Dikciz } from "../devices/dikciz.ts";
import { objectAt, type Json } from "../devices/json.ts";
import { modernRequest, readMessages } from "../support/clients.ts";
import { EventReader } from "../support/event-reader.ts";
import { answerOf, postTool } from "../support/modern-call.ts";
import { eventually, temporaryDir } from "../support/processes.ts";
import { startStack, type Stack } from "../support/stack.ts";

const EVENTS = "events://launcher";
let board: Board;
let phone: Dikciz;
let stack: Stack;

beforeAll(async () => {
  const directory = await temporaryDir();
  board = await Board.start({ hidMs: 20 });
  phone = await Dikciz.start();
  const config = join(directory.path, "longline.toml");
  const tool = (name: string, more: string): string =>
    `[tools.${name}]\ndescription = "The board's ${name}"\nrequest = { method = "POST", url = "http://127.0.0.1:${board.port}/api/tools/${name}", body = { input = "{*}" } }\n${more}\n`;
  const failing = 'errorPath = "/is_error", errorTextPath = "/error/message"';
  await writeFile(
    config,
    [
      tool("screenshot", `result = { kind = "image", path = "/output/data", mimeType = "image/jpeg", ${failing} }`),
      tool(
        "open_app",
        `result = { path = "/output", ${failing} }\ninputSchema = { type = "object", properties = { name = { type = "string" } } }`,
      ),
      `[feeds.launcher]\nurl = "${phone.events.url}"\nuri = "${EVENTS}"\nheadersFile = "phone-headers"\nhello = { type = "hello", requestId = "{uuid}", protocolVersion = 1 }\n`,
    ].join("\n"),
    { mode: 0o600 },
  );
  await writeFile(join(directory.path, "phone-headers"), "Authorization: Bearer phone\n", { mode: 0o600 });
  stack = await startStack({ agent: ["--config", config], alsoStop: [board, phone, { stop: () => directory.remove() }] });
});
afterAll(() => stack?.stop());

const feed = async (): Promise<Json> => {
  const request = modernRequest(stack.token, "resources/read", { uri: EVENTS });
  const answer = (await readMessages(await fetch(stack.mcpUrl, request))).at(-1) ?? {};
  const [content] = objectAt(answer, "result")["contents"] as { text: string }[];
  return JSON.parse(content?.text ?? "{}") as Json;
};

test("the board's plain tool API: its picture is an image, and its 200 with is_error is a failed tool with its own words", async () => {
  const shot = objectAt(await answerOf(await postTool(stack, "screenshot")), "result");
  expect(shot).toMatchObject({ content: [{ type: "image", mimeType: "image/jpeg", data: expect.stringMatching(/^\/9j\//) }] });
  const failed = objectAt(await answerOf(await postTool(stack, "open_app", { name: "Mail" })), "result");
  expect(failed).toMatchObject({ isError: true, content: [{ text: expect.stringContaining("phone bridge app is background") }] });
});

test("the phone's launcher events: a resource that tells whoever subscribed, after the hello that the phone wants", async () => {
  await eventually("the feed is connected", async () => (await feed())["connected"] === true && ((await feed())["received"] as number) > 0);
  const asked = modernRequest(stack.token, "subscriptions/listen", { notifications: { resourceSubscriptions: [EVENTS] } }, { id: "L1" });
  const listener = new EventReader(await fetch(stack.mcpUrl, asked));
  expect(await listener.next()).toMatchObject({ method: "notifications/subscriptions/acknowledged" });
  phone.events.emit("pageSelected", { page: "2H1V" });
  expect(await listener.next()).toMatchObject({ method: "notifications/resources/updated", params: { uri: EVENTS } });
  const messages = (await feed())["messages"] as { message: Json }[];
  expect(messages.map(({ message }) => message)).toEqual([
    expect.objectContaining({ type: "result", snapshot: expect.objectContaining({ screen: "home" }) }),
    { type: "event", event: "pageSelected", revision: 1, fields: { page: "2H1V" } },
  ]);
  await listener.cancel();
});
