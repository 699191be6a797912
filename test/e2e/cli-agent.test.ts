/** `longline agent` as a process: what it prints, how it ends, and where its secrets go. */
import { chmod, readFile, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { modernRequest } from "../support/clients.ts";
import { eventually, temporaryDir, type RunningProcess } from "../support/processes.ts";
import { longline, startAgent, startLongline, startRelay, type RelayProcess } from "../support/relay-process.ts";

let relay: RelayProcess;
let home: Awaited<ReturnType<typeof temporaryDir>>;
const started: RunningProcess[] = [];

beforeAll(async () => {
  home = await temporaryDir();
  relay = await startRelay();
});
afterEach(async () => {
  await Promise.all(started.splice(0).map(async (run) => await run.stop()));
});
afterAll(async () => {
  await relay.stop();
  await home.remove();
});

test("says on stdout that it is online, and once; what it does goes to stderr, without secrets", async () => {
  const { device, deviceKey, mcpUrl } = await relay.addDevice("bench");
  const { token } = await relay.createToken(device);
  const agent = await startAgent({ relay: relay.url, deviceKey, args: ["--demo"] });
  started.push(agent.process);
  expect({ device: agent.device, mcpUrl: agent.mcpUrl }).toEqual({ device, mcpUrl });

  const status = JSON.parse((await longline(["status", device, "--json"], { env: relay.env })).stdout) as object;
  expect(status).toMatchObject({ device, state: "online", generation: 1, upstreams: [{ alias: "default", state: "ready" }] });

  const secret = "a-secret-argument";
  const answer = await fetch(mcpUrl, modernRequest(token, "tools/call", { name: "echo", arguments: { text: secret } }));
  expect(await answer.text()).toContain(secret);
  await agent.process.line("stderr", (line) => /^done echo for test after \d+ ms$/.test(line));

  agent.process.child.kill("SIGINT");
  expect(await agent.process.ended()).toEqual({ code: 0, signal: null });
  const { stdout, stderr } = agent.process.output;
  expect(stdout).toBe(`${JSON.stringify({ state: "online", device, mcpUrl })}\n`);
  for (const text of [deviceKey, token, secret]) expect(stderr).not.toContain(text);
  expect((await stat(agent.stateDir)).mode & 0o077).toBe(0);
  await eventually("the device is shown offline", async () =>
    (await longline(["status", device, "--json"], { env: relay.env })).stdout.includes('"offline"'),
  );
  await agent.stop();
});

test("a key that the relay does not know ends it with 3", async () => {
  const run = startLongline(["agent", "--relay", relay.url, "--state", join(home.path, "unknown"), "--demo"], {
    env: { LONGLINE_DEVICE_KEY: `llk_${"0".repeat(32)}_${"A".repeat(43)}` },
  });
  started.push(run);
  expect((await run.ended()).code).toBe(3);
  expect(run.output.stdout).toBe("");
  expect(run.output.stderr).not.toContain("AAAA");
});

test("removing the device ends its agent with 3", async () => {
  const { device, deviceKey } = await relay.addDevice("short-lived");
  const agent = await startAgent({ relay: relay.url, deviceKey, args: ["--demo"] });
  started.push(agent.process);
  expect((await longline(["device", "remove", device], { env: relay.env })).code).toBe(0);
  expect((await agent.process.ended()).code).toBe(3);
  await agent.stop();
});

test("key and upstream credentials come from files; the upstream gets its own, and never the caller's", async () => {
  const seen: (string | undefined)[] = [];
  const upstream = createServer((request, response) => {
    seen.push(request.headers.authorization);
    response.writeHead(503).end();
  });
  await new Promise<void>((done) => upstream.listen(0, "127.0.0.1", done));
  const address = upstream.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const { deviceKey } = await relay.addDevice("with-files");
  await writeFile(join(home.path, "key"), `${deviceKey}\n`, { mode: 0o600 });
  await writeFile(join(home.path, "headers"), "Authorization: Bearer upstream-secret\n");
  await chmod(join(home.path, "headers"), 0o644);

  const args = ["agent", "--relay", relay.url, "--state", join(home.path, "with-files"), "--key-file", "key"];
  const run = startLongline([...args, "--upstream", `http://127.0.0.1:${port}/mcp`, "--upstream-headers", "headers"], { cwd: home.path });
  started.push(run);
  await eventually("the upstream was asked", () => seen.length > 0);
  expect(new Set(seen)).toEqual(new Set(["Bearer upstream-secret"]));
  await run.line("stderr", (line) => line.includes("chmod 600"));
  await run.stop();
  for (const text of [deviceKey, "upstream-secret"]) expect(run.output.stderr + run.output.stdout).not.toContain(text);
  upstream.close();
});

test("the key is nowhere on the command line or in the agent's state", async () => {
  const { deviceKey } = await relay.addDevice("quiet");
  const agent = await startAgent({ relay: relay.url, deviceKey, args: ["--demo"] });
  started.push(agent.process);
  expect(await readFile(`/proc/${agent.process.pid}/cmdline`, "utf8")).not.toContain(deviceKey);
  await agent.stop();
});
