import * as fc from "fast-check";
import { expect, it } from "vitest";
import { HeldBytes } from "../../src/tunnel/held-bytes.ts";

const MAX = 1000;

it("never holds more than its bound, and exactly what was taken and not given, whatever happens in whatever order", () => {
  const step = fc.record({ do: fc.constantFrom("take", "give", "give part"), holder: fc.constantFrom("a", "b", "c"), bytes: fc.nat(700) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const held = new HeldBytes(MAX);
      const model = new Map<string, number>();
      const total = () => [...model.values()].reduce((sum, bytes) => sum + bytes, 0);
      for (const { do: what, holder, bytes } of steps) {
        const has = model.get(holder) ?? 0;
        if (what === "take") {
          const fits = total() + bytes <= MAX;
          expect(held.take(holder, bytes)).toBe(fits);
          if (fits) model.set(holder, has + bytes);
        } else if (what === "give") {
          held.give(holder);
          model.delete(holder);
        } else {
          const part = Math.min(bytes, has);
          held.give(holder, part);
          model.set(holder, has - part);
        }
        expect(held.totalBytes).toBe(total());
        expect(held.totalBytes).toBeLessThanOrEqual(MAX);
      }
    }),
  );
});

it("fails loudly when more is given back than was taken", () => {
  const held = new HeldBytes(MAX);
  held.take("a", 5);
  expect(() => held.give("a", 6)).toThrow("budget broken");
});
