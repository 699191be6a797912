/** The soak's verdict on memory. */
import { expect, test } from "vitest";
import { judge, slopeOf } from "../chaos/memory.ts";

test("single peaks do not make a slope, and a steady growth does", () => {
  expect(slopeOf([200, 200, 400, 200, 200])).toBe(0);
  expect(slopeOf([100, 103, 106, 109])).toBe(3);
});

test("a series that keeps growing is told from one that is flat, and a short one tells nothing", () => {
  const flat = Array.from({ length: 25 }, (_none, at) => 250 + (at % 5) * 8);
  expect(judge(flat)).toMatchObject({ verdict: "flat", mostMiB: 282 });
  const leak = Array.from({ length: 25 }, (_none, at) => 250 + 3 * at);
  expect(judge(leak)).toMatchObject({ verdict: "growing", slope: 3 });
  expect(judge(leak.slice(0, 5)).verdict).toBe("too short to tell");
});
