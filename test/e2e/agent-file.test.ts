/** The agent in one file: fetched from a relay into an empty folder, and run there by a Node 20 that has nothing else. */
import { copyFile, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { modernRequest, readMessages } from "../support/clients.ts";
import { node20 } from "../support/node-20.ts";
import { eventually, startProcess, temporaryDir, type RunningProcess } from "../support/processes.ts";
import { longline, startRelay, type RelayProcess } from "../support/relay-process.ts";

const SERVER = join(import.meta.dirname, "../fixtures/upstream/counting.mjs");

let relay: RelayProcess;
let folder: Awaited<ReturnType<typeof temporaryDir>>;
beforeAll(async () => {
  relay = await startRelay();
  folder = await temporaryDir();
  const response = await fetch(`${relay.url}/agent.mjs`);
  expect(response.status).toBe(200);
  expect(response.headers.get("content-type")).toBe("text/javascript; charset=utf-8");
  await writeFile(join(folder.path, "agent.mjs"), await response.text());
  await copyFile(SERVER, join(folder.path, "server.mjs"));
});
afterAll(async () => {
  await relay.stop();
  await folder.remove();
});

/** Starts the file in its folder, with an environment that knows no package and keeps its state there. */
function start(args: readonly string[], env: Record<string, string | undefined> = {}): RunningProcess {
  return startProcess(node20(), ["agent.mjs", ...args], {
    cwd: folder.path,
    env: { NODE_PATH: undefined, NODE_OPTIONS: undefined, HOME: folder.path, XDG_STATE_HOME: join(folder.path, "state"), ...env },
  });
}

async function call(mcpUrl: string, token: string, key: string): Promise<unknown> {
  const counts = { name: "count", arguments: { key } };
  return (await readMessages(await fetch(mcpUrl, modernRequest(token, "tools/call", counts)))).at(-1);
}

test("with a key it fronts a stdio server, and writes nothing but its state", async () => {
  const { deviceKey, mcpUrl } = await relay.addDevice("board");
  const { token } = await relay.createToken("board");
  const agent = start(["--relay", relay.url, "--json", "--", node20(), "server.mjs", "counts"], { LONGLINE_DEVICE_KEY: deviceKey });
  expect(JSON.parse(await agent.line("stdout", () => true))).toEqual({ state: "online", device: "board", mcpUrl });
  expect(await call(mcpUrl, token, "k1")).toMatchObject({ result: { content: [{ text: "k1::k1" }] } });
  expect((await readdir(folder.path)).toSorted()).toEqual(["agent.mjs", "counts", "server.mjs", "state"]);
  expect(await agent.stop()).toEqual({ code: 0, signal: null });
  expect(agent.output.stderr).not.toContain("Warning");
});

test("without a key it is paired, and the next start finds the key", async () => {
  const args = ["--relay", relay.url, "--pair-as", "phone", "--json", "--", node20(), "server.mjs", "counts"];
  const first = start(args);
  const command = await first.line("stderr", (line) => line.includes("longline device approve"));
  const [, code = "", screen = ""] = /approve (\S+) --screen (\S+)/.exec(command) ?? [];
  const approved = await longline(["device", "approve", code, "--screen", screen, "--json"], { env: relay.env });
  expect(approved.code, approved.stderr).toBe(0);
  const online = JSON.parse(await first.line("stdout", () => true)) as { mcpUrl: string };
  expect(online).toMatchObject({ state: "online", device: "phone" });
  await first.stop();
  const second = start(args);
  expect(JSON.parse(await second.line("stdout", () => true))).toEqual(online);
  const { token } = await relay.createToken("phone");
  const answer = await eventually("an answer", async () => await call(online.mcpUrl, token, "k2"));
  expect(answer).toMatchObject({ result: { content: [{ text: "k2::k2" }] } });
  await second.stop();
});

test("a copy that is current is not sent again", async () => {
  const first = await fetch(`${relay.url}/agent.mjs`);
  await first.body?.cancel();
  const etag = first.headers.get("etag") ?? "";
  const again = await fetch(`${relay.url}/agent.mjs`, { headers: { "if-none-match": etag } });
  expect(again.status).toBe(304);
});
