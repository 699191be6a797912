/** What a stranger sends who builds requests by hand: at a real socket, where nothing tidies them up on the way. */
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually } from "../support/processes.ts";
import { type RelayProcess, startRelay } from "../support/relay-process.ts";

const LIST = '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}';
const DEADLINE_MS = 5_000;

let relay: RelayProcess;
let own: Awaited<ReturnType<RelayProcess["createToken"]>>;
let host: string;

beforeAll(async () => {
  relay = await startRelay();
  ({ host } = new URL(relay.url));
  await relay.addDevice("one");
  await relay.addDevice("two");
  own = await relay.createToken("one", ["--tools", "echo"]);
});
afterAll(() => relay.stop());

/** Sends bytes and gives the status of what comes back. */
function statusOf(text: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(relay.url);
    const socket = connect({ host: hostname, port: Number(port), timeout: DEADLINE_MS });
    let answer = "";
    socket.on("timeout", () => socket.destroy(new Error(`no end within ${DEADLINE_MS} ms of: ${answer}`)));
    socket.on("data", (data) => {
      answer += data.toString("latin1");
      const status = /^HTTP\/1\.1 (\d{3}) .*\r\n/.exec(answer)?.[1];
      if (status === undefined) return;
      socket.destroy();
      resolve(Number(status));
    });
    socket.on("error", reject);
    socket.on("close", () => reject(new Error(`closed after: ${answer}`)));
    socket.write(text);
  });
}

function post(path: string, body = LIST): string {
  const headers = [
    `Host: ${host}`,
    `Authorization: Bearer ${own.token}`,
    "Content-Type: application/json",
    "Accept: application/json, text/event-stream",
    `Content-Length: ${Buffer.byteLength(body)}`,
    "Connection: close",
  ];
  return `POST ${path} HTTP/1.1\r\n${headers.join("\r\n")}\r\n\r\n${body}`;
}

test.each(["/mcp/one", "/mcp/%6f%6e%65", "/mcp/two/../one", "/mcp/one/"])("%s is the device of the token", async (path) => {
  expect(await statusOf(post(path))).toBe(200);
});

test.each([
  "/mcp/..%2fapi%2fdevices",
  "/mcp/../api/devices",
  "/mcp/%2e%2e/api/devices",
  "/mcp/one/../two",
  "/mcp/one%2f..%2ftwo",
  "/mcp/one%00",
  "/mcp/one%20",
  "/mcp//one",
  "//mcp/one",
  "/mcp/one;x=1",
  "/mcp/one%5c",
  "/mcp/%E0%80%AF",
  "/mcp/%zz",
  "/mcp/ONE",
  "/mcp/\u043ene",
  "/mcp/\uff4f\uff4e\uff45",
  "/mcp/__proto__",
  `/mcp/${"a".repeat(10_000)}`,
  "/do/set/record",
])("%s opens nothing", async (path) => {
  expect([401, 404]).toContain(await statusOf(post(path)));
});

test.each([
  ["a foreign host", "GET /health HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n"],
  ["two hosts", "GET /health HTTP/1.1\r\nHost: {host}\r\nHost: evil.example\r\nConnection: close\r\n\r\n"],
  ["a user in the host", "GET /health HTTP/1.1\r\nHost: {host}@evil.example\r\nConnection: close\r\n\r\n"],
  ["a whole address as the target", "GET http://evil.example/health HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"],
  ["two lengths", "POST /mcp/one HTTP/1.1\r\nHost: {host}\r\nContent-Length: 5\r\nContent-Length: 60\r\nConnection: close\r\n\r\nabcde"],
  ["a folded header", "POST /mcp/one HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding:\r\n chunked\r\nConnection: close\r\n\r\n0\r\n\r\n"],
])("%s is refused", async (_name, text) => {
  expect(await statusOf(text.replaceAll("{host}", host))).toBeGreaterThanOrEqual(400);
});

describe("a request that cannot be read", () => {
  test("writes nothing but text on the terminal of whoever runs the relay", async () => {
    const before = relay.process.output.stderr.length;
    await statusOf("GET /health HTTP/1.1\r\nHost: \u001b[31mred\u001b]0;title\u0007\r\nConnection: close\r\n\r\n");
    const line = await eventually("the runtime's line", () => /invalid hostname.*/.exec(relay.process.output.stderr.slice(before))?.[0]);
    expect(line).toContain("red");
    // oxlint-disable-next-line no-control-regex -- what must not be there
    expect(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/.test(relay.process.output.stderr)).toBe(false);
  });
});
