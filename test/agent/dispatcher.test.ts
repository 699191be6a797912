/** The dispatcher alone, with the time in the test's hand. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { Dispatcher } from "../../src/agent/dispatcher.ts";
import { Journal } from "../../src/agent/journal.ts";
import type { FramePort } from "../../src/agent/port.ts";
import { CALL, JOURNAL, TUNNEL } from "../../src/limits.ts";
import type { AgentFrame } from "../../src/tunnel/frames.ts";
import { callFrame } from "../support/fake-relay.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const RESULT = new TextEncoder().encode(`{"content":[{"type":"text","text":"${"x".repeat(100_000)}"}]}`);

function dispatcher() {
  const dir = mkdtempSync(join(tmpdir(), "longline-dispatcher-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const sent: AgentFrame[] = [];
  const port: FramePort = {
    maxFrameBytes: TUNNEL.maxFrameBytes,
    maxResultBytes: CALL.maxResultBytes,
    isWritable: true,
    send: (frame) => sent.push(frame) > 0,
  };
  const calls = new Dispatcher({
    journal: new Journal(dir),
    maxConcurrentCalls: 8,
    log: () => undefined,
    admit: () => Promise.resolve(undefined),
    run: () => Promise.resolve({ kind: "result", protocol: "2026-07-28", bytes: RESULT }),
  });
  calls.online(port);
  return { calls, sent, port };
}

test("an outcome is kept while somebody fetches it, however slowly, and forgotten ten minutes after nobody does", async () => {
  const { calls, sent } = dispatcher();
  const frame = callFrame({ method: "tools/call", target: "t", credit: 1_000 });
  calls.frame(frame, "{}");
  await vi.advanceTimersByTimeAsync(1);
  const credit = (): number => {
    const before = sent.length;
    calls.frame({ type: "credit", stream: frame.callId, bytes: 1_000 }, undefined);
    return sent.length - before;
  };
  for (let times = 0; times < 5; times += 1) {
    await vi.advanceTimersByTimeAsync(JOURNAL.keepMs - 1);
    calls.sweep();
    expect(credit()).toBe(1);
  }
  await vi.advanceTimersByTimeAsync(JOURNAL.keepMs + 1);
  calls.sweep();
  expect([credit(), calls.held()]).toEqual([0, []]);
});
