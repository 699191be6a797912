import { expect, it } from "vitest";
import { DialGate } from "../../src/auth/dial-gate.ts";

it("lets so many dials be under way, and the next one when one has ended", () => {
  const gate = new DialGate(2, 1_000);
  const first = gate.enter(0);
  expect(gate.enter(1)).not.toBeNull();
  expect(gate.enter(2)).toBeNull();
  first?.();
  first?.();
  expect(gate.enter(3)).not.toBeNull();
  expect(gate.enter(4)).toBeNull();
});

it("forgets a dial whose request was dropped by the platform", () => {
  const gate = new DialGate(1, 1_000);
  expect(gate.enter(0)).not.toBeNull();
  expect(gate.enter(999)).toBeNull();
  expect(gate.enter(1_000)).not.toBeNull();
});
