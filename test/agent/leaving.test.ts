/** An agent that is asked to stop while calls are open. */
import { expect, it } from "vitest";
import { callFrame } from "../support/fake-relay.ts";
import { connected, script } from "./harness.ts";

/** A tool that answers after `ms`. */
const SLOW = `
  import { createInterface } from "node:readline";
  const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n");
  for await (const line of createInterface({ input: process.stdin })) {
    const { id, method, params } = JSON.parse(line);
    if (method === "initialize")
      send({ id, result: { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "slow", version: "1" } } });
    else if (method === "tools/list") send({ id, result: { tools: [{ name: "wait", inputSchema: { type: "object" } }] } });
    else if (method === "tools/call") setTimeout(() => send({ id, result: { content: [] } }), params.arguments.ms);
    else if (id !== undefined) send({ id, error: { code: -32601, message: "no" } });
  }`;

it("gives them a moment, then says what became of each, and takes none any more", async () => {
  const { agent, handle } = await connected([script(SLOW)]);
  const short = agent.call({ method: "tools/call", target: "wait" }, { arguments: { ms: 300 } });
  const long = agent.call({ method: "tools/call", target: "wait" }, { arguments: { ms: 60_000 } });
  const half = callFrame({ method: "tools/call", target: "wait", bytes: 1_000_000 });
  agent.send(half);
  for (const id of [short, long]) await agent.next("ack", ({ callId }) => callId === id);
  const stopped = handle.stop("signal");
  expect((await agent.outcome(half.callId)).frame).toMatchObject({ reason: "agent_restarted", outcome: "not_started" });
  const late = agent.call({ method: "tools/call", target: "wait" }, { arguments: { ms: 0 } });
  expect((await agent.outcome(late)).frame).toMatchObject({ reason: "agent_restarted", outcome: "not_started" });
  expect((await agent.outcome(short)).frame).toMatchObject({ type: "result" });
  expect((await agent.outcome(long)).frame).toMatchObject({ reason: "agent_restarted", outcome: "unknown" });
  expect((await agent.next("bye")).frame.reason).toBe("signal");
  await stopped;
});

it("without calls it goes at once", async () => {
  const { agent, handle } = await connected([script(SLOW)]);
  await agent.next("catalogue");
  const stopped = handle.stop("signal");
  await agent.next("bye");
  await stopped;
});
