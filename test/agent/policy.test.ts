/** The device's last word on calls that a relay sends: denied, asked about, stopped, logged. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Answer, Asker, Question } from "../../src/agent/ask/question.ts";
import { PolicySection } from "../../src/agent/config/policy-section.ts";
import { ASKS_FIRST } from "../../src/agent/local-policy.ts";
import { resumeAll, stopAll } from "../../src/agent/stop-switch.ts";
import type { BuiltinTool, UpstreamConfig } from "../../src/agent/types.ts";
import type { AgentSocket } from "../support/fake-relay.ts";
import { eventually } from "../support/processes.ts";
import { connected, stateDir } from "./harness.ts";

const RULE = "tools that run commands ask first";

/** A tool that runs until it is cancelled, and one that answers at once; both count their runs. */
function tools() {
  const runs: string[] = [];
  const cancelled: string[] = [];
  const tool = (name: string, run: BuiltinTool["run"], more: Partial<BuiltinTool> = {}): BuiltinTool => ({
    name,
    description: name,
    inputSchema: { type: "object" },
    run: (args, context) => {
      runs.push(name);
      return run(args, context);
    },
    ...more,
  });
  const quick = () => ({ content: [{ type: "text", text: "done" }] });
  const endless: BuiltinTool["run"] = (_, { signal }) =>
    new Promise((_resolve, reject) => {
      signal.addEventListener("abort", () => {
        cancelled.push("endless");
        reject(new Error("aborted"));
      });
    });
  const upstream: UpstreamConfig = {
    kind: "builtin",
    alias: "tools",
    tools: [
      tool("look", quick, { annotations: { readOnlyHint: true } }),
      tool("act", quick),
      tool("command", quick, { _meta: { [ASKS_FIRST]: true } }),
      tool("endless", endless),
    ],
  };
  return { runs, cancelled, upstream };
}

/** A person whose answers a test gives. */
function person() {
  const questions: { question: Question; signal: AbortSignal; answer: (answer: Answer) => void }[] = [];
  const asker: Asker = { ask: (question, signal) => new Promise((answer) => questions.push({ question, signal, answer })) };
  const next = async (count: number) => await eventually(`question ${count}`, () => questions[count - 1]);
  return { asker, questions, next };
}

async function device(policy: unknown = {}, dir = stateDir()) {
  const made = tools();
  const asked = person();
  const started = await connected([made.upstream], {}, { policy: PolicySection.parse(policy), asker: asked.asker, stateDir: dir });
  const log = () =>
    readFileSync(join(dir, "calls.log"), "utf8")
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  return { ...started, ...made, person: asked, dir, log };
}

async function refusal(agent: AgentSocket, callId: string) {
  const { frame } = await agent.outcome(callId);
  return frame.type === "error" && frame.origin === "agent" ? frame : expect.fail(`${frame.type} instead of a refusal`);
}

test("a denied call is refused_by_device, not started, and says which rule", async () => {
  const { agent, runs, log } = await device({ rules: [{ tools: ["act"], callers: ["tests"], action: "deny" }] });
  const id = agent.call({ method: "tools/call", target: "act" }, { arguments: { secret: "value" } });
  expect(await refusal(agent, id)).toMatchObject({
    reason: "refused_by_device",
    outcome: "not_started",
    message: "The device refused this call: its policy does not allow it (policy.rules[1]).",
    data: { rule: "policy.rules[1]" },
  });
  expect(runs).toEqual([]);
  expect(log()).toMatchObject([{ event: "refused", callId: id, target: "act", caller: { label: "tests" }, rule: "policy.rules[1]" }]);
});

test("read-only mode lets through what calls itself read-only, and lists; a policy can be replaced while the agent runs", async () => {
  const { agent, handle, runs } = await device({ readOnly: true });
  expect((await refusal(agent, agent.call({ method: "tools/call", target: "act" }))).data).toEqual({ rule: "policy.readOnly" });
  for (const call of [{ method: "tools/call", target: "look" }, { method: "tools/list" }])
    expect((await agent.outcome(agent.call(call))).frame.type).toBe("result");
  handle.setPolicy(PolicySection.parse({}));
  expect((await agent.outcome(agent.call({ method: "tools/call", target: "act" }))).frame.type).toBe("result");
  expect(runs).toEqual(["look", "act"]);
});

test("a command asks first and runs when it is allowed; the log names the caller and no argument", async () => {
  const { agent, person: asked, runs, log } = await device();
  const id = agent.call({ method: "tools/call", target: "command" }, { arguments: { command: "hush-hush" } });
  const { question, answer } = await asked.next(1);
  expect(question).toMatchObject({ caller: { label: "tests" }, target: "command", argumentsText: '{"command":"hush-hush"}' });
  expect(runs).toEqual([]);
  answer({ kind: "allowed" });
  expect((await agent.outcome(id)).frame.type).toBe("result");
  expect(log()).toMatchObject([
    { event: "run", callId: id, rule: `${RULE}: allowed by a person` },
    { event: "end", callId: id, outcome: "result" },
  ]);
  expect(JSON.stringify(log())).not.toContain("hush");
});

test("a no, and no answer in time, are refusals that say so", async () => {
  const { agent, person: asked, runs } = await device({ askSeconds: 0.05 });
  const said = agent.call({ method: "tools/call", target: "command" });
  (await asked.next(1)).answer({ kind: "refused", why: "somebody at the device said no" });
  expect((await refusal(agent, said)).message).toBe(`The device refused this call: somebody at the device said no (${RULE}).`);
  const silent = agent.call({ method: "tools/call", target: "command" });
  expect(await refusal(agent, silent)).toMatchObject({
    outcome: "not_started",
    message: expect.stringContaining("nobody at the device answered") as string,
  });
  expect(runs).toEqual([]);
});

test("arguments are logged when the config asks for them", async () => {
  const { agent, log } = await device({ logArguments: true });
  await agent.outcome(agent.call({ method: "tools/call", target: "act" }, { arguments: { path: "/tmp" } }));
  expect(log()[0]).toMatchObject({ event: "run", arguments: '{"path":"/tmp"}' });
});

test("a cancelled call withdraws its question and never runs, whatever is answered then", async () => {
  const { agent, person: asked, runs } = await device();
  const id = agent.call({ method: "tools/call", target: "command" });
  const { signal, answer } = await asked.next(1);
  agent.send({ type: "cancel", callId: id, reason: "caller_asked" });
  await eventually("the question's end", () => signal.aborted);
  answer({ kind: "allowed" });
  expect((await agent.outcome(agent.call({ method: "tools/call", target: "act" }))).frame.type).toBe("result");
  expect(runs).toEqual(["act"]);
});

test("a call that runs out of time while a person thinks was not started", async () => {
  const { agent, person: asked, runs } = await device();
  const id = agent.call({ method: "tools/call", target: "command", timeoutMs: 50 });
  const { signal } = await asked.next(1);
  expect(await refusal(agent, id)).toMatchObject({ reason: "device_timeout", outcome: "not_started" });
  expect(signal.aborted).toBe(true);
  expect(runs).toEqual([]);
});

test("stopping ends what runs and refuses what comes, until it is taken back", async () => {
  const { agent, runs, cancelled, dir, events } = await device();
  const running = agent.call({ method: "tools/call", target: "endless" });
  await eventually("the call's start", () => runs.includes("endless"));
  stopAll(dir);
  expect(await refusal(agent, running)).toMatchObject({
    reason: "refused_by_device",
    message: "The device ended this call: somebody stopped all calls at the device.",
  });
  expect(cancelled).toEqual(["endless"]);
  expect(await refusal(agent, agent.call({ method: "tools/call", target: "act" }))).toMatchObject({
    outcome: "not_started",
    data: { rule: "stopped" },
  });
  expect((await agent.outcome(agent.call({ method: "tools/list" }))).frame.type).toBe("result");
  resumeAll(dir);
  expect((await agent.outcome(agent.call({ method: "tools/call", target: "act" }))).frame.type).toBe("result");
  expect(events.filter((event) => event.type === "stopped")).toEqual([
    { type: "stopped", isStopped: true },
    { type: "stopped", isStopped: false },
  ]);
});

test("a stop outlives a restart of the agent", async () => {
  const dir = stateDir();
  const first = await device({}, dir);
  stopAll(dir);
  await first.handle.stop("restart");
  const { agent } = await device({}, dir);
  expect((await refusal(agent, agent.call({ method: "tools/call", target: "act" }))).data).toEqual({ rule: "stopped" });
});

test("without a terminal a dialog on the desktop asks, and its typed word allows", async () => {
  const dir = stateDir();
  // Types the word that it is shown.
  const script = `#!/bin/sh\nfor arg; do case $arg in --text=*) echo "$arg" | sed -n 's/^Type \\(.*\\) to allow it\\.$/\\1/p' ;; esac; done\n`;
  writeFileSync(join(dir, "zenity"), script, { mode: 0o755 });
  const before = { PATH: process.env["PATH"], DISPLAY: process.env["DISPLAY"] };
  process.env["PATH"] = `${dir}:${before.PATH}`;
  process.env["DISPLAY"] = ":none";
  try {
    const made = tools();
    const { agent } = await connected([made.upstream]);
    expect((await agent.outcome(agent.call({ method: "tools/call", target: "command" }))).frame.type).toBe("result");
    writeFileSync(join(dir, "zenity"), "#!/bin/sh\nexit 1\n", { mode: 0o755 });
    expect((await refusal(agent, agent.call({ method: "tools/call", target: "command" }))).message).toContain(
      "somebody at the device said no",
    );
    expect(made.runs).toEqual(["command"]);
  } finally {
    process.env["PATH"] = before.PATH;
    if (before.DISPLAY === undefined) delete process.env["DISPLAY"];
    else process.env["DISPLAY"] = before.DISPLAY;
  }
});

test("without a terminal and a desktop a command is refused with the reason", async () => {
  const made = tools();
  const [display, wayland] = [process.env["DISPLAY"], process.env["WAYLAND_DISPLAY"]];
  delete process.env["DISPLAY"];
  delete process.env["WAYLAND_DISPLAY"];
  try {
    const { agent } = await connected([made.upstream]);
    const { message } = await refusal(agent, agent.call({ method: "tools/call", target: "command" }));
    expect(message).toBe(`The device refused this call: the agent has no terminal and no desktop to ask on (${RULE}).`);
  } finally {
    if (display !== undefined) process.env["DISPLAY"] = display;
    if (wayland !== undefined) process.env["WAYLAND_DISPLAY"] = wayland;
  }
});
