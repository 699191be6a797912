import { spawn } from "node:child_process";
import { expect, test, vi } from "vitest";
import { within } from "../support/deadline.ts";
import { DEVICE_KEY, startRelay, stateDir } from "./harness.ts";
import { rawServer } from "./raw-server.ts";

const RUN_AGENT = new URL("../../src/agent/run-agent.ts", import.meta.url).href;

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

test("an agent that is killed leaves no tool server behind", async () => {
  const relay = await startRelay();
  const server = rawServer(`process.on("SIGTERM", () => {}); setInterval(() => {}, 1000); tool((m) => reply(m.id, text(process.pid)));`);
  const config = { kind: "stdio", alias: "s", command: process.execPath, args: ["--input-type=module", "-e", server], isolation: "shared" };
  const options = `{ relay: new URL(${JSON.stringify(relay.url)}), deviceKey: ${JSON.stringify(DEVICE_KEY)}, stateDir: ${JSON.stringify(stateDir())}, upstreams: [${JSON.stringify(config)}], log: () => {} }`;
  const code = `import { runAgent } from ${JSON.stringify(RUN_AGENT)}; await runAgent(${options});`;
  const agentProcess = spawn(process.execPath, ["--input-type=module", "-e", code], { stdio: "inherit" });
  const { agent } = await relay.agent();
  const { payload } = await agent.outcome(agent.call({ method: "tools/call", target: "t" }));
  const pid = Number((JSON.parse(payload) as { content: [{ text: string }] }).content[0].text);
  expect(isAlive(pid)).toBe(true);
  const gone = new Promise((resolve) => {
    agentProcess.once("exit", resolve);
  });
  agentProcess.kill("SIGKILL");
  await within(5_000, "the agent's end", gone);
  await vi.waitFor(() => expect(isAlive(pid)).toBe(false), 10_000);
});
