import { describe, expect, test } from "vitest";
import type { BuiltinTool, UpstreamConfig } from "../../src/agent/types.ts";
import { payloadText } from "../../src/tunnel/codec.ts";
import { newCallId } from "../../src/tunnel/frames.ts";
import { within } from "../support/deadline.ts";
import { callFrame, legacyClient } from "../support/fake-relay.ts";
import { builtin, connected, startAgent, startRelay, stateDir } from "./harness.ts";

/** Tools whose end a test decides, with a count of their starts. */
function controlled(): { upstream: UpstreamConfig; runs: () => number; release: () => void; aborted: Promise<unknown> } {
  let runs = 0;
  const released = Promise.withResolvers<void>();
  const aborted = Promise.withResolvers<unknown>();
  const tool: BuiltinTool = {
    name: "wait",
    description: "waits",
    inputSchema: { type: "object" },
    run: async (_args, context) => {
      runs += 1;
      context.progress(runs, 10);
      context.signal.addEventListener("abort", () => aborted.resolve(context.signal.reason));
      await Promise.race([released.promise, aborted.promise]);
      return { content: [{ type: "text", text: `run ${runs}` }] };
    },
  };
  const big: BuiltinTool = {
    name: "big",
    description: "big",
    inputSchema: { type: "object" },
    run: ({ size }) => ({ content: [{ type: "text", text: "x".repeat(Number(size)) }] }),
  };
  return {
    upstream: { kind: "builtin", alias: "t", tools: [tool, big] },
    runs: () => runs,
    release: released.resolve,
    aborted: aborted.promise,
  };
}

describe("at most once", () => {
  test("a call survives a cut link: it is held, attached, answered, and ran once", async () => {
    const { upstream, runs, release } = controlled();
    const { agent, relay } = await connected([upstream]);
    const callId = agent.call({ method: "tools/call", target: "wait", progress: true });
    await agent.next("event");
    agent.cut();
    const second = await relay.agent();
    expect(second.hello.held).toEqual([callId]);
    release();
    second.agent.send({ type: "attach", callId, seq: 1, offset: 0, credit: 10_000 });
    const { frame, payload } = await second.agent.outcome(callId);
    expect(frame).toMatchObject({ type: "result", seq: 2 });
    expect(JSON.parse(payload)).toMatchObject({ content: [{ text: "run 1" }] });
    expect(second.agent.messages.filter(({ frame: other }) => other.type === "event")).toEqual([]);
    // Not delivered: a third link can ask for all of it again, from the beginning.
    second.agent.cut();
    const third = await relay.agent();
    third.agent.send({ type: "attach", callId, seq: 0, offset: 0, credit: 10_000 });
    expect((await third.agent.next("event")).frame.seq).toBe(1);
    expect((await third.agent.outcome(callId)).frame).toMatchObject({ seq: 2 });
    third.agent.send({ type: "delivered", callIds: [callId] });
    third.agent.cut();
    expect((await relay.agent()).hello.held).toEqual([]);
    expect(runs()).toBe(1);
  });

  test("a repeated call is acknowledged and answered, and not run again", async () => {
    const { upstream, runs, release } = controlled();
    const { agent } = await connected([upstream]);
    const frame = callFrame({ method: "tools/call", target: "wait" });
    agent.send(frame, "{}");
    await agent.next("ack", (ack) => ack.callId === frame.callId);
    agent.send(frame, "{}");
    await agent.next("ack", (ack) => ack.callId === frame.callId);
    release();
    expect((await agent.outcome(frame.callId)).frame.type).toBe("result");
    agent.send({ type: "delivered", callIds: [frame.callId] });
    agent.send(frame, "{}");
    expect((await agent.outcome(frame.callId)).frame).toMatchObject({ type: "error", outcome: "unknown" });
    expect(runs()).toBe(1);
  });

  test("after a restart, what had begun is unknown and is not run", async () => {
    const dir = stateDir();
    const { upstream } = controlled();
    const relay = await startRelay();
    const first = await startAgent(relay, [upstream], { stateDir: dir });
    const { agent } = await relay.agent();
    const callId = agent.call({ method: "tools/call", target: "wait", progress: true });
    await agent.next("event");
    await first.handle.stop("restart");
    const next = controlled();
    await startAgent(relay, [next.upstream], { stateDir: dir });
    const second = (await relay.agent()).agent;
    second.send({ type: "attach", callId, seq: 1, offset: 0, credit: 10_000 });
    expect((await second.outcome(callId)).frame).toMatchObject({ seq: 2, reason: "agent_restarted", outcome: "unknown" });
    second.send(callFrame({ method: "tools/call", target: "wait", callId }), "{}");
    expect((await second.outcome(callId)).frame).toMatchObject({ reason: "agent_restarted", outcome: "unknown" });
    expect(next.runs()).toBe(0);
  });

  test("an id that never arrived is said to be not started", async () => {
    const { agent } = await connected([builtin()]);
    const callId = newCallId();
    agent.send({ type: "attach", callId, seq: 0, offset: 0, credit: 1_000 });
    expect((await agent.outcome(callId)).frame).toMatchObject({ reason: "tunnel_lost", outcome: "not_started" });
  });
});

describe("a call's end", () => {
  test("a quick answer is its own acknowledgement", async () => {
    const { agent } = await connected([builtin()]);
    await agent.outcome(agent.call({ method: "tools/call", target: "current_time" }));
    await agent.outcome(agent.call({ method: "tools/call", target: "count" }, { arguments: { to: 1, pauseMs: 50 } }));
    expect(agent.messages.filter(({ frame }) => frame.type === "ack")).toHaveLength(1);
  });

  test("the deadline is hard, named, and cancels the tool", async () => {
    const { upstream, aborted } = controlled();
    const { agent } = await connected([upstream]);
    const { frame } = await agent.outcome(agent.call({ method: "tools/call", target: "wait", timeoutMs: 50 }));
    expect(frame).toMatchObject({ reason: "device_timeout", outcome: "unknown", data: { limitMs: 50, setBy: "relay" } });
    await within(5_000, "the abort", aborted);
  });

  test("cancel reaches the tool, and nothing more is sent", async () => {
    const { upstream, aborted } = controlled();
    const { agent, handle } = await connected([upstream]);
    const callId = agent.call({ method: "tools/call", target: "wait", progress: true });
    await agent.next("event");
    agent.send({ type: "cancel", callId, reason: "caller_asked" });
    expect(await within(5_000, "the abort", aborted)).toBe("caller_asked");
    await agent.outcome(agent.call({ method: "tools/call", target: "big" }, { arguments: { size: 1 } }));
    expect(agent.messages.filter(({ frame }) => "callId" in frame && frame.callId === callId && frame.type !== "ack")).toEqual([]);
    expect(handle.state().inFlight).toBe(0);
  });

  test("more calls than the agent runs are refused with a time to come back", async () => {
    const { upstream, release } = controlled();
    const { agent } = await connected([upstream], {}, { maxConcurrentCalls: 2 });
    const running = [agent.call({ method: "tools/call", target: "wait" }), agent.call({ method: "tools/call", target: "wait" })];
    const { frame } = await agent.outcome(agent.call({ method: "tools/call", target: "wait" }));
    expect(frame).toMatchObject({ reason: "rate_limited", outcome: "not_started", data: { retryAfterMs: 1_000 } });
    release();
    for (const callId of running) expect((await agent.outcome(callId)).frame.type).toBe("result");
  });

  test("progress comes in order, without a token, and only when it was asked for", async () => {
    const { agent } = await connected([builtin()]);
    const callId = agent.call({ method: "tools/call", target: "count", progress: true }, { arguments: { to: 3, pauseMs: 1 } });
    for (const step of [1, 2, 3]) {
      const { frame, payload } = await agent.next("event", (event) => event.callId === callId);
      expect(frame).toMatchObject({ seq: step, method: "notifications/progress" });
      expect(JSON.parse(payloadText(payload))).toEqual({ progress: step, total: 3, message: `${step} of 3` });
    }
    expect((await agent.outcome(callId)).frame).toMatchObject({ seq: 4 });
    await agent.outcome(agent.call({ method: "tools/call", target: "count" }, { arguments: { to: 2, pauseMs: 1 } }));
    expect(agent.messages.filter(({ frame }) => frame.type === "event")).toEqual([]);
  });
});

describe("large results", () => {
  test("come in chunks within frame size and credit, and whole", async () => {
    const { agent } = await connected([controlled().upstream], { maxFrameBytes: 16 * 1024 });
    const callId = agent.call({ method: "tools/call", target: "big", credit: 5_000 }, { arguments: { size: 3_000_000 } });
    const { frame } = await agent.next("result", (result) => result.callId === callId);
    const first = await agent.next("chunk");
    expect(first.frame.offset).toBe(0);
    expect((first.payload as Uint8Array).length).toBe(5_000);
    const rest = await agent.chunks(callId, frame.bytes ?? 0, 5_000);
    const whole = JSON.parse(Buffer.concat([first.payload as Uint8Array, rest]).toString()) as { content: [{ text: string }] };
    expect(whole.content[0].text).toHaveLength(3_000_000);
  });

  test("continue at their offset after a new link", async () => {
    const { agent, relay } = await connected([controlled().upstream]);
    const callId = agent.call({ method: "tools/call", target: "big", credit: 100_000 }, { arguments: { size: 300_000 } });
    const { frame } = await agent.next("result");
    const first = (await agent.next("chunk")).payload as Uint8Array;
    agent.cut();
    const second = (await relay.agent()).agent;
    second.send({ type: "attach", callId, seq: frame.seq, offset: first.length, credit: 1_000 });
    const rest = await second.chunks(callId, frame.bytes ?? 0, first.length);
    expect(JSON.parse(Buffer.concat([first, rest]).toString())).toMatchObject({ content: [{ text: "x".repeat(300_000) }] });
  });

  test("a reader without credit holds back its own call only", async () => {
    const { agent } = await connected([controlled().upstream]);
    const slow = agent.call({ method: "tools/call", target: "big", credit: 0 }, { arguments: { size: 1_000_000 } });
    await agent.next("result", (result) => result.callId === slow);
    expect(
      (await agent.outcome(agent.call({ method: "tools/call", target: "big" }, { arguments: { size: 400_000 } }))).payload.length,
    ).toBeGreaterThan(400_000);
    expect(agent.messages.filter(({ frame }) => frame.type === "chunk")).toEqual([]);
  });

  test("over the relay's cap fail alone, before anything is sent, with both sizes", async () => {
    const { agent } = await connected([controlled().upstream], { maxResultBytes: 10_000 });
    const { frame } = await agent.outcome(agent.call({ method: "tools/call", target: "big" }, { arguments: { size: 20_000 } }));
    expect(frame).toMatchObject({ reason: "too_large", outcome: "unknown", data: { cap: 10_000 } });
    expect((frame as { data?: { size?: number } }).data?.size).toBeGreaterThan(20_000);
  });
});

test("a legacy caller is answered by the built-in tools as well, and unknown names are the upstream's errors", async () => {
  const { agent } = await connected([builtin()]);
  const client = legacyClient();
  const list = await agent.outcome(agent.call({ method: "tools/list", client }));
  expect((JSON.parse(list.payload) as { tools: unknown[] }).tools).toHaveLength(4);
  expect((await agent.outcome(agent.call({ method: "tools/call", target: "nope", client }))).frame).toMatchObject({
    origin: "upstream",
    code: -32602,
  });
  expect((await agent.outcome(agent.call({ method: "prompts/list", client }))).frame).toMatchObject({ origin: "upstream", code: -32601 });
  const wrong = await agent.outcome(agent.call({ method: "tools/call", target: "count", client }, { arguments: { to: 1e9 } }));
  expect(JSON.parse(wrong.payload)).toMatchObject({ isError: true });
});
