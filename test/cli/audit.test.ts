/** `longline audit`: foreign text in tables and spreadsheets, and what is asked of the relay. */
import { describe, expect, test } from "vitest";
import { csvCell, formatCsv } from "../../src/policy/csv.ts";
import { command, fakeRelay } from "./support.ts";

const ROW = {
  seq: 7,
  at: Date.UTC(2026, 10, 30, 12),
  kind: "call",
  device: "bench",
  grant: "g1",
  label: "Ada",
  member: "m1",
  memberName: "Ada",
  client: "=cmd|' /C calc'!A0",
  clientVersion: "1",
  clientProtocol: "2026-07-28",
  upstreamProtocol: null,
  method: "tools/call",
  target: "\u001b[31mlamp\u202e",
  outcome: "failed",
  reason: "tunnel_lost",
  durationMs: 12,
  bytesIn: 3,
  bytesOut: null,
  callId: "c_1",
};

describe("a CSV cell", () => {
  test.each(["=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1", " =1", "\u200b=1", "＝1", "\r=1"])("cannot start a formula: %j", (text) => {
    expect(csvCell(text)).toMatch(/^"?'/);
  });

  test.each([
    ["12", "12"],
    ["-3.5", "-3.5"],
    ["plain", "plain"],
    ['a,"b"', '"a,""b"""'],
    ["a\nb", "a | b"],
  ])("%j becomes %j", (text, cell) => {
    expect(csvCell(text)).toBe(cell);
  });

  test("rows end as RFC 4180 says", () => {
    expect(formatCsv(["a", "b"], [["1", "2"]])).toBe("a,b\r\n1,2");
  });
});

describe("longline audit", () => {
  test("asks for what its options say, and prints a table without control characters", async () => {
    const relay = await fakeRelay(200, { rows: [ROW], newest: 7 });
    const argv = ["audit", "--device", "bench", "--grant", "g1", "--outcome", "failed", "--since", "2026-11-30T00:00Z", "--limit", "5"];
    const { code, out, err } = await command(argv, { env: relay.env });
    await relay.close();
    expect({ code, err }).toEqual({ code: 0, err: "" });
    const asked = new URL(relay.seen[0]?.url ?? "", relay.url);
    expect(asked.pathname).toBe("/api/audit");
    expect(Object.fromEntries(asked.searchParams)).toEqual({
      device: "bench",
      grant: "g1",
      outcome: "failed",
      since: String(Date.UTC(2026, 10, 30)),
      limit: "5",
    });
    expect(out).toContain("2026-11-30 12:00:00");
    expect(out).toContain("failed: tunnel_lost");
    for (const unsafe of ["\u001b", "\u202e"]) expect(out).not.toContain(unsafe);
  });

  test("prints one JSON array, or CSV whose cells are safe", async () => {
    const relay = await fakeRelay(200, { rows: [ROW], newest: 7 });
    const json = await command(["audit", "--json"], { env: relay.env });
    expect(JSON.parse(json.out)).toMatchObject([{ callId: "c_1", outcome: "failed" }]);
    const csv = await command(["audit", "--csv"], { env: relay.env });
    await relay.close();
    const [head, row] = csv.out.split("\r\n");
    expect(head).toMatch(/^at,kind,device,grant,label,/);
    expect(row).toContain(`"'=cmd|' /C calc'!A0"`);
    expect(row).toContain("2026-11-30T12:00:00.000Z");
  });

  test.each([
    [["--outcome", "fine"], "Allowed choices"],
    [["--since", "yesterday"], "how long ago"],
    [["--limit", "0"], "at least 1"],
    [["--csv", "--json"], "cannot be used with"],
  ])("refuses %j", async (argv, text) => {
    const { code, err } = await command(["audit", ...argv, "--relay", "http://127.0.0.1:1", "--owner-token", "t"]);
    expect(code).toBe(2);
    expect(err).toContain(text);
  });
});

describe("token update", () => {
  test("replaces all patterns at once, and keeps what is not named", async () => {
    const relay = await fakeRelay(200, { grant: "g1", state: "active", expiresAt: 1 });
    await command(["token", "update", "g1", "--tools", "a,!b", "--calls-per-minute", "none", "--note", ""], { env: relay.env });
    await relay.close();
    expect(relay.seen[0]).toMatchObject({ method: "PATCH", url: "/api/tokens/g1" });
    expect(JSON.parse(relay.seen[0]?.body ?? "")).toEqual({ rights: { tools: ["a", "!b"] }, callsPerMinute: null, note: null });
  });

  test.each([[[]], [["--everything", "--tools", "a"]]])("refuses %j", async (argv) => {
    const { code } = await command(["token", "update", "g1", ...argv, "--relay", "http://127.0.0.1:1", "--owner-token", "t"]);
    expect(code).toBe(2);
  });

  test("an incomplete change ends with 1", async () => {
    const relay = await fakeRelay(502, { error: { code: "incomplete", message: "Repeat the command." } });
    const { code, err } = await command(["token", "pause", "g1"], { env: relay.env });
    await relay.close();
    expect(code).toBe(1);
    expect(err).toContain("Repeat the command.");
  });
});
