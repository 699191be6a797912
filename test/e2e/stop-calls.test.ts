/** "Stop all now": typed into the agent's terminal, and from another one. */
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { answerOf, postTool } from "../support/modern-call.ts";
import { startProcess, temporaryDir, type RunningProcess } from "../support/processes.ts";
import { longline, startRelay, type RelayProcess } from "../support/relay-process.ts";

const COMMAND = join(import.meta.dirname, "../../bin/longline.cjs");

let relay: RelayProcess;
let files: Awaited<ReturnType<typeof temporaryDir>>;
let agent: RunningProcess;
let state: string;
let at: { mcpUrl: string; token: string };

beforeAll(async () => {
  files = await temporaryDir();
  state = join(files.path, "state");
  relay = await startRelay();
  const { device, deviceKey } = await relay.addDevice("desk");
  at = await relay.createToken(device);
  // A terminal of its own, as `script` makes one; what is written to it is typed.
  const command = `'${process.execPath}' '${COMMAND}' agent --demo --relay ${relay.url} --state '${state}'`;
  agent = startProcess("script", ["--quiet", "--flush", "--return", "--command", command, "/dev/null"], {
    stdin: "pipe",
    env: { LONGLINE_DEVICE_KEY: deviceKey },
  });
  await agent.line("stdout", (line) => line.includes("online as desk"));
});

afterAll(async () => {
  await agent?.stop();
  await relay?.stop();
  await files?.remove();
});

async function echo(): Promise<Record<string, unknown>> {
  return await answerOf(await postTool(at, "echo", { text: "hi" }));
}

const refused = { error: { code: 1008, data: { reason: "refused_by_device", outcome: "not_started", rule: "stopped" } } };

test("`stop` and Enter in the terminal ends what runs and refuses what comes; `resume` takes it back", async () => {
  const running = postTool(at, "count", { to: 100, pauseMs: 1_000 });
  await agent.line("stdout", (line) => line.includes("call count"));
  agent.child.stdin?.write("stop\n");
  expect(await answerOf(await running)).toMatchObject({ error: { code: 1008, data: { reason: "refused_by_device", outcome: "unknown" } } });
  expect(await echo()).toMatchObject(refused);
  agent.child.stdin?.write("resume\n");
  await agent.line("stdout", (line) => line.includes("resumed"));
  expect(await echo()).toMatchObject({ result: { content: [{ text: "hi" }] } });
});

test("`agent --stop-all` does the same from elsewhere, and `--resume` takes it back", async () => {
  expect((await longline(["agent", "--stop-all", "--state", state])).stdout).toContain("Stopped all calls of the agent.");
  expect(await echo()).toMatchObject(refused);
  expect((await longline(["agent", "--resume", "--state", state])).stdout).toContain("run again");
  expect(await echo()).toMatchObject({ result: {} });
});

test("where no agent was ever run there is nothing to stop", async () => {
  const { code, stderr } = await longline(["agent", "--stop-all"], { env: { XDG_STATE_HOME: join(files.path, "empty") } });
  expect({ code, stderr }).toEqual({ code: 4, stderr: expect.stringContaining("No agent was ever run here.") as string });
});
