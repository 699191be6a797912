/** The object's pure tables: calls in flight, the fair queue, rates; and sizes of text. */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CallRates } from "../../durable/call-rates.ts";
import { FairQueue } from "../../durable/fair-queue.ts";
import { type PendingCall, PendingCalls } from "../../durable/pending-calls.ts";
import { fitsUtf8, utf8Length } from "../../src/tunnel/utf8.ts";

function call(id: string, grant = "g", session?: string): PendingCall {
  return {
    id,
    grant,
    session,
    clientId: undefined,
    era: "modern",
    madeAt: undefined,
    canStream: true,
    timeoutMs: 1,
    request: undefined,
    upload: undefined,
    wasWhole: true,
    generation: 1,
    seq: 0,
    offset: 0,
    outcomeBytes: undefined,
    isAcknowledged: false,
    isComplete: false,
    mark: 0,
    asks: new Map(),
    answers: new Map(),
    notes: { startedAt: 0, bytesIn: 0, bytesOut: 0 },
    remainingMs: 0,
    sink: undefined,
    waits: new Map(),
  };
}

describe("calls in flight", () => {
  it("are counted by grant and session, and each ends once", () => {
    const pending = new PendingCalls();
    const [a, b] = [call("a", "g1", "s"), call("b", "g1")];
    expect([pending.add(a), pending.add(b), pending.add(call("a", "g2"))]).toEqual([true, true, false]);
    expect([pending.ofGrant("g1"), pending.ofSession("s"), pending.ofGrant("g2")]).toEqual([2, 1, 0]);
    expect([pending.remove(a), pending.remove(a), pending.remove(call("b"))]).toEqual([true, false, false]);
    expect([pending.ofGrant("g1"), pending.ofSession("s"), pending.size]).toEqual([1, 0, 1]);
  });

  it("are due when they have waited long enough, and say when to look again", () => {
    const pending = new PendingCalls();
    const a = call("a");
    a.waits.set("ack", 10).set("end", 30);
    pending.add(a);
    expect(pending.due(9)).toEqual({ expired: [], next: 10 });
    expect(pending.due(10)).toEqual({ expired: [{ call: a, wait: "ack" }], next: 30 });
    expect(pending.due(31).next).toBe(Infinity);
    expect(new PendingCalls().due(1)).toEqual({ expired: [], next: Infinity });
  });

  it("take wire strings as keys whatever they are called", () => {
    const pending = new PendingCalls();
    pending.add(call("__proto__", "constructor", "toString"));
    expect([pending.ofGrant("constructor"), pending.ofSession("toString"), pending.ofGrant("toString")]).toEqual([1, 1, 0]);
  });
});

describe("the fair queue", () => {
  it("serves its keys in turn and each key in order", () => {
    const queue = new FairQueue<string>(16);
    for (const item of ["a1", "a2", "a3", "b1", "c1", "c2"]) queue.push(item.slice(0, 1), item);
    const served = Array.from({ length: 7 }, () => queue.shift());
    expect(served).toEqual(["a1", "b1", "c1", "a2", "c2", "a3", undefined]);
  });

  it("is bounded, and gives up a place when one leaves", () => {
    const queue = new FairQueue<string>(2);
    expect([queue.push("a", "1"), queue.push("b", "2"), queue.push("c", "3")]).toEqual([true, true, false]);
    expect([queue.remove("a", "1"), queue.remove("a", "1"), queue.remove("x", "2")]).toEqual([true, false, false]);
    expect([queue.size, queue.push("c", "3"), queue.shift(), queue.shift(), queue.size]).toEqual([1, true, "2", "3", 0]);
  });
});

describe("calls per minute", () => {
  it("are a sliding window for each grant; a refused call does not count", () => {
    const rates = new CallRates();
    expect([rates.take("a", 2, 0), rates.take("a", 2, 20_000)]).toEqual([0, 0]);
    expect(rates.take("a", 2, 30_000)).toBe(30_000);
    expect(rates.take("b", 2, 30_000)).toBe(0);
    expect(rates.take("a", 2, 59_999)).toBe(1);
    expect(rates.take("a", 2, 60_000)).toBe(0);
    expect(rates.take("a", 2, 60_001)).toBe(19_999);
  });
});

describe("sizes of text in UTF-8", () => {
  it("are what an encoder makes, for any text", () => {
    const encoder = new TextEncoder();
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.nat(60), (text, max) => {
        const bytes = encoder.encode(text).length;
        expect(utf8Length(text)).toBe(bytes);
        expect(fitsUtf8(text, max)).toBe(bytes <= max);
      }),
    );
    for (const text of ["\ud800", "\ud800x", "\udc00\ud800", "x\udfff"]) expect(utf8Length(text)).toBe(encoder.encode(text).length);
  });
});
