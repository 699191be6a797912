/** Which updates concern a subscription. */
import { expect, test } from "vitest";
import { concerns } from "../../src/policy/resource-match.ts";

test.each([
  ["file:///dir", "file:///dir", true],
  ["file:///dir", "file:///dir/part", true],
  ["file:///dir/", "file:///dir/part", true],
  ["file:///a", "file:///a?page=2", true],
  ["file:///a", "file:///a#top", true],
  ["file:///dir", "file:///directory", false],
  ["file:///dir/part", "file:///dir", false],
  ["", "file:///a", false],
])("%j and an update of %j: %j", (subscribed, updated, expected) => {
  expect(concerns(subscribed, updated)).toBe(expected);
});
