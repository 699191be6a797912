import { describe, expect, test, vi } from "vitest";
import { AGENT, TUNNEL } from "../../src/limits.ts";
import { CLOSE } from "../../src/tunnel/close-codes.ts";
import { newCallId } from "../../src/tunnel/frames.ts";
import { within } from "../support/deadline.ts";
import { callFrame } from "../support/fake-relay.ts";
import { builtin, connected, DEVICE_KEY, startAgent, startRelay, stateDir } from "./harness.ts";

describe("dialling", () => {
  test("sends the key in the header, hello first, and the catalogue when it is wanted", async () => {
    const { relay, agent, handle } = await connected([builtin()]);
    expect(agent.headers["authorization"]).toBe(`Bearer ${DEVICE_KEY}`);
    const { frame, payload } = await agent.next("catalogue");
    const catalogue = JSON.parse(String(payload)) as {
      discover: unknown;
      tools: { name: string; annotations: unknown; outputSchema: unknown }[];
    };
    expect(catalogue.tools.map((tool) => tool.name)).toEqual(["echo", "device_status", "current_time", "count"]);
    for (const tool of catalogue.tools)
      expect(tool).toMatchObject({ annotations: { readOnlyHint: true }, outputSchema: { type: "object" } });
    expect(catalogue.discover).toMatchObject({ capabilities: { tools: {} }, serverInfo: { name: "longline-builtin" } });
    agent.cut();
    const again = await relay.agent();
    expect(again.hello).toMatchObject({
      catalogue: frame.digest,
      held: [],
      asks: [],
      upstreams: [{ alias: "demo", state: "ready", era: "modern" }],
    });
    expect(handle.state().link).toMatch(/online|connecting/);
  });

  test("does not send a catalogue the relay knows", async () => {
    const { agent } = await connected([builtin()], { catalogue: "known" });
    await agent.outcome(agent.call({ method: "tools/call", target: "current_time" }));
    expect(agent.messages.filter(({ frame }) => frame.type === "catalogue")).toEqual([]);
  });

  test("keeps installation over restarts and has a new instance each time", async () => {
    const dir = stateDir();
    const relay = await startRelay();
    const first = await startAgent(relay, [builtin()], { stateDir: dir });
    const { hello } = await relay.agent();
    await first.handle.stop("restart");
    await startAgent(relay, [builtin()], { stateDir: dir, takeover: true });
    const second = (await relay.agent()).hello;
    expect(second.installation).toBe(hello.installation);
    expect(second.instance).not.toBe(hello.instance);
    expect(hello.takeover).toBeUndefined();
    expect(second.takeover).toBe(true);
  });

  test.each([401, 403])("stops for good when the relay answers %i", async (refuse) => {
    const relay = await startRelay({ refuse });
    const { handle } = await startAgent(relay, [builtin()]);
    expect(await within(5_000, "the end", handle.done)).toMatchObject({ code: "not_authorised" });
    expect(relay.dials).toBe(1);
    expect(handle.state().link).toBe("stopped");
  });

  test("comes back after 5xx, and after an end that asks for it", async () => {
    const relay = await startRelay({ refuse: 503 });
    await startAgent(relay, [builtin()]);
    await relay.dialled(1);
    relay.options = {};
    const { agent } = await relay.agent();
    agent.socket.close(CLOSE.redial);
    await (await relay.agent()).agent.next("catalogue");
  });

  test.each([
    [CLOSE.revoked, "revoked"],
    [CLOSE.otherInstallation, "other_installation"],
    [CLOSE.versionTooOld, "version"],
    [4177, "refused"],
  ] as const)("stops for good after close code %i", async (code, done) => {
    const { agent, handle, relay } = await connected([builtin()]);
    agent.socket.close(code, "no");
    expect(await within(5_000, "the end", handle.done)).toMatchObject({ code: done });
    expect(relay.dials).toBe(1);
  });

  test("says bye and closes in order when it is stopped", async () => {
    const { agent, handle } = await connected([builtin()]);
    await agent.next("catalogue");
    await handle.stop("enough");
    expect((await agent.next("bye")).frame.reason).toBe("enough");
    expect(await within(5_000, "the close", agent.closed)).toMatchObject({ code: 1000 });
    expect(await handle.done).toMatchObject({ code: "stopped" });
  });

  test("answers a probe with what its upstreams did just now", async () => {
    const { agent } = await connected([builtin()]);
    agent.send({ type: "probe", probeId: "p1" });
    const { frame } = await agent.next("pong");
    expect(frame).toMatchObject({ probeId: "p1", upstreams: [{ alias: "demo", state: "ready" }] });
    expect(frame.upstreams[0]?.lastRoundTripAt).toBeGreaterThan(0);
  });

  test("ends a link on which its ping stays unanswered, and dials again", async () => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "setTimeout", "clearTimeout"], shouldAdvanceTime: true });
    try {
      const { relay, agent } = await connected([builtin()]);
      await agent.next("catalogue");
      // The relay stops reading: the TCP connection stays open, nothing is answered.
      agent.socket.pause();
      vi.advanceTimersByTime(TUNNEL.pingMs);
      vi.advanceTimersByTime(AGENT.pongMs);
      await relay.agent();
    } finally {
      vi.useRealTimers();
    }
  });
});

describe("hostile frames", () => {
  test.each([
    ["text that is no JSON", "nonsense"],
    ["an unknown type", '{"type":"surprise"}'],
    ["an array", "[1]"],
    ["no type", "{}"],
    ["a wrong member", '{"type":"delivered","callIds":"x"}'],
    ["an unknown member", '{"type":"drain","reason":"r","extra":1}'],
    [
      "a second welcome",
      JSON.stringify({
        type: "welcome",
        protocol: 1,
        generation: 1,
        limits: { maxFrameBytes: 65_536, maxConcurrentCalls: 1 },
        maxResultBytes: 1,
        serverTime: 1,
        device: "d",
        mcpUrl: "u",
        catalogue: "known",
      }),
    ],
    ["a call with a __proto__ id", '{"type":"cancel","callId":"__proto__","reason":"deadline"}'],
    ["bytes that are no UTF-8", Buffer.from([0xff, 0xfe, 0x00])],
    ["a header over its cap", `{"type":"drain","reason":"${"x".repeat(70_000)}"}`],
  ])("%s closes the tunnel with a code, and the agent comes back", async (_what, message) => {
    const { agent, relay } = await connected([builtin()]);
    agent.socket.send(message);
    expect((await within(5_000, "the close", agent.closed)).code).toBe(CLOSE.badFrame);
    await relay.agent();
  });

  test("a message over the negotiated size closes the tunnel", async () => {
    const { agent } = await connected([builtin()], { maxFrameBytes: TUNNEL.minFrameBytes });
    agent.socket.send("x".repeat(TUNNEL.minFrameBytes + 1));
    expect((await within(5_000, "the close", agent.closed)).code).toBe(CLOSE.frameTooLarge);
  });

  test("what is optional, late or about nobody's call is ignored", async () => {
    const { agent } = await connected([builtin()]);
    agent.socket.send('{"type":"surprise","optional":true}');
    const stranger = newCallId();
    agent.send({ type: "cancel", callId: stranger, reason: "caller_left" });
    agent.send({ type: "delivered", callIds: [stranger] });
    agent.send({ type: "credit", stream: stranger, bytes: 10 });
    agent.send({ type: "credit", stream: "catalogue", bytes: 10 });
    agent.send({ type: "chunk", stream: stranger, offset: 7 }, Buffer.from("x"));
    agent.send({ type: "answer", callId: stranger, askId: "a1", kind: "result" }, "{}");
    const { frame } = await agent.outcome(agent.call({ method: "tools/call", target: "current_time" }));
    expect(frame.type).toBe("result");
  });

  test.each([
    ["a target in the payload", { method: "tools/call", target: "echo" }, '{"name":"count"}'],
    ["meta in the payload", { method: "tools/call", target: "echo" }, '{"_meta":{}}'],
    ["no target", { method: "tools/call" }, "{}"],
    ["a payload that is no object", { method: "tools/call", target: "echo" }, "7"],
  ])("a call with %s ends alone and runs nothing", async (_what, header, payload) => {
    const { agent } = await connected([builtin()]);
    const { frame } = await agent.outcome(agent.call(header, payload));
    expect(frame).toMatchObject({ type: "error", origin: "agent", reason: "refused_by_device", outcome: "not_started" });
    expect((await agent.outcome(agent.call({ method: "tools/call", target: "current_time" }))).frame.type).toBe("result");
  });

  test("a chunked request out of order ends alone; a good one runs", async () => {
    const { agent } = await connected([builtin()]);
    const params = Buffer.from(JSON.stringify({ arguments: { text: "é".repeat(60_000) } }));
    const broken = callFrame({ method: "tools/call", target: "echo", bytes: params.length });
    agent.send(broken);
    agent.send({ type: "chunk", stream: broken.callId, offset: 10 }, params.subarray(10, 20));
    expect((await agent.outcome(broken.callId)).frame).toMatchObject({ reason: "refused_by_device", outcome: "not_started" });
    const good = callFrame({ method: "tools/call", target: "echo", bytes: params.length });
    agent.send(good);
    for (let at = 0; at < params.length; at += 50_001)
      agent.send({ type: "chunk", stream: good.callId, offset: at }, params.subarray(at, at + 50_001));
    const { frame, payload } = await agent.outcome(good.callId);
    expect(frame).toMatchObject({ type: "result" });
    expect((JSON.parse(payload) as { structuredContent: { text: string } }).structuredContent.text).toBe("é".repeat(60_000));
    const huge = callFrame({ method: "tools/call", target: "echo", bytes: 9 * 1024 * 1024 });
    agent.send(huge);
    expect((await agent.outcome(huge.callId)).frame).toMatchObject({ reason: "too_large", outcome: "not_started" });
  });
});
