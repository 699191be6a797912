/** The built-in tools through a real relay, called by the official client, on a real X server. */
import { chmod, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Client } from "@modelcontextprotocol/client";
import { decode } from "fast-png";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Answer, Asker, Question } from "../../src/agent/ask/question.ts";
import { PolicySection } from "../../src/agent/config/policy-section.ts";
import { ToolsSection } from "../../src/agent/config/tools-section.ts";
import { runAgent } from "../../src/agent/run-agent.ts";
import { builtinTools } from "../../src/agent/tools/builtin-tools.ts";
import { findCapture } from "../../src/agent/tools/capture.ts";
import { screenshotTool } from "../../src/agent/tools/screenshot.ts";
import type { AgentHandle, BuiltinContext, BuiltinResult } from "../../src/agent/types.ts";
import { connectV2 } from "../support/clients.ts";
import { eventually, temporaryDir } from "../support/processes.ts";
import { startRelay, type RelayProcess } from "../support/relay-process.ts";
import { needPrograms, QUARTERS, startXDisplay, type XDisplay } from "../support/x-display.ts";

const [WIDTH, HEIGHT] = [1_000, 600];
const MAX_BYTES = 20_000;

let x: XDisplay;
let relay: RelayProcess;
let agent: AgentHandle;
let client: Client;
let files: Awaited<ReturnType<typeof temporaryDir>>;
const before = { path: process.env["PATH"], display: process.env["DISPLAY"] };
/** What the person at the device is asked, and says. */
const questions: Question[] = [];
let says: Answer = { kind: "allowed" };
const asker: Asker = {
  ask: (question) => {
    questions.push(question);
    return Promise.resolve(says);
  },
};

beforeAll(async () => {
  needPrograms("xwd", "xclip", "maim", "scrot");
  files = await temporaryDir();
  x = await startXDisplay(WIDTH, HEIGHT);
  process.env["DISPLAY"] = x.display;
  await fakeBrowser(files.path);
  process.env["PATH"] = `${files.path}:${before.path}`;
  relay = await startRelay();
  const { deviceKey, device } = await relay.addDevice("desk");
  const { token, mcpUrl } = await relay.createToken(device);
  const section = {
    shell: {},
    screenshot: { maxSide: 500, maxBytes: MAX_BYTES },
    clipboard: {},
    open_url: {},
    device_status: {},
    support_bundle: {},
  };
  const { tools, unavailable } = builtinTools(ToolsSection.parse(section));
  expect(unavailable).toEqual([]);
  agent = await runAgent({
    relay: new URL(relay.url),
    deviceKey,
    stateDir: join(files.path, "state"),
    upstreams: [{ kind: "builtin", alias: "builtin", tools }],
    policy: PolicySection.parse({ rules: [{ tools: ["clipboard_set"], callers: ["nobody"], action: "deny" }] }),
    asker,
    log: () => undefined,
  });
  await eventually("the agent's link", () => agent.state().link === "online");
  client = await connectV2(mcpUrl, token, "auto");
});

afterAll(async () => {
  await client?.close();
  await agent?.stop("the tests are over");
  await relay?.stop();
  await x?.stop();
  await files?.remove();
  process.env["PATH"] = before.path;
  if (before.display === undefined) delete process.env["DISPLAY"];
  else process.env["DISPLAY"] = before.display;
});

/** An `xdg-open` that writes down what it was given. */
async function fakeBrowser(directory: string): Promise<void> {
  const path = join(directory, "xdg-open");
  await writeFile(path, `#!/bin/sh\nprintf '%s\\n' "$#" "$1" > ${directory}/opened\n`);
  await chmod(path, 0o755);
}

interface Picture {
  width: number;
  height: number;
  /** Colour of the middle of each quarter. */
  middles: number[][];
}

function look(png: Buffer): Picture {
  const { width, height, data, channels } = decode(png, { checkCrc: true });
  const at = (fx: number, fy: number) => {
    const start = (Math.floor(height * fy) * width + Math.floor(width * fx)) * channels;
    return Array.from(data.subarray(start, start + 3));
  };
  return { width, height, middles: [at(0.25, 0.25), at(0.75, 0.25), at(0.25, 0.75), at(0.75, 0.75)] };
}

function imageOf(content: unknown): Buffer {
  const [item] = content as { type: string; mimeType: string; data: string }[];
  expect(item).toMatchObject({ type: "image", mimeType: "image/png" });
  return Buffer.from(item?.data ?? "", "base64");
}

async function textOf(name: string, args: Record<string, unknown> = {}): Promise<string> {
  const { content } = await client.callTool({ name, arguments: args });
  return (content as { text: string }[])[0]?.text ?? "";
}

test("each named tool is listed with annotations and an output schema", async () => {
  const { tools } = await client.listTools();
  expect(tools.map((tool) => tool.name).toSorted()).toEqual([
    "clipboard_get",
    "clipboard_set",
    "device_status",
    "open_url",
    "screenshot",
    "shell",
    "support_bundle",
  ]);
  for (const tool of tools) expect(tool.annotations && tool.outputSchema, tool.name).toBeTruthy();
});

describe("a screenshot", () => {
  test("shows what was drawn, scaled to the configured side", async () => {
    const shot = await eventually("the picture on the screen", async () => {
      const result = await client.callTool({ name: "screenshot", arguments: {} });
      const png = imageOf(result.content);
      return look(png).middles[0]?.[0] === QUARTERS[0]?.[0] && { result, png };
    });
    expect(look(shot.png)).toEqual({ width: 500, height: 300, middles: QUARTERS });
    expect(shot.result.structuredContent).toEqual({
      width: 500,
      height: 300,
      screenWidth: WIDTH,
      screenHeight: HEIGHT,
      bytes: shot.png.length,
    });
  });

  test("is smaller when the caller wants, and never larger than configured", async () => {
    const { content } = await client.callTool({ name: "screenshot", arguments: { maxSide: 100 } });
    expect(look(imageOf(content))).toEqual({ width: 100, height: 60, middles: QUARTERS });
    expect(await textOf("screenshot", { maxSide: 501 })).toContain("maxSide");
  });

  test.each(["maim", "scrot", "xwd"])("shows the same when it is taken by %s, within its bytes", async (program) => {
    const capture = findCapture({ platform: "linux", env: process.env, has: (name) => name === program });
    if (!capture.ok) throw new Error(capture.reason);
    const context = { signal: new AbortController().signal, agent: { watch: { add: () => undefined, remove: () => undefined } } };
    const take = async (maxBytes: number): Promise<Buffer> => {
      const tool = screenshotTool(capture.use, { maxSide: 8_000, maxBytes });
      // SAFETY: the tool uses nothing else of its context.
      const result: BuiltinResult = await tool.run({}, context as unknown as BuiltinContext);
      return imageOf(result.content);
    };
    const whole = await take(MAX_BYTES);
    expect(look(whole)).toEqual({ width: WIDTH, height: HEIGHT, middles: QUARTERS });
    const small = await take(700);
    expect(small.length).toBeLessThanOrEqual(700);
    expect(look(small).middles).toEqual(QUARTERS);
    expect(look(small).width).toBeLessThan(WIDTH);
  });
});

test("the clipboard is set and read, and stays when the tool has ended", async () => {
  const text = "Grüße\n\tand 😀";
  expect((await client.callTool({ name: "clipboard_set", arguments: { text } })).structuredContent).toEqual({
    bytes: Buffer.byteLength(text),
  });
  expect((await client.callTool({ name: "clipboard_get", arguments: {} })).structuredContent).toEqual({ text });
});

test("an address is opened as one argument, and nothing but http and https", async () => {
  const url = "https://example.com/?q=a b&$(reboot)";
  expect((await client.callTool({ name: "open_url", arguments: { url } })).structuredContent).toEqual({
    opened: "https://example.com/?q=a%20b&$(reboot)",
  });
  expect(await readFile(join(files.path, "opened"), "utf8")).toBe("1\nhttps://example.com/?q=a%20b&$(reboot)\n");
  expect(await textOf("open_url", { url: "file:///etc/passwd" })).toBe("Only http and https addresses are opened.");
});

describe("a shell command", () => {
  test("asks the person at the device, runs, and streams its output as progress", async () => {
    const steps: { progress: number; message?: string | undefined }[] = [];
    const command = "echo one; while [ ! -e two ]; do sleep 0.02; done; echo two";
    const run = client.callTool(
      { name: "shell", arguments: { command: `cd ${files.path} && ${command}` } },
      { onprogress: ({ progress, message }) => steps.push({ progress, message }) },
    );
    // The command waits for what the test does when the first line has come.
    await eventually("the first line", () => steps.length === 1);
    await writeFile(join(files.path, "two"), "");
    expect((await run).structuredContent).toMatchObject({ exitCode: 0, stdout: "one\ntwo\n" });
    expect(steps).toEqual([
      { progress: 4, message: "one\n" },
      { progress: 8, message: "two\n" },
    ]);
    expect(questions.at(-1)).toMatchObject({ caller: { label: "test" }, target: "shell" });
  });

  test("is refused with the reason when the person says no", async () => {
    says = { kind: "refused", why: "somebody at the device said no" };
    await expect(client.callTool({ name: "shell", arguments: { command: "true" } })).rejects.toMatchObject({
      code: 1008,
      data: { reason: "refused_by_device", outcome: "not_started", rule: "tools that run commands ask first" },
    });
  });
});

test("device status and support bundle arrive whole", async () => {
  const status = await client.callTool({ name: "device_status", arguments: {} });
  expect(status.structuredContent).toMatchObject({ system: { platform: process.platform } });
  const bundle = await client.callTool({ name: "support_bundle", arguments: {} });
  expect(bundle.content).toMatchObject([{ type: "resource", resource: { mimeType: "application/gzip" } }]);
});
