/** A phone that sleeps: a call posts to its wake URL, whoever listens there starts the agent, and the call is answered. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { modernRequest, readMessages } from "../support/clients.ts";
import { longline, startAgent, startRelay, type AgentProcess, type RelayProcess } from "../support/relay-process.ts";

let relay: RelayProcess;
let agent: Promise<AgentProcess> | undefined;
let service: Server;
let deviceKey: string;
let mcpUrl: string;
let token: string;
const heard: string[] = [];
beforeAll(async () => {
  relay = await startRelay();
  ({ deviceKey, mcpUrl } = await relay.addDevice("phone"));
  ({ token } = await relay.createToken("phone"));
  // A device has to have been there once.
  const first = await startAgent({ relay: relay.url, deviceKey, args: ["--demo"] });
  await first.stop();
  service = createServer((request, response) => {
    request.setEncoding("utf8").on("data", (text: string) => heard.push(text));
    response.writeHead(302, { location: "http://127.0.0.1:1/elsewhere" }).end();
    agent ??= startAgent({ relay: relay.url, deviceKey, args: ["--demo"] });
  });
  await new Promise<void>((resolve) => service.listen(0, "127.0.0.1", resolve));
});
afterAll(async () => {
  await (await agent)?.stop();
  await new Promise((resolve) => service.close(resolve));
  await relay.stop();
});

test("the call that wakes it gets its answer, and the address is shown without its path", async () => {
  const wakeUrl = `http://127.0.0.1:${(service.address() as AddressInfo).port}/secret-topic`;
  const set = await longline(["device", "set", "phone", "--wake-url", wakeUrl], { env: relay.env });
  expect(set.code, set.stderr).toBe(0);
  expect(set.stdout).toContain("/…");
  expect(set.stdout).not.toContain("secret-topic");
  const request = modernRequest(token, "tools/call", { name: "echo", arguments: { text: "wake up" } });
  const [answer] = (await readMessages(await fetch(mcpUrl, request))).slice(-1);
  expect(JSON.stringify(answer)).toContain("wake up");
  expect(heard).toEqual([JSON.stringify({ event: "call", device: "phone" })]);
});

test("an address that is not https on the public internet is refused with the reason, and off takes it away", async () => {
  const refused = await longline(["device", "set", "phone", "--wake-url", "http://192.168.1.2/wake"], { env: relay.env });
  expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining("https") });
  const off = await longline(["device", "set", "phone", "--wake-url", "off", "--json"], { env: relay.env });
  expect((JSON.parse(off.stdout) as { settings: object }).settings).not.toHaveProperty("wakeUrl");
});
