/** An agent with a configuration file behind a real relay: many upstreams as one device, feeds, and changes of the file. */
import { rename, writeFile } from "node:fs/promises";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { ResourceUpdatedNotificationSchema, ToolListChangedNotificationSchema } from "@modelcontextprotocol/sdk/types.js";
import { afterAll, beforeAll, expect, test } from "vitest";
import { WebSocketServer, type WebSocket } from "ws";
import { connectV1, connectV2, modernRequest } from "../support/clients.ts";
import { EventReader } from "../support/event-reader.ts";
import { answerOf, postTool } from "../support/modern-call.ts";
import { eventually, temporaryDir } from "../support/processes.ts";
import { longline, startAgent, startLongline, startRelay, type AgentProcess, type RelayProcess } from "../support/relay-process.ts";
import { EVERYTHING, startFixtureHttp } from "../support/stack.ts";

const ROOT = join(import.meta.dirname, "../..");
const NODE = JSON.stringify(process.execPath);
const server = (name: string) => JSON.stringify(join(ROOT, `node_modules/@modelcontextprotocol/server-${name}/dist/index.js`));
const script = (path: string) => JSON.stringify(join(ROOT, path));

let relay: RelayProcess;
let agent: AgentProcess;
let dir: Awaited<ReturnType<typeof temporaryDir>>;
let fixture: Awaited<ReturnType<typeof startFixtureHttp>>;
let device: Awaited<ReturnType<RelayProcess["addDevice"]>>;
let at: { mcpUrl: string; token: string };
/** The device's own services: a plain API, server-sent events, a WebSocket. */
const streams: ServerResponse[] = [];
const sockets: WebSocket[] = [];
const site = createServer((request, response) => {
  if (request.url === "/stream") {
    streams.push(response.writeHead(200, { "content-type": "text/event-stream" }));
    response.flushHeaders();
  } else if (request.url === "/shot") response.setHeader("content-type", "image/png").end(Buffer.from([137, 80, 78, 71]));
  else response.end(JSON.stringify({ data: { url: request.url } }));
});

let base: string;
const config = () => join(dir.path, "longline.toml");

/** As an editor does it: another file takes the name. */
async function save(text: string): Promise<void> {
  await writeFile(`${config()}.new`, text, { mode: 0o600 });
  await rename(`${config()}.new`, config());
}

async function told(text: string): Promise<void> {
  await agent.process.line("stderr", (line) => line.includes(text));
}

async function toolNames(token = at.token): Promise<string[]> {
  const answer = await answerOf(await fetch(at.mcpUrl, modernRequest(token, "tools/list")));
  return (answer["result"] as { tools: { name: string }[] }).tools.map(({ name }) => name);
}

beforeAll(async () => {
  dir = await temporaryDir();
  new WebSocketServer({ server: site }).on("connection", (socket) => sockets.push(socket));
  await new Promise<void>((resolve) => {
    site.listen(0, "127.0.0.1", resolve);
  });
  const place = `127.0.0.1:${(site.address() as AddressInfo).port}`;
  [relay, fixture] = await Promise.all([startRelay(), startFixtureHttp()]);
  device = await relay.addDevice("bench");
  const { token } = await relay.createToken(device.device);
  at = { mcpUrl: device.mcpUrl, token };
  await writeFile(join(dir.path, "note.txt"), "hello");
  base = `
[upstreams.everything]
command = ${JSON.stringify(EVERYTHING)}
prefix = "v1_"
[upstreams.modern]
command = [${NODE}, ${script("test/fixtures/upstream/modern-only.mjs")}]
[upstreams.files]
command = [${NODE}, ${server("filesystem")}, "."]
cwd = "."
[upstreams.memory]
command = [${NODE}, ${server("memory")}]
env = { MEMORY_FILE_PATH = ${JSON.stringify(join(dir.path, "memory.jsonl"))} }
[upstreams.http]
url = ${JSON.stringify(fixture.url)}
prefix = "h_"
resourcePrefix = "h+"
[tools.add]
description = "Adds"
command = [${NODE}, "-p", "Number(process.argv[1]) + Number(process.argv[2])", "{a}", "{b}"]
inputSchema = { type = "object", required = ["a", "b"], properties = { a = { type = "integer" }, b = { type = "integer" } } }
[tools.lookup]
description = "Looks up"
request = { method = "GET", url = "http://${place}/look/{what}" }
inputSchema = { type = "object", required = ["what"], properties = { what = { type = "string" } } }
outputSchema = { type = "object", required = ["url"], properties = { url = { type = "string" } } }
result = { kind = "structured", path = "/data" }
[tools.raw]
description = "As text"
request = { method = "GET", url = "http://${place}/raw" }
[tools.shot]
description = "A picture"
request = { method = "GET", url = "http://${place}/shot" }
result = { kind = "image" }
[feeds.launcher]
url = "ws://${place}/events"
uri = "events://launcher"
[feeds.sensors]
url = "http://${place}/stream"
uri = "events://sensors"
[policy]
rules = [{ tools = ["add"], action = "allow" }]
`;
  await save(base);
  agent = await startAgent({ relay: relay.url, deviceKey: device.deviceKey, args: ["--config", config()] });
}, 60_000);

afterAll(async () => {
  await agent?.stop();
  await Promise.all([relay?.stop(), fixture?.stop()]);
  for (const socket of sockets) socket.terminate();
  site.closeAllConnections();
  site.close();
  await dir?.remove();
});

test("servers of both eras, over both transports, stand behind one device beside declared tools", async () => {
  await eventually(
    "all lists",
    async () => (await toolNames()).includes("h_test_simple_text") && (await toolNames()).includes("create_entities"),
  );
  const names = await toolNames();
  expect(names).toEqual(
    expect.arrayContaining(["v1_echo", "modern_echo", "read_text_file", "create_entities", "add", "lookup", "raw", "shot"]),
  );
  const clients = [await connectV1(at.mcpUrl, at.token), await connectV2(at.mcpUrl, at.token, "auto")];
  for (const client of clients) {
    const text = async (name: string, args: Record<string, unknown> = {}) =>
      JSON.stringify((await client.callTool({ name, arguments: args })).content);
    expect(await text("v1_echo", { message: "M" })).toContain("Echo: M");
    expect(await text("modern_echo")).toContain("modern");
    expect(await text("read_text_file", { path: join(dir.path, "note.txt") })).toContain("hello");
    const entities = [{ name: "Ada", entityType: "person", observations: [] }];
    expect(await text("create_entities", { entities })).not.toContain("Error");
    expect(await text("h_test_simple_text")).toContain("text");
    expect(await text("add", { a: 2, b: -3 })).toContain("-1");
    expect(await client.callTool({ name: "lookup", arguments: { what: "a/b" } })).toMatchObject({
      structuredContent: { url: "/look/a%2Fb" },
    });
    expect(await text("raw")).toContain(String.raw`\"/raw\"`);
    expect((await client.callTool({ name: "shot", arguments: {} })).content).toEqual([
      { type: "image", data: "iVBORw==", mimeType: "image/png" },
    ]);
    const { resources } = await client.listResources();
    expect(resources.map(({ uri }) => uri)).toEqual(expect.arrayContaining(["events://launcher", "events://sensors"]));
    const own = resources.find(({ uri }) => uri.startsWith("h+"))?.uri ?? "";
    expect((await client.readResource({ uri: own })).contents[0]?.uri).toBe(own);
    expect(client.getInstructions()).toContain("## modern\n\nAsk for the time.");
    await client.close();
  }
});

test("`* !shell` closes another server's shell, under its prefix too", async () => {
  const { token } = await relay.createToken(device.device, ["--tools", "*", "--tools", "!shell", "--tools", "!echo"]);
  expect(await toolNames(token)).not.toContain("shell");
  expect(await toolNames(token)).not.toContain("v1_echo");
  expect(await toolNames()).toContain("shell");
  const refused = await answerOf(await postTool({ mcpUrl: at.mcpUrl, token }, "v1_echo", { message: "M" }));
  expect(refused).toMatchObject({ error: { code: -32602 } });
  expect(await answerOf(await postTool(at, "v1_echo", { message: "M" }))).toMatchObject({ result: {} });
});

test("feeds tell subscribers of both eras, and hold what they told", async () => {
  await eventually("both feeds", () => sockets.length > 0 && streams.length > 0);
  const listening = new EventReader(
    await fetch(
      at.mcpUrl,
      modernRequest(at.token, "subscriptions/listen", { notifications: { resourceSubscriptions: ["events://sensors"] } }),
    ),
  );
  expect(await listening.next()).toMatchObject({ method: "notifications/subscriptions/acknowledged" });
  const legacy = await connectV1(at.mcpUrl, at.token);
  const heard: string[] = [];
  legacy.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => void heard.push(params.uri));
  await legacy.subscribeResource({ uri: "events://launcher" });
  sockets[0]?.send('{"app":"opened"}');
  streams[0]?.write('data: {"celsius":21}\n\n');
  expect(await listening.next()).toMatchObject({ method: "notifications/resources/updated", params: { uri: "events://sensors" } });
  await eventually("the update", () => heard.includes("events://launcher"));
  expect(JSON.stringify(await legacy.readResource({ uri: "events://launcher" }))).toContain("opened");
  expect(JSON.stringify(await legacy.readResource({ uri: "events://sensors" }))).toContain("celsius");
  await listening.cancel();
  await legacy.close();
});

test("a changed file is in force at once: running calls end well, clients hear of it, and the link stays", async () => {
  const client = await connectV1(at.mcpUrl, at.token);
  let changes = 0;
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => {
    changes += 1;
  });
  // In both directions: of a server that stays, and of one that goes.
  const staying = client.callTool({ name: "v1_trigger-long-running-operation", arguments: { duration: 2, steps: 2 } });
  await told("call v1_trigger-long-running-operation");
  const leaving = client.callTool({ name: "modern_echo", arguments: {} });
  await save(base.replace(/\[upstreams.modern\]\n.*\n/, "") + '[tools.fresh]\ndescription = "New"\ncommand = ["true"]\n');
  await told("was read again and is in force");
  await eventually("the notice", () => changes > 0);
  const names = (await client.listTools()).tools.map(({ name }) => name);
  expect(names).toContain("fresh");
  expect(names).not.toContain("modern_echo");
  expect(JSON.stringify(await staying)).toContain("Long running operation completed");
  expect(JSON.stringify(await leaving)).toContain("modern");
  const { stdout } = await longline(["status", device.device, "--json"], { env: relay.env });
  expect(JSON.parse(stdout)).toMatchObject({ state: "online", generation: 1 });
  await client.close();
});

test("a broken file changes nothing and is told with its lines; SIGHUP reads it again", async () => {
  await save(`${base}\n[upstreams.bad]\ncomand = ["x"]\n`);
  await told("comand: is not known; did you mean command?");
  await told("The configuration before stays in force.");
  expect(await toolNames()).toContain("fresh");
  await save(base);
  await eventually("the file before the change", async () => !(await toolNames()).includes("fresh"));
  agent.process.child.kill("SIGHUP");
  await told("was read again and is in force");
  expect(await answerOf(await postTool(at, "add", { a: 1, b: 1 }))).toMatchObject({ result: { content: [{ text: "2\n" }] } });
});

test("two servers with one name: the later one's is not offered, and status names both", async () => {
  await save(`${base}\n[upstreams.twin]\ncommand = [${NODE}, ${script("test/fixtures/upstream/modern-only.mjs")}]\n`);
  await eventually("status tells", async () => {
    const { stdout } = await longline(["status", device.device, "--json"], { env: relay.env });
    return /of twin is not offered: modern has one/.test(stdout);
  });
  expect((await toolNames()).filter((name) => name === "modern_echo")).toHaveLength(1);
});

test("the file is found beside the key, and a mistake in it ends the start with 2", async () => {
  const keyFile = join(dir.path, "device-key");
  await writeFile(keyFile, device.deviceKey, { mode: 0o600 });
  await save('[upstreams.a]\nurl = "nowhere"\n');
  const run = startLongline(["agent", "--relay", relay.url, "--key-file", keyFile]);
  expect((await run.ended()).code).toBe(2);
  expect(run.output.stderr).toContain(`${config()}:2: upstreams.a.url: must look like`);
});
