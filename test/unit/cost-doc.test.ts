/** docs/cost.md says what the model says. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { TUNNEL } from "../../src/limits.ts";
import { BUSY_CALL, CONNECT, CONNECTS_PER_DAY, idleDay, LISTENER, price, QUIET_CALL, times, type Events } from "../support/cost-model.ts";

const page = readFileSync(join(import.meta.dirname, "../../docs/cost.md"), "utf8");
const DAYS = 30;

function row(name: string): string[] {
  const line = page.split("\n").find((each) => each.startsWith(`| ${name} |`));
  return (line ?? "").split("|").map((cell) => cell.trim());
}

test.each<[string, Events]>([
  ["one device, online and idle, a month", times(idleDay(TUNNEL.pingMs), DAYS)],
  ["one listener, idle, a month", times(LISTENER, DAYS * CONNECTS_PER_DAY)],
  ["1,000 calls to a busy device", times(BUSY_CALL, 1000)],
  ["1,000 calls to a quiet device, one at a time", times(QUIET_CALL, 1000)],
])("the price of %s", (name, events) => {
  expect(row(name)[2]).toBe(price(events).toFixed(4));
});

test.each<[string, Events]>([
  ["connect and disconnect", CONNECT],
  ["a listener opens", LISTENER],
  ["a call, busy", BUSY_CALL],
  ["a call, quiet", QUIET_CALL],
])("the events of %s", (name, { requests, objectRequests, messages, objectRows, databaseRows, awakeSeconds }) => {
  const shown = row(name)
    .slice(2, 8)
    .map((cell) => Number(cell.replace("up to ", "")));
  expect(shown).toEqual([requests, objectRequests, messages, objectRows, databaseRows, awakeSeconds]);
});
