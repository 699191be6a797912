import { describe, expect, test } from "vitest";
import { CallOutput } from "../../src/agent/call-output.ts";
import { outcomeMessage } from "../../src/agent/outcome-frames.ts";
import type { FramePort } from "../../src/agent/port.ts";
import { AGENT, CALL, TUNNEL } from "../../src/limits.ts";
import { encode, payloadBytes, type Payload } from "../../src/tunnel/codec.ts";
import { AgentFrame, newCallId } from "../../src/tunnel/frames.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

/** A link that keeps what is sent, and refuses what is larger than negotiated as a real one does. */
class TestPort implements FramePort {
  readonly maxResultBytes = CALL.maxResultBytes;
  readonly maxFrameBytes: number;
  isWritable = true;
  readonly sent: { frame: AgentFrame; payload: Payload | undefined; text: string; bytes: number }[] = [];
  constructor(maxFrameBytes: number = TUNNEL.maxFrameBytes) {
    this.maxFrameBytes = maxFrameBytes;
  }
  send(frame: AgentFrame, payload?: Payload): boolean {
    const message = encode(AgentFrame.parse(frame), payload);
    if (Buffer.byteLength(message) > this.maxFrameBytes) return false;
    this.sent.push({ frame, payload, text: typeof payload === "string" ? payload : "", bytes: payloadBytes(payload) });
    return true;
  }
  drain(output: CallOutput): void {
    while (output.pump(this)) if (this.sent.length > 10_000) throw new Error("no end");
  }
  get frames(): string[] {
    return this.sent.map(({ frame }) =>
      "seq" in frame ? `${frame.type} ${frame.seq}` : "offset" in frame ? `chunk ${frame.offset}` : frame.type,
    );
  }
  /** Payload bytes that count against the credit. */
  get spent(): number {
    return this.sent.reduce((sum, message) => sum + message.bytes, 0);
  }
}

function resultOf(size: number): Uint8Array {
  return bytes(`{"text":"${"é".repeat(Math.floor((size - 11) / 2))}${"x".repeat((size - 11) % 2)}"}`);
}

function output(size: number, events = 0): CallOutput {
  const id = newCallId();
  const made = new CallOutput(id);
  for (let i = 1; i <= events; i += 1) made.event("notifications/progress", bytes(`{"progress":${i}}`));
  made.outcome(outcomeMessage(id, { kind: "result", protocol: "2026-07-28", bytes: resultOf(size) }, CALL.maxResultBytes));
  return made;
}

describe("what a call says", () => {
  test("goes in order, in one message when frame and credit allow", () => {
    const port = new TestPort();
    const made = output(1_000, 2);
    made.attach(0, 0, TUNNEL.initialCreditBytes);
    port.drain(made);
    expect(port.frames).toEqual(["event 1", "event 2", "result 3"]);
    expect(port.sent[2]?.text).toHaveLength(new TextDecoder().decode(resultOf(1_000)).length);
  });

  test("never exceeds its credit, and goes on when there is more", () => {
    const port = new TestPort();
    const made = output(300_000);
    made.attach(0, 0, 100);
    port.drain(made);
    expect(port.spent).toBe(100);
    made.addCredit(50_000);
    port.drain(made);
    expect(port.spent).toBe(50_100);
    made.addCredit(1_000_000);
    port.drain(made);
    expect(port.spent).toBe(300_000);
    const chunks = port.sent.filter(({ frame }) => frame.type === "chunk").map(({ payload }) => Buffer.from(payload as Uint8Array));
    expect(Buffer.concat(chunks).equals(Buffer.from(resultOf(300_000)))).toBe(true);
    expect(port.sent[0]?.frame).toMatchObject({ type: "result", bytes: 300_000 });
  });

  test("keeps to the size of a small board's messages", () => {
    const port = new TestPort(TUNNEL.minFrameBytes);
    const made = output(50_000);
    made.attach(0, 0, 1_000_000);
    port.drain(made);
    expect(port.spent).toBe(50_000);
  });

  test.each([
    ["events after a position", 1, 0, ["event 2", "result 3", "chunk 0"]],
    ["an outcome whose header is known, from an offset", 3, 250_000, ["chunk 250000"]],
    ["an outcome with its header again, from an offset", 2, 250_000, ["result 3", "chunk 250000"]],
    ["nothing that is known whole", 3, 300_000, []],
  ] as const)("repeats on a new link %s", (_what, seq, offset, frames) => {
    const made = output(300_000, 2);
    made.attach(0, 0, 150_000);
    new TestPort().drain(made);
    made.detach();
    const port = new TestPort();
    expect(made.pump(port)).toBe(false);
    made.attach(seq, offset, 400_000);
    port.drain(made);
    expect(port.frames.slice(0, frames.length)).toEqual(frames);
    if (frames.length === 0) expect(port.sent).toEqual([]);
  });

  test("is bounded in memory: old events go, questions stay", () => {
    const made = new CallOutput(newCallId());
    made.ask("a1", "elicitation/create", bytes("{}"));
    const event = bytes(`"${"x".repeat(50_000)}"`);
    for (let i = 0; i < 100; i += 1) expect(made.event("notifications/message", event)).toBe(true);
    expect(made.heldBytes).toBeLessThanOrEqual(AGENT.eventBytes);
    made.attach(0, 0, 100_000_000);
    const port = new TestPort();
    port.drain(made);
    expect(port.frames[0]).toBe("ask 1");
    expect(port.frames.at(-1)).toBe("event 101");
    expect(made.event("notifications/message", new Uint8Array(TUNNEL.initialCreditBytes + 1))).toBe(false);
  });

  test("waits for credit with an event, and sends no later one before it", () => {
    const made = output(100, 3);
    made.attach(0, 0, 20);
    const port = new TestPort();
    port.drain(made);
    expect(port.frames).toEqual(["event 1"]);
    made.addCredit(1_000);
    port.drain(made);
    expect(port.frames).toEqual(["event 1", "event 2", "event 3", "result 4"]);
  });
});

/** The outcome message of a result, with a cap of 1,000 bytes. */
function capped(bytesOfResult: Uint8Array): ReturnType<typeof outcomeMessage> {
  return outcomeMessage(newCallId(), { kind: "result", protocol: "p", bytes: bytesOfResult }, 1_000);
}

describe("outcomes", () => {
  test("over the cap fail with both sizes; at the cap they pass", () => {
    expect(capped(resultOf(1_000)).frame).toMatchObject({ type: "result" });
    expect(capped(resultOf(1_001)).frame).toMatchObject({
      type: "error",
      reason: "too_large",
      outcome: "unknown",
      data: { size: 1_001, cap: 1_000 },
    });
  });

  test("that are no JSON, or not UTF-8, never reach the relay as they are", () => {
    expect(capped(bytes('{"a":}')).frame).toMatchObject({ type: "error", reason: "upstream_failed" });
    const { payload } = capped(Buffer.concat([Buffer.from('{"a":"'), Buffer.from([0xff, 0xc3]), Buffer.from('"}')]));
    expect(JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(payload))).toHaveProperty("a");
  });
});
