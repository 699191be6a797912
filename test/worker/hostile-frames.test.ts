/** An agent that sends anything: well-formed frames in any order cost at most the call they name; the rest costs the link. */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { TUNNEL } from "../../src/limits.ts";
import type { AgentFrame } from "../../src/tunnel/frames.ts";
import { within } from "../support/deadline.ts";
import { accepted, onlineDevice, statusOf } from "./support/device.ts";
import { FakeAgent, requestOf, SOON_MS } from "./support/fake-agent.ts";

type Sent = readonly [AgentFrame, string | Uint8Array | undefined];

const seq = fc.integer({ min: 1, max: 6 });
const size = fc.constantFrom(0, 1, 5, 60, 40_000, 200_000);
const text = fc.constantFrom("{}", "", "null", '{"__proto__":{"admin":true}}', '{"content":[]}', "\u0000é😀", "not json");

/** Frames that name one call, in shapes that are allowed and values that may not be. */
function framesOf(callId: string): fc.Arbitrary<Sent> {
  const sent = (frame: AgentFrame, payload?: string | Uint8Array): Sent => [frame, payload];
  return fc.oneof(
    fc.constant(sent({ type: "ack", callId })),
    fc.tuple(seq, text).map(([n, body]) => sent({ type: "event", callId, seq: n, method: "notifications/progress" }, body)),
    fc
      .tuple(seq, text, fc.constantFrom("a1", "a2", "__proto__"))
      .map(([n, body, askId]) => sent({ type: "ask", callId, seq: n, askId, method: "roots/list" }, body)),
    fc.tuple(seq, text).map(([n, body]) => sent({ type: "result", callId, seq: n, protocol: "2026-07-28" }, body)),
    fc.tuple(seq, size).map(([n, bytes]) => sent({ type: "result", callId, seq: n, protocol: "2026-07-28", bytes })),
    fc.tuple(size, size).map(([offset, bytes]) => sent({ type: "chunk", stream: callId, offset }, new Uint8Array(bytes))),
    seq.map((n) => sent({ type: "error", callId, seq: n, origin: "upstream", protocol: "x", code: -32_000, message: "m" })),
    seq.map((n) => sent({ type: "error", callId, seq: n, origin: "agent", reason: "cancelled", outcome: "unknown", message: "m" })),
    fc.integer({ min: 1, max: 2 ** 40 }).map((bytes) => sent({ type: "credit", stream: callId, bytes })),
    fc.constant(sent({ type: "pong", probeId: "__proto__", upstreams: [] })),
  );
}

describe("frames of one call in any order", () => {
  it("cost that call at most: another one is answered, and nothing stays behind", async () => {
    const { stub, agent, grant } = await onlineDevice();
    const placeholder = `c_${"A".repeat(22)}`;
    const sequence = fc.array(framesOf(placeholder), { maxLength: 8 });
    const property = fc.asyncProperty(sequence, fc.boolean(), async (frames, isLegacy) => {
      const client = { era: isLegacy ? "legacy" : "modern", protocol: isLegacy ? "2025-11-25" : "2026-07-28", capabilities: {} } as const;
      const victim = requestOf(grant.id, { client, progress: true });
      const other = requestOf(grant.id);
      const replies = [stub.call(victim), stub.call(other)] as const;
      await agent.next("call");
      await agent.next("call");
      for (const [frame, payload] of frames) {
        agent.send(JSON.parse(JSON.stringify(frame).replaceAll(placeholder, victim.callId)) as AgentFrame, payload);
      }
      agent.answer(other.callId, `{"of":"${other.callId}"}`);
      expect((await accepted(replies[1])).payload).toBe(`{"of":"${other.callId}"}`);
      await stub.cancel(victim.callId, "caller_left");
      const reply = await within(SOON_MS, "an end of the other", replies[0]);
      if (reply.ok) await reply.rest?.cancel();
    });
    await fc.assert(property, { numRuns: 80 });
    expect((await statusOf(stub, agent)).inFlight).toBe(0);
  });
});

describe("frames about what is over", () => {
  it("an outcome given twice, and anything after it, is nobody's", async () => {
    const { stub, agent, grant } = await onlineDevice();
    const first = requestOf(grant.id);
    const reply = stub.call(first);
    await agent.next("call");
    for (const body of [`{"n":1}`, `{"n":2}`]) agent.answer(first.callId, body);
    agent.send({ type: "ack", callId: first.callId });
    agent.send({ type: "chunk", stream: first.callId, offset: 0 }, new Uint8Array(10));
    expect((await accepted(reply)).payload).toBe(`{"n":1}`);
    const second = requestOf(grant.id);
    const next = stub.call(second);
    await agent.next("call");
    agent.answer(second.callId, `{"n":3}`);
    expect((await accepted(next)).payload).toBe(`{"n":3}`);
  });

  it("a call that another caller's answer names gets it from its own socket only", async () => {
    const { deviceId, stub, agent, grant } = await onlineDevice();
    const request = requestOf(grant.id);
    const reply = stub.call(request);
    await agent.next("call");
    const stranger = await FakeAgent.dial(deviceId);
    // It has said no hello, so it is nobody: whatever it says of calls closes it.
    stranger.answer(request.callId, `{"stolen":true}`);
    expect((await within(SOON_MS, "the close", stranger.closed)).code).toBe(4001);
    agent.answer(request.callId, `{"own":true}`);
    expect((await accepted(reply)).payload).toBe(`{"own":true}`);
  });
});

describe("messages that are no frames", () => {
  const nul = String.fromCharCode(0);
  it.each<[string, string | Uint8Array, number]>([
    ["an empty text", "", 4000],
    ["an empty binary", new Uint8Array(), 4000],
    ["half a frame", `{"type":"ack","callId":"c_AAAA`, 4000],
    ["a wrong type", `{"type":7}`, 4000],
    ["a type that is a member of every object", `{"type":"constructor"}`, 4000],
    ["a prototype as the header", `{"__proto__":{"type":"ack"}}`, 4000],
    ["a frame that only relays send", `{"type":"welcome"}`, 4000],
    ["zeros", nul.repeat(100), 4000],
    ["binary that is no text", new Uint8Array([0xff, 0xfe, 0xfd]), 4000],
    ["deep nesting", "[".repeat(60_000), 4000],
    ["a giant header", `{"type":"bye","reason":"${"x".repeat(70_000)}"}`, 4000],
    ["a giant message", "x".repeat(TUNNEL.maxFrameBytes + 1), 4002],
    ["a giant binary message", new Uint8Array(TUNNEL.maxFrameBytes + 1), 4002],
  ])("%s closes the link with its code; a call in flight goes on with the next link", async (_what, message, code) => {
    const { deviceId, stub, agent, grant } = await onlineDevice();
    const request = requestOf(grant.id);
    const reply = stub.call(request);
    await agent.next("call");
    agent.socket.send(message);
    expect((await within(SOON_MS, "the close", agent.closed)).code).toBe(code);
    const { agent: back } = await FakeAgent.connect(deviceId, { held: [request.callId] });
    await back.next("attach");
    back.answer(request.callId, `{"n":1}`);
    expect((await accepted(reply)).payload).toBe(`{"n":1}`);
  });
});
