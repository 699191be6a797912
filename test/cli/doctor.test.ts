import { afterEach, expect, test } from "vitest";
import { command, fakeRelay } from "./support.ts";

const ends: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

async function examine(body: unknown, headers: Record<string, string> = {}) {
  const relay = await fakeRelay(200, body, headers);
  ends.push(relay.close);
  return await command(["doctor", "--relay", relay.url]);
}

test("a clock that is wrong by an hour is a fault, by a minute a warning", async () => {
  const health = { ok: true, version: "0.1.0" };
  const wrong = await examine(health, { date: new Date(Date.now() + 3_600_000).toUTCString() });
  expect(wrong.code).toBe(1);
  expect(wrong.out).toMatch(/^FAILED {3}clock .*behind the relay's$/m);
  expect(wrong.out).toContain("timedatectl");
  const late = await examine(health, { date: new Date(Date.now() - 60_000).toUTCString() });
  expect(late.code).toBe(0);
  expect(late.out).toMatch(/^warning {2}clock .*60 s ahead of the relay's$|^warning {2}clock .*6[01] s ahead/m);
});

test("what answers but is no relay is told as that", async () => {
  const { code, out } = await examine("<h1>Welcome to our guest network</h1>");
  expect(code).toBe(1);
  expect(out).toContain("is no Longline relay");
});

test("a device key that is none is a finding, not the end of the checks", async () => {
  const relay = await fakeRelay(200, { ok: true, version: "0.1.0" });
  ends.push(relay.close);
  const { out, err, code } = await command(["doctor", "--relay", relay.url], { env: { LONGLINE_DEVICE_KEY: "llk_nonsense" } });
  expect(out).toContain("This is not a device key.");
  expect(out).toContain("health");
  expect(code).toBe(1);
  expect(out + err).not.toContain("llk_nonsense");
});
