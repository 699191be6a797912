/** Payloads of every size both ways, slow readers on either end, and small frames, through real processes. */
import net from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { runAgent } from "../../src/agent/run-agent.ts";
import { CALL, EDGE, TUNNEL } from "../../src/limits.ts";
import { modernRequest, readMessages } from "../support/clients.ts";
import { counting, type Counting } from "../support/counting.ts";
import { eventually, temporaryDir } from "../support/processes.ts";
import { longline, startAgent, startRelay, type AgentProcess, type RelayProcess } from "../support/relay-process.ts";

const MIB = 1024 * 1024;
let dir: Awaited<ReturnType<typeof temporaryDir>>;
let relay: RelayProcess;
let agent: AgentProcess;
let upstream: Counting;
let mcpUrl: string;
let token: string;

beforeAll(async () => {
  dir = await temporaryDir();
  upstream = counting(dir.path);
  relay = await startRelay();
  const device = await relay.addDevice("pi");
  ({ mcpUrl } = device);
  ({ token } = await relay.createToken("pi"));
  agent = await startAgent({ relay: relay.url, deviceKey: device.deviceKey, args: upstream.args });
});

afterAll(async () => {
  await agent.stop();
  await relay.stop();
  await dir.remove();
});

interface Work {
  key: string;
  ms?: number;
  steps?: number;
  bytes?: number;
  fill?: string;
  pad?: string;
}

function request(work: Work, of = token): ReturnType<typeof modernRequest> {
  return modernRequest(of, "tools/call", { name: "count", arguments: work });
}

/** The text of a call's result; its error, as it is, when it failed. */
async function call(work: Work, url = mcpUrl, of = token): Promise<unknown> {
  const answer = (await readMessages(await fetch(url, request(work, of)))).at(-1) ?? {};
  return (answer["result"] as { content: { text: string }[] } | undefined)?.content[0]?.text ?? answer["error"];
}

/** Compares without printing megabytes. */
function isText(text: unknown, { key, bytes = 0, fill = "x" }: Work): boolean {
  return text === `${key}:${fill.repeat(bytes)}:${key}`;
}

describe("results", () => {
  test.each([
    ["900 KB", { bytes: 900_000 }],
    ["1 MiB", { bytes: MIB }],
    ["1 MiB and a byte", { bytes: MIB + 1 }],
    ["8 MiB", { bytes: 8 * MIB }],
    ["31 MiB", { bytes: 31 * MIB }],
    ["12 MiB of what JSON escapes", { bytes: 2 * MIB, fill: "\u0000" }],
    ["9 MiB of characters of several bytes", { bytes: MIB, fill: "ä€😀" }],
  ])("of %s come whole while a call runs beside them", async (name, size) => {
    const beside = call({ key: `beside ${name}`, ms: 300 });
    const work = { key: name, ...size };
    expect(isText(await call(work), work)).toBe(true);
    expect(await beside).toBe(`beside ${name}::beside ${name}`);
    expect(upstream.runs(name)).toBe(1);
  });

  test("over the cap fail alone, with both sizes; the tunnel stays", async () => {
    const before = await generation();
    const beside = call({ key: "beside 33", ms: 500 });
    const error = await call({ key: "33 MiB", bytes: 33 * MIB });
    expect(error).toMatchObject({ code: 1005, data: { reason: "too_large", outcome: "unknown", cap: CALL.maxResultBytes } });
    expect((error as { data: { size: number } }).data.size).toBeGreaterThan(33 * MIB);
    expect(await beside).toBe("beside 33::beside 33");
    expect(await generation()).toBe(before);
  });
});

describe("requests", () => {
  test.each([300_000, 2 * MIB, EDGE.maxRequestBytes - 1_000])("of %d bytes arrive", async (size) => {
    const key = `request ${size}`;
    expect(await call({ key, pad: "x".repeat(size) })).toBe(`${key}::${key}`);
    expect(upstream.runs(key)).toBe(1);
  });

  test.each([1, 2, 3])("of %i times the cap are 413, also when their length is not announced, and nothing runs", async (times) => {
    const tooLarge = request({ key: "too large", pad: "x".repeat(times * EDGE.maxRequestBytes) });
    const chunked = { ...tooLarge, body: new Blob([tooLarge.body]).stream(), duplex: "half" } as RequestInit;
    for (const each of [tooLarge, chunked]) {
      const response = await fetch(mcpUrl, each);
      await response.body?.cancel();
      expect([response.status, upstream.runs("too large")]).toEqual([413, 0]);
    }
  });

  test("without a token are 401 at any size", async () => {
    const response = await fetch(mcpUrl, { ...request({ key: "no token", pad: "x".repeat(EDGE.maxRequestBytes / 2) }), headers: {} });
    await response.body?.cancel();
    expect(response.status).toBe(401);
  });
});

describe("a slow reader", () => {
  test("holds back its own call only, and gets its answer whole", async () => {
    const work = { key: "slow reader", bytes: 6 * MIB };
    const slow = await slowly(work);
    for (let count = 0; count < 20; count += 1) expect(await call({ key: `quick ${count}` })).toBe(`quick ${count}::quick ${count}`);
    const big = { key: "big beside slow", bytes: 3 * MIB };
    expect(isText(await call(big), big)).toBe(true);
    const body = await slow.finish();
    expect(body).toContain(`${work.key}:${"x".repeat(1_000)}`);
    expect(body.length).toBeGreaterThan(work.bytes);
  });

  test("that leaves costs nothing more: the call ends, and the device is idle", async () => {
    const slow = await slowly({ key: "leaving reader", bytes: 20 * MIB });
    slow.socket.destroy();
    await eventually("the device is idle", async () => (await status())["inFlight"] === 0);
    expect(await call({ key: "after it" })).toBe("after it::after it");
  });
});

test("an agent that stands still for a moment costs no call, and what it has not taken waits", async () => {
  const calls = ["a", "b", "c"].map((name) => call({ key: `still ${name}`, ms: 1_500, bytes: 200_000 }));
  await eventually("the calls run", () => ["a", "b", "c"].every((name) => upstream.runs(`still ${name}`) === 1));
  agent.process.child.kill("SIGSTOP");
  setTimeout(() => agent.process.child.kill("SIGCONT"), 2_500);
  const texts = await Promise.all(calls);
  expect(texts.map((text, at) => isText(text, { key: `still ${"abc"[at]}`, bytes: 200_000 }))).toEqual([true, true, true]);
});

describe("a board with frames of 4 KiB and two calls at once", () => {
  test("takes large requests, gives large results, and calls beyond its number wait their turn", async () => {
    const device = await relay.addDevice("board");
    const { token: first } = await relay.createToken("board");
    const { token: second } = await relay.createToken("board");
    const [, command = "", ...args] = counting(dir.path, "legacy").args;
    const board = await runAgent({
      relay: new URL(relay.url),
      deviceKey: device.deviceKey,
      stateDir: `${dir.path}/board`,
      upstreams: [{ kind: "stdio", alias: "board", command, args }],
      log: () => undefined,
      maxFrameBytes: TUNNEL.minFrameBytes,
      maxConcurrentCalls: 2,
    });
    try {
      await eventually("the board is online", () => board.state().link === "online");
      const work = { key: "board", bytes: 300_000, fill: "é", pad: "é".repeat(150_000) };
      expect(isText(await call(work, device.mcpUrl, first), work)).toBe(true);
      const many = Array.from({ length: 8 }, (_none, at) => call({ key: `turn ${at}`, ms: 100 }, device.mcpUrl, at % 2 ? first : second));
      expect(await Promise.all(many)).toEqual(Array.from({ length: 8 }, (_none, at) => `turn ${at}::turn ${at}`));
    } finally {
      await board.stop("the test is over");
    }
  });
});

async function status(): Promise<Record<string, unknown>> {
  const { stdout } = await longline(["status", "pi", "--json"], { env: relay.env });
  return JSON.parse(stdout) as Record<string, unknown>;
}

async function generation(): Promise<unknown> {
  return (await status())["generation"];
}

/** A client that has read the head of its answer and then nothing; `finish` reads the rest. */
async function slowly(work: Work): Promise<{ socket: net.Socket; finish(): Promise<string> }> {
  const { headers, body } = request(work);
  const url = new URL(mcpUrl);
  const socket = net.connect({ host: url.hostname, port: Number(url.port) });
  const lines = [["host", url.host], ["connection", "close"], ["content-length", Buffer.byteLength(body)], ...Object.entries(headers)];
  socket.write(`POST ${url.pathname} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n${body}`);
  let text = "";
  await new Promise<void>((resolve, reject) => {
    socket.once("error", reject);
    socket.once("data", (bytes: Buffer) => {
      text += bytes.toString("latin1");
      socket.pause();
      resolve();
    });
  });
  return {
    socket,
    finish: () =>
      new Promise((resolve, reject) => {
        socket.on("data", (bytes: Buffer) => (text += bytes.toString("latin1")));
        socket.once("close", () => resolve(text));
        socket.once("error", reject);
        socket.resume();
      }),
  };
}
