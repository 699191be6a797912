import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FlowBudget } from "../../src/tunnel/flow.ts";

const OPTIONS = { totalBytes: 1000, initialBytes: 100, refillBytes: 10, maxWindowBytes: 300, slots: 5 };

function opened(...ids: string[]): FlowBudget {
  const flow = new FlowBudget(OPTIONS);
  for (const id of ids) expect(flow.open(id)).toBe(100);
  return flow;
}

describe("a call's credit", () => {
  it("covers exactly what was lent", () => {
    const flow = opened("a");
    expect(flow.receive("a", 60)).toBe(true);
    expect(flow.receive("a", 41)).toBe(false);
    expect(flow.receive("a", 40)).toBe(true);
    expect(flow.receive("a", 1)).toBe(false);
    expect(flow.receive("nobody", 1)).toBe(false);
  });

  it("of whole messages follows the reader, in frames worth sending, and leaves room for one of full size", () => {
    const flow = opened("a");
    flow.receive("a", 9);
    flow.read("a", 9);
    expect(flow.refill("a")).toBe(0);
    flow.receive("a", 1);
    expect(flow.refill("a")).toBe(0); // One byte is held, and a byte less is worth nothing.
    flow.read("a", 1);
    expect(flow.refill("a")).toBe(10);
    expect(flow.receive("a", 100)).toBe(true);
  });

  it("of a large answer widens to the window while others keep their base", () => {
    const flow = opened("a");
    expect(flow.topUp("a", 5000)).toBe(200);
    expect(flow.topUp("a", 5000)).toBe(0);
    for (const id of ["b", "c", "d", "e"]) {
      expect(flow.canOpen()).toBe(true);
      expect(flow.open(id)).toBe(100);
      expect(flow.topUp(id, 5000)).toBe(id === "b" ? 200 : id === "c" ? 100 : 0);
    }
    expect(flow.reservedBytes).toBe(1000);
    expect(flow.canOpen()).toBe(false);
  });

  it("is never more than what is still to come", () => {
    const flow = opened("a");
    expect(flow.topUp("a", 130)).toBe(30);
    expect(flow.topUp("a", 130)).toBe(0);
  });
});

describe("a slow reader", () => {
  it("that holds its window keeps nobody else from a slot", () => {
    const flow = opened("slow");
    flow.topUp("slow", 300);
    flow.receive("slow", 300);
    flow.finish("slow");
    for (const id of ["a", "b", "c", "d", "e"]) {
      expect(flow.canOpen()).toBe(true);
      expect(flow.open(id)).toBe(100);
    }
    expect(flow.canOpen()).toBe(false);
  });

  it("gives back what it held when it reads or leaves", () => {
    const flow = opened("slow");
    flow.receive("slow", 100);
    flow.read("slow", 40);
    expect(flow.reservedBytes).toBe(60);
    flow.discard("slow");
    expect(flow.reservedBytes).toBe(0);
    flow.close("slow");
    flow.close("slow");
    expect(flow.running).toBe(0);
  });
});

describe("a new link", () => {
  it("voids what was outstanding and counts what is held", () => {
    const flow = opened("a");
    flow.receive("a", 30);
    expect(flow.restart("a")).toBe(70);
    expect(flow.reservedBytes).toBe(100);
    flow.read("a", 30);
    expect(flow.restart("new")).toBe(100);
  });

  it("with fewer slots leaves the calls that run alone", () => {
    const flow = opened("a", "b", "c");
    flow.setSlots(2);
    expect(flow.canOpen()).toBe(false);
    flow.close("a");
    flow.close("b");
    expect(flow.canOpen()).toBe(true);
  });
});

it("never lends or holds more than the total, whatever happens in whatever order", () => {
  const id = fc.constantFrom("a", "b", "c", "d", "e", "f", "g", "h");
  const size = fc.nat(400);
  const step = fc.oneof(
    fc.record({ do: fc.constantFrom("restart", "refill", "finish", "close", "discard"), id, size: fc.constant(0) }),
    fc.record({ do: fc.constantFrom("receive", "read", "topUp"), id, size }),
    fc.record({ do: fc.constant("slots"), id, size: fc.integer({ min: 0, max: 8 }) }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const flow = new FlowBudget(OPTIONS);
      const model = new Map<string, { outstanding: number; held: number; isFinished: boolean }>();
      for (const { do: what, id, size } of steps) {
        const account = model.get(id);
        if (what === "restart" && account?.isFinished !== true) {
          const credit = flow.restart(id);
          model.set(id, { outstanding: credit, held: account?.held ?? 0, isFinished: false });
        } else if (what === "receive") {
          const fits = account !== undefined && !account.isFinished && size <= account.outstanding;
          expect(flow.receive(id, size)).toBe(fits);
          if (fits) Object.assign(account, { outstanding: account.outstanding - size, held: account.held + size });
        } else if (what === "read" && account !== undefined) {
          const bytes = Math.min(size, account.held);
          flow.read(id, bytes);
          account.held -= bytes;
        } else if (what === "topUp" || what === "refill") {
          const bytes = what === "topUp" ? flow.topUp(id, size) : flow.refill(id);
          if (account !== undefined) account.outstanding += bytes;
          else expect(bytes).toBe(0);
        } else if (what === "finish") {
          flow.finish(id);
          if (account !== undefined) Object.assign(account, { outstanding: 0, isFinished: true });
        } else if (what === "close") {
          flow.close(id);
          model.delete(id);
        } else if (what === "discard") {
          flow.discard(id);
          if (account !== undefined) account.held = 0;
        } else if (what === "slots") flow.setSlots(size);
        const reserved = [...model.values()].reduce((bytes, { outstanding, held }) => bytes + outstanding + held, 0);
        expect(flow.reservedBytes).toBe(reserved);
        expect(reserved).toBeLessThanOrEqual(OPTIONS.totalBytes);
        expect(flow.running).toBe([...model.values()].filter(({ isFinished }) => !isFinished).length);
      }
    }),
  );
});
