/** Declared tools and event feeds at the agent: what a caller says stays data, and what comes back is what was mapped. */
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { WebSocketServer } from "ws";
import { loadConfig } from "../../src/agent/config/load-config.ts";
import { DEFAULT_POLICY } from "../../src/agent/local-policy.ts";
import { FEED } from "../../src/limits.ts";
import { eventually, isAlive } from "../support/processes.ts";
import type { AgentSocket } from "../support/fake-relay.ts";
import { connected, stateDir } from "./harness.ts";

const SHOW = `process.stdout.write(JSON.stringify(process.argv.slice(2)))`;
const STRINGS = (...names: string[]) =>
  `{ type = "object", required = ${JSON.stringify(names)}, properties = { ${names.map((name) => `${name} = { type = "string" }`).join(", ")} } }`;

/** An agent with a configuration file; `show.mjs` beside it prints its arguments. */
async function configured(toml: string) {
  const dir = stateDir();
  const path = join(dir, "longline.toml");
  mkdirSync(join(dir, "work"));
  writeFileSync(join(dir, "show.mjs"), SHOW);
  writeFileSync(join(dir, "show"), `#!${process.execPath}\n${SHOW}`);
  chmodSync(join(dir, "show"), 0o755);
  writeFileSync(path, toml.replaceAll("NODE", JSON.stringify(process.execPath)));
  const { upstreams } = await loadConfig(path, async () => await Promise.resolve({ authorization: "Bearer device-side" }));
  const started = await connected(upstreams, {}, { policy: { ...DEFAULT_POLICY, rules: [{ action: "allow" }] } });
  return { ...started, dir };
}

interface Answer {
  isError?: boolean;
  content: { type: string; text: string; data?: string; mimeType?: string }[];
  structuredContent?: unknown;
}

async function run(agent: AgentSocket, target: string, args: unknown = {}): Promise<Answer> {
  const { payload } = await agent.outcome(agent.call({ method: "tools/call", target }, { arguments: args }));
  return JSON.parse(payload) as Answer;
}

async function site(handler: (request: IncomingMessage, body: string, response: ServerResponse) => void) {
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk: Buffer) => (body += chunk.toString()));
    request.on("end", () => handler(request, body, response));
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { server, url: `127.0.0.1:${(server.address() as AddressInfo).port}` };
}

describe("a command", () => {
  test("gets each argument as one argument of its own, whatever it holds, and none as an option", async () => {
    const { agent } = await configured(`
[tools.show]
description = "d"
command = [NODE, "show.mjs", "{a}", "--b={b}", "--", "{c}"]
cwd = "."
inputSchema = ${STRINGS("a", "b", "c")}
[tools.own]
description = "d"
command = ["./show", "{n}", "{{n}}"]
inputSchema = { type = "object", properties = { n = { type = "integer", default = -7 } } }`);
    const odd = "$(touch x); `id` \"' | & {b} %PATH% \n é";
    expect(JSON.parse((await run(agent, "show", { a: odd, b: "-x", c: "--rf" })).content[0]?.text ?? "")).toEqual([
      odd,
      "--b=-x",
      "--",
      "--rf",
    ]);
    for (const a of ["-x", "--help"])
      expect(await run(agent, "show", { a, b: "", c: "" })).toMatchObject({
        isError: true,
        content: [{ text: expect.stringContaining("may not begin with") }],
      });
    expect(await run(agent, "show", { a: "x\0y", b: "", c: "" })).toMatchObject({ isError: true });
    expect(JSON.parse((await run(agent, "own")).content[0]?.text ?? "")).toEqual(["-7", "{n}"]);
  });

  test("is not run with arguments that do not fit; the schema is shown as it was written, and calls ask first", async () => {
    const { agent } = await configured(`
[tools.show]
description = "d"
command = [NODE, "show.mjs", "{x}"]
cwd = "."
annotations = { readOnlyHint = true }
inputSchema = { type = "object", required = ["x"], additionalProperties = false, properties = { x = { type = "integer", maximum = 10 } } }`);
    for (const args of [{}, { x: "1" }, { x: 11 }, { x: 1.5 }, { x: 1, y: 2 }])
      expect(await run(agent, "show", args)).toMatchObject({ isError: true, content: [{ text: expect.stringContaining("inputSchema") }] });
    expect(await run(agent, "show", { x: 3 })).toMatchObject({ content: [{ text: '["3"]' }] });
    const { payload } = await agent.outcome(agent.call({ method: "tools/list" }));
    expect(JSON.parse(payload)).toMatchObject({
      tools: [
        {
          name: "show",
          annotations: { readOnlyHint: true },
          inputSchema: { required: ["x"], properties: { x: { type: "integer", maximum: 10 } } },
          _meta: { "dev.longline/asksFirst": true },
        },
      ],
    });
  });

  test("has standard input, a directory, variables and nothing of ours, a time limit, a cap, and says why it failed", async () => {
    const { agent, dir } = await configured(`
[tools.where]
description = "d"
command = [NODE, "-e", "let t='';process.stdin.on('data',(c)=>t+=c).on('end',()=>console.log(JSON.stringify({t,cwd:process.cwd(),a:process.env.A,ours:Object.keys(process.env).filter((k)=>k.startsWith('LONGLINE'))})))"]
stdin = "<{text}>"
cwd = "work"
env = { A = "1" }
inputSchema = ${STRINGS("text")}
result = { kind = "structured" }
[tools.fails]
description = "d"
command = [NODE, "-e", "console.error('no \\\\u001b[31msuch board');process.exit(3)"]
[tools.sleeps]
description = "d"
command = [NODE, "-e", "console.error('pid '+process.pid);setInterval(()=>{},1000)"]
timeoutSeconds = 0.5
[tools.talks]
description = "d"
command = [NODE, "-e", "process.stdout.write('x'.repeat(5000))"]
maxOutputBytes = 1000
[tools.missing]
description = "d"
command = ["no-such-program-here"]
[tools.draws]
description = "d"
command = [NODE, "-e", "process.stdout.write(Buffer.from([137,80,78,71]))"]
result = { kind = "image", mimeType = "image/png" }`);
    expect((await run(agent, "where", { text: "a\nb" })).structuredContent).toEqual({
      t: "<a\nb>",
      cwd: join(dir, "work"),
      a: "1",
      ours: [],
    });
    expect(await run(agent, "fails")).toMatchObject({
      isError: true,
      content: [{ text: "The command ended with exit code 3. no such board" }],
    });
    const slept = await run(agent, "sleeps");
    expect(slept).toMatchObject({ isError: true, content: [{ text: expect.stringContaining("longer than 0.5 s") }] });
    expect(isAlive(Number(/pid (\d+)/.exec(slept.content[0]?.text ?? "")?.[1]))).toBe(false);
    expect(await run(agent, "talks")).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining("more than 1000 bytes") }],
    });
    expect(await run(agent, "missing")).toMatchObject({ isError: true, content: [{ text: expect.stringContaining("was not found") }] });
    expect((await run(agent, "draws")).content).toEqual([{ type: "image", data: "iVBORw==", mimeType: "image/png" }]);
  });
});

describe("a request", () => {
  test("keeps values inside their segment and their query value, and sends the rest as its body", async () => {
    const seen: {
      method: string | undefined;
      url: string | undefined;
      body: string;
      auth: string | undefined;
      type: string | undefined;
    }[] = [];
    const { url } = await site((request, body, response) => {
      const { authorization: auth, "content-type": type } = request.headers;
      seen.push({ method: request.method, url: request.url, body, auth, type });
      response.end("ok");
    });
    const { agent } = await configured(`
[tools.put]
description = "d"
inputSchema = ${STRINGS("room", "by", "rest")}
request = { method = "PUT", url = "http://${url}/lamps/{room}/state?by={by}&fixed=1", headersFile = "headers" }
[tools.form]
description = "d"
inputSchema = ${STRINGS("a")}
request = { method = "POST", url = "http://${url}/form", body = "form" }
[tools.wrapped]
description = "d"
inputSchema = { type = "object", required = ["n"], properties = { n = { type = "integer" } } }
request = { method = "POST", url = "http://${url}/wrapped", body = { input = "{*}", list = ["{n}", "n is {n}"], fixed = true } }`);
    await run(agent, "put", { room: "a/b ?#é", by: "x&fixed=2", rest: "r" });
    expect(seen.at(-1)).toEqual({
      method: "PUT",
      url: "/lamps/a%2Fb%20%3F%23%C3%A9/state?by=x%26fixed%3D2&fixed=1",
      body: '{"rest":"r"}',
      auth: "Bearer device-side",
      type: "application/json",
    });
    for (const room of ["..", ".", ""])
      expect(await run(agent, "put", { room, by: "", rest: "" })).toMatchObject({
        isError: true,
        content: [{ text: expect.stringContaining("may not be") }],
      });
    expect(seen).toHaveLength(1);
    await run(agent, "form", { a: "1&b=2" });
    expect(seen.at(-1)).toMatchObject({ body: "a=1%26b%3D2", type: "application/x-www-form-urlencoded", auth: undefined });
    await run(agent, "wrapped", { n: 5 });
    expect(JSON.parse(seen.at(-1)?.body ?? "")).toEqual({ input: { n: 5 }, list: [5, "n is 5"], fixed: true });
  });

  test("maps answers, also inside strings of JSON, and tells failures of every kind as tool errors", async () => {
    const inner = JSON.stringify({ width: 2, data: "/9j/4A==" });
    let followed = 0;
    const { url } = await site((request, _body, response) => {
      const answers: Record<string, () => void> = {
        "/shot": () => response.end(JSON.stringify({ output: inner, is_error: false })),
        "/bad": () => response.end(JSON.stringify({ output: "", is_error: true, error: "STALE_FRAME" })),
        "/png": () => response.setHeader("content-type", "image/png; x=1").end(Buffer.from([1, 2])),
        "/weather": () => response.end('{"data":{"celsius":21}}'),
        "/404": () => response.writeHead(404).end("no such \u001b[31mtool"),
        "/moved": () => response.writeHead(302, { location: `http://${request.headers.host}/followed` }).end(),
        "/followed": () => {
          followed += 1;
          response.end("x");
        },
        "/big": () => response.end("x".repeat(5000)),
        "/silent": () => undefined,
      };
      answers[request.url ?? ""]?.();
    });
    const tool = (name: string, more = "") =>
      `[tools.${name}]\ndescription = "d"\nrequest = { method = "GET", url = "http://${url}/${name.replace(/^\w+_/, "")}" }\n${more}\n`;
    const error = 'errorPath = "/is_error", errorTextPath = "/error"';
    const { agent } = await configured(
      [
        tool("a_shot", `result = { kind = "image", path = "/output/data", mimeType = "image/jpeg", ${error} }`),
        tool("b_shot", `result = { kind = "structured", path = "/output", ${error} }`),
        tool("bad", `result = { kind = "text", path = "/output", ${error} }`),
        tool("png", 'result = { kind = "image" }'),
        tool(
          "a_weather",
          'result = { kind = "structured", path = "/data" }\noutputSchema = { type = "object", required = ["celsius"], properties = { celsius = { type = "number" } } }',
        ),
        tool(
          "b_weather",
          'result = { kind = "structured", path = "/data" }\noutputSchema = { type = "object", required = ["fahrenheit"] }',
        ),
        tool("c_weather", 'result = { kind = "text", path = "/nothing" }'),
        tool("404"),
        tool("moved"),
        tool("big", "maxOutputBytes = 1000"),
        tool("silent", "timeoutSeconds = 0.3"),
        `[tools.nobody]\ndescription = "d"\nrequest = { method = "GET", url = "http://127.0.0.1:1/" }\n`,
      ].join(""),
    );
    expect((await run(agent, "a_shot")).content).toEqual([{ type: "image", data: "/9j/4A==", mimeType: "image/jpeg" }]);
    expect((await run(agent, "b_shot")).structuredContent).toEqual({ width: 2, data: "/9j/4A==" });
    expect(await run(agent, "bad")).toMatchObject({ isError: true, content: [{ text: "STALE_FRAME" }] });
    expect((await run(agent, "png")).content).toEqual([{ type: "image", data: "AQI=", mimeType: "image/png" }]);
    expect(await run(agent, "a_weather")).toMatchObject({ structuredContent: { celsius: 21 }, content: [{ text: '{"celsius":21}' }] });
    const texts: Record<string, string> = {
      b_weather: "outputSchema",
      c_weather: "nothing at /nothing",
      404: "HTTP 404. no such tool",
      moved: "Redirects are not followed",
      big: "more than 1000 bytes",
      silent: "within 0.3 s",
      nobody: "ECONNREFUSED",
    };
    for (const [name, text] of Object.entries(texts))
      expect(await run(agent, name), name).toMatchObject({ isError: true, content: [{ text: expect.stringContaining(text) }] });
    expect(followed).toBe(0);
  });
});

describe("an event feed", () => {
  test("over a WebSocket holds the last messages, tells subscribers, skips what is no JSON, and comes back", async () => {
    const { server, url } = await site((_request, _body, response) => response.writeHead(404).end());
    const sockets = new WebSocketServer({ server });
    const open: { send(text: string): void; terminate(): void }[] = [];
    const seen: (string | undefined)[] = [];
    sockets.on("connection", (socket, request) => {
      seen.push(request.headers.authorization);
      open.push(socket);
    });
    const { agent, handle } = await configured(
      `[feeds.launcher]\nurl = "ws://${url}/events"\nuri = "events://launcher"\nheadersFile = "h"\n`,
    );
    const read = async () => {
      const { payload } = await agent.outcome(agent.call({ method: "resources/read", target: "events://launcher" }));
      return JSON.parse((JSON.parse(payload) as { contents: [{ text: string }] }).contents[0].text) as {
        connected: boolean;
        received: number;
        skipped: number;
        messages: { number: number; message: unknown }[];
      };
    };
    await eventually("a connection", () => open.length === 1);
    expect(seen).toEqual(["Bearer device-side"]);
    await eventually("the feed is ready", () => handle.state().upstreams[0]?.state === "ready");
    expect(await read()).toMatchObject({ connected: true, messages: [] });
    await agent.outcome(agent.call({ method: "resources/subscribe", target: "events://launcher" }));
    for (let i = 1; i <= FEED.messages + 5; i += 1) open[0]?.send(`{"n":${i},"big":12345678901234567890}`);
    open[0]?.send("no json");
    await agent.next("changed", ({ uri }) => uri === "events://launcher");
    await eventually("all messages", async () => (await read()).skipped === 1);
    const { messages, received } = await read();
    expect({ received, count: messages.length, first: messages[0]?.number }).toEqual({
      received: FEED.messages + 5,
      count: FEED.messages,
      first: 6,
    });
    open[0]?.terminate();
    await eventually("a second connection", () => open.length === 2);
    open[1]?.send('{"n":"again"}');
    await eventually("the message after it", async () => (await read()).messages.at(-1)?.number === FEED.messages + 6);
    expect((await agent.outcome(agent.call({ method: "resources/read", target: "events://other" }))).frame).toMatchObject({ code: -32602 });
  });

  test("of server-sent events is read alike; one that answers with something else says so", async () => {
    const streams: ServerResponse[] = [];
    const { url } = await site((request, _body, response) => {
      if (request.url !== "/stream") {
        response.writeHead(503).end();
        return;
      }
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(': hello\n\ndata: {"a":\ndata: 1}\n\nid: 7\n\n');
      streams.push(response);
    });
    const { agent, handle } = await configured(
      `[feeds.s]\nurl = "http://${url}/stream"\nuri = "events://s"\n[feeds.broken]\nurl = "http://${url}/nothing"\nuri = "events://broken"\n`,
    );
    const read = async () => (await agent.outcome(agent.call({ method: "resources/read", target: "events://s" }))).payload;
    await eventually("the first message", async () => (await read()).includes(String.raw`\"message\":{\"a\":\n1}`));
    streams[0]?.end('data: "last"\n\n');
    await eventually("a second stream", () => streams.length === 2);
    expect(await read()).toContain(String.raw`\"message\":\"last\"`);
    await eventually("why the other one is not there", () =>
      handle.state().upstreams.some(({ alias, problem }) => alias === "feeds.broken" && problem?.includes("HTTP 503") === true),
    );
  });
});
