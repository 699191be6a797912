/** What the commands print and read, as pure functions. */
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { describeEvent } from "../../src/cli/agent-log.ts";
import { parseHeaders, readSecretText } from "../../src/cli/headers-file.ts";
import { defaultStateDir } from "../../src/cli/state-dir.ts";
import { clientEntries, reachNote } from "../../src/policy/client-entries.ts";
import { deviceName } from "../../src/cli/start/demo-device.ts";
import { readAnswer } from "../../src/cli/start/example-call.ts";
import { isWorthShowing } from "../../src/cli/start/relay-log.ts";
import { fitWidths, formatTable } from "../../src/cli/table.ts";
import { parseDuration, relativeTime } from "../../src/cli/times.ts";
import { DeviceName } from "../../src/policy/device-name.ts";
import { command, fakeRelay } from "./support.ts";

describe("durations", () => {
  test.each([
    ["90s", 90_000],
    ["30m", 1_800_000],
    ["12h", 43_200_000],
    ["7d", 604_800_000],
    ["2w", 1_209_600_000],
  ])("%s", (text, ms) => expect(parseDuration(text)).toBe(ms));
  test.each(["", "7", "d", "-1d", "1.5h", "7 d", "1y", "0s", "99999999999d"])("%j is refused", (text) =>
    expect(() => parseDuration(text)).toThrow(/7d/),
  );
});

test("times are told as distances", () => {
  const now = 1_000_000_000;
  expect([null, now, now - 5_000, now - 3_600_000, now + 86_400_000 * 9].map((at) => relativeTime(at, now))).toEqual([
    "never",
    "now",
    "5s ago",
    "1h ago",
    "in 9d",
  ]);
});

describe("tables", () => {
  test("line up, and never end in blanks", () => {
    const table = formatTable(
      { columns: 80, hasColor: false },
      ["NAME", "STATE"],
      [
        ["pi", "online"],
        ["workshop", "never"],
      ],
    );
    expect(table).toBe("NAME      STATE\npi        online\nworkshop  never");
  });
  test("fit the terminal, the widest column first", () => {
    const long = "x".repeat(200);
    const table = formatTable({ columns: 40, hasColor: false }, ["A", "B"], [["short", long]]);
    for (const line of table.split("\n")) expect(line.length).toBeLessThanOrEqual(40);
    expect(table).toContain("short");
    expect(table).toContain("…");
    expect(fitWidths([5, 100, 20], 69)).toEqual([5, 40, 20]);
    expect(fitWidths([5, 100, 100], 4)).toEqual([5, 8, 8]);
  });
  test("never cut the first column, because other commands take it", () => {
    const id = "de122e574ee20ee12ecb59ef85112233";
    const table = formatTable({ columns: 40, hasColor: false }, ["GRANT", "RIGHTS"], [[id, "tools: list_*, !list_allowed"]]);
    expect(table).toContain(`${id} `);
  });
  test("foreign text stays one cell of plain text", () => {
    const table = formatTable({ columns: 80, hasColor: false }, ["A"], [["a\u001b[31m\r\nb\u202e"]]);
    expect(table).toBe("A\na | b");
  });
  test("have colour only where it is wanted", () => {
    expect(formatTable({ columns: 80, hasColor: true }, ["A"], [["a"]])).toContain("\u001b[1m");
  });
});

describe("headers files", () => {
  test("lines and JSON", () => {
    const headers = { Authorization: "Bearer a:b", "X-Team": "" };
    expect(parseHeaders("# mine\n\nAuthorization: Bearer a:b\r\nX-Team:\n")).toEqual(headers);
    expect(parseHeaders(JSON.stringify(headers))).toEqual(headers);
  });
  test.each([
    ["no colon: secret".replace(": ", " "), "line 1"],
    ["Bad Name: secret", "character"],
    ["Name: sec\u0007ret", "character"],
    ["Host: secret", "Host"],
    ["Mcp-Method: secret", "Mcp-Method"],
    ["A: secret\na: secret", "twice"],
    ['{"A": ["secret"]}', "JSON object"],
    ['{"A": secret}', "JSON object"],
  ])("%j is refused without showing its value", (text, why) => {
    expect(() => parseHeaders(text)).toThrow(why);
    try {
      parseHeaders(text);
    } catch (error) {
      expect(String(error)).not.toContain("secret");
    }
  });
  test("a file others can read is used with a warning", async () => {
    const dir = await mkdtemp(join(tmpdir(), "longline-test-"));
    const warnings: string[] = [];
    await writeFile(join(dir, "f"), "A: b", { mode: 0o600 });
    expect(await readSecretText(join(dir, "f"), (text) => warnings.push(text))).toBe("A: b");
    expect(warnings).toEqual([]);
    await chmod(join(dir, "f"), 0o644);
    await readSecretText(join(dir, "f"), (text) => warnings.push(text));
    expect(warnings[0]).toContain("chmod 600");
    await rm(dir, { recursive: true });
  });
});

test("agents of two devices keep their state apart", () => {
  const env = { XDG_STATE_HOME: "/state" };
  expect(defaultStateDir(env, "one")).toBe("/state/longline/one");
  expect(defaultStateDir(env, "two")).not.toBe(defaultStateDir(env, "one"));
});

test("any host name becomes a device name", () => {
  expect(deviceName("Workshop-Pi.local")).toBe("workshop-pi");
  for (const host of ["", "localhost", "___", "Bücher PC", "-a-", "x".repeat(300), "1.2.3.4"]) {
    expect(DeviceName.safeParse(`${deviceName(host)}-20`).success).toBe(true);
  }
});

test("events of an agent are one safe line each", () => {
  expect(describeEvent({ type: "call", callId: "c_1", method: "tools/call", target: "a\u001b[2J\nb", grant: "g", label: "Ada" })).toBe(
    "call c_1 tools/call a | b",
  );
  expect(describeEvent({ type: "offline", reason: "closed", retryInMs: 1500 })).toBe("offline: closed; next try in 1.5 s");
});

describe("client entries", () => {
  const access = { name: "pi", mcpUrl: "http://127.0.0.1:8787/mcp/pi", token: "eyJ.a.b" };
  const texts = new Map(clientEntries(access).map(({ id, text }) => [id, text]));
  const [claude, vscode, cursor, generic] = ["claude-code", "vscode", "cursor", "json"].map((id) => texts.get(id));
  const headers = { Authorization: "Bearer eyJ.a.b" };
  test("hold address and token in each client's own form", () => {
    expect(claude).toBe('claude mcp add --transport http pi http://127.0.0.1:8787/mcp/pi --header "Authorization: Bearer eyJ.a.b"');
    expect(JSON.parse(vscode ?? "")).toEqual({ servers: { pi: { type: "http", url: access.mcpUrl, headers } } });
    expect(JSON.parse(cursor ?? "")).toEqual({ mcpServers: { pi: { url: access.mcpUrl, headers } } });
    expect(JSON.parse(generic ?? "")).toEqual({ mcpServers: { pi: { type: "http", url: access.mcpUrl, headers } } });
  });
  test("name the clients that cannot come to a loopback address, and only there", () => {
    expect(reachNote(access.mcpUrl)).toMatch(/claude\.ai and ChatGPT/);
    expect(reachNote("https://relay.example/mcp/pi")).toBe("");
  });
});

test("an answer is read from JSON and from an event stream", () => {
  expect(readAnswer("application/json", '{"result":1}')).toEqual({ result: 1 });
  expect(readAnswer("text/event-stream; charset=utf-8", ': hi\n\nevent: message\ndata: {"a":1}\n\ndata: {"result":2}\n\n')).toEqual({
    result: 2,
  });
});

test("who tries it out sees the relay's problems, not its requests", () => {
  expect(isWorthShowing('{"level":"info","event":"request"}')).toBe(false);
  for (const line of ['{"level":"error"}', '{"level":"warn"}', "workerd: out of memory", "{", '"info"'])
    expect(isWorthShowing(line)).toBe(true);
});

describe("token create", () => {
  test("sends patterns as given, repeated or listed, and times in ms", async () => {
    const created = { token: "eyJ.a.b", grant: "g", mcpUrl: "http://r/mcp/pi", expiresAt: 1 };
    const relay = await fakeRelay(201, { ...created, more: true });
    const argv = [
      "token",
      "create",
      "--device",
      "pi",
      "--for",
      "Ann, Lee",
      "--tools",
      "a,b*",
      "--tools",
      "!c",
      "--resources",
      "file:///a,b",
    ];
    const run = await command([...argv, "--expires", "7d", "--calls-per-minute", "5", "--json"], { env: relay.env });
    expect(JSON.parse(run.out)).toEqual(created);
    expect(relay.seen[0]).toMatchObject({ method: "POST", url: "/api/devices/pi/tokens" });
    expect(JSON.parse(relay.seen[0]?.body ?? "")).toEqual({
      for: "Ann, Lee",
      tools: ["a", "b*", "!c"],
      resources: ["file:///a,b"],
      expiresMs: 604_800_000,
      callsPerMinute: 5,
    });
    await relay.close();
  });
});
