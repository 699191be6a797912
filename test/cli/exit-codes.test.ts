/** Exit codes and error lines: programs decide by the first, people by the second. */
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { command, fakeRelay } from "./support.ts";

let relay: Awaited<ReturnType<typeof fakeRelay>> | undefined;
afterEach(async () => {
  await relay?.close();
  relay = undefined;
});

describe("usage errors are 2, one line on stderr, nothing on stdout", () => {
  test.each([
    [["nonsense"], "unknown command 'nonsense'"],
    [["status", "--nonsense"], "unknown option '--nonsense'"],
    [["device", "add"], "missing required argument 'name'"],
    [["device", "list", "extra"], "too many arguments"],
    [["token", "create", "--device", "pi"], "--for <label>"],
    [["token", "create", "--for", "me"], "--device <name>"],
    [["token", "create", "--device", "pi", "--for", "me", "--expires", "soon"], "7d"],
    [["token", "create", "--device", "pi", "--for", "me", "--expires", "0d"], "7d"],
    [["token", "create", "--device", "pi", "--for", "me", "--tools", "a,,b"], "cannot be empty"],
    [["token", "create", "--device", "pi", "--for", "me", "--calls-per-minute", "0"], "at least 1"],
    [["serve", "--port", "70000"], "0 to 65535"],
    [["serve", "--origin", "https://relay.example/path"], "without a path"],
    [["status"], "Pass --relay URL"],
    [["status", "--relay", "relay.example", "--owner-token", "t"], "must look like https://"],
    [["status", "--relay", "https://u:p@relay.example", "--owner-token", "t"], "must look like https://"],
    [["agent", "--relay", "http://127.0.0.1:1"], "or a configuration file"],
    [["agent", "--relay", "http://127.0.0.1:1", "--upstream", "http://127.0.0.1:2", "--", "cat"], "exactly one of them"],
    [["agent", "--relay", "http://127.0.0.1:1", "--upstream", "ftp://x"], "must look like http://"],
    [["agent", "--relay", "http://127.0.0.1:1", "--upstream", "http://u:p@127.0.0.1:2/"], "--upstream-headers"],
    [["agent", "--relay", "http://127.0.0.1:1", "--isolation", "none", "--", "cat"], "grant, shared"],
    [["agent", "--relay", "http://127.0.0.1:1", "--key-file", "missing", "--", "cat"], "missing does not exist"],
  ])("%j", async (argv, text) => {
    const { code, out, err } = await command(argv);
    expect(err).toContain(text);
    expect(err).not.toContain("\n");
    expect({ code, out }).toEqual({ code: 2, out: "" });
  });

  test("without a command, the help goes to stderr", async () => {
    const { code, out, err } = await command([]);
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err).toContain("Usage: longline");
  });
});

describe("the relay's errors", () => {
  test.each([
    [401, "not_authorised", 3],
    [403, "forbidden", 3],
    [404, "not_found", 4],
    [409, "conflict", 1],
    [400, "bad_request", 2],
    [429, "too_many", 1],
    [500, "internal", 1],
    [503, "device_offline", 6],
  ])("HTTP %d %s ends with %d and shows the relay's message", async (status, code, exit) => {
    relay = await fakeRelay(status, { error: { code, message: "This is why." } });
    const run = await command(["device", "add", "pi", "--json"], { env: relay.env });
    expect(run).toMatchObject({ code: exit, out: "" });
    expect(run.err).toMatch(/^longline: This is why\.[^\n]*$/);
  });

  test("a message from the relay cannot write on the terminal", async () => {
    relay = await fakeRelay(404, { error: { code: "not_found", message: "gone\u001b[2J\u0007\nsecond \u202eline" } });
    const { err } = await command(["device", "remove", "pi"], { env: relay.env });
    expect(err).toBe("longline: gone | second line");
  });

  test("an answer that is not the owner API's says so", async () => {
    relay = await fakeRelay(200, "<html>");
    expect(await command(["device", "list"], { env: relay.env })).toMatchObject({
      code: 1,
      err: expect.stringContaining("does not understand"),
    });
    await relay.close();
    relay = await fakeRelay(418, "teapot");
    expect(await command(["device", "list"], { env: relay.env })).toMatchObject({ code: 1, err: expect.stringContaining("HTTP 418") });
  });

  test("a redirect is not followed: the owner token goes to the named relay only", async () => {
    const other = await fakeRelay(200, { devices: [] });
    relay = await fakeRelay(307, "", { location: `${other.url}/api/devices` });
    expect(await command(["device", "list"], { env: relay.env })).toMatchObject({ code: 1, err: expect.stringContaining("HTTP 307") });
    expect(other.seen).toEqual([]);
    await other.close();
  });
});

describe("a relay that is not there ends with 5", () => {
  test("nothing listens", async () => {
    const { code, err } = await command(["status", "--relay", `http://127.0.0.1:${await closedPort()}`, "--owner-token", "t"]);
    expect(code).toBe(5);
    expect(err).toContain("No relay answers at http://127.0.0.1:");
  });

  test("a gateway speaks for it", async () => {
    relay = await fakeRelay(502, "<html>bad gateway");
    expect((await command(["status"], { env: relay.env })).code).toBe(5);
  });
});

test("a relay that has its data here and does not run ends with 5, and the line says how to start it", async () => {
  const cwd = await mkdtemp(join(tmpdir(), "longline-test-"));
  await mkdir(join(cwd, ".longline"));
  const outcome = await command(["status"], { cwd });
  expect(outcome).toEqual({ code: 5, out: "", err: expect.stringContaining("longline serve") });
  await rm(cwd, { recursive: true });
});

test("a missing owner token ends with 3, without a request", async () => {
  relay = await fakeRelay(200, []);
  const { code, err } = await command(["status", "--relay", relay.url]);
  expect(code).toBe(3);
  expect(err).toContain("LONGLINE_OWNER_TOKEN");
  expect(relay.seen).toEqual([]);
});

test("something that is no device key ends with 3 and is not shown", async () => {
  const env = { LONGLINE_DEVICE_KEY: "llk_almost_a_key" };
  const { code, err } = await command(["agent", "--relay", "http://127.0.0.1:1", "--", "cat"], { env });
  expect(code).toBe(3);
  expect(err).not.toContain("almost");
});

test("a secret in a mistyped option is not repeated", async () => {
  const { err } = await command(["status", "--owner-tokn=llo_abcdefgh", "--relay", "http://127.0.0.1:1"]);
  expect(err).toContain("unknown option");
  expect(err).not.toContain("abcdefgh");
});

test("options win over the environment", async () => {
  relay = await fakeRelay(200, []);
  const env = { LONGLINE_RELAY: "http://127.0.0.1:1", LONGLINE_OWNER_TOKEN: "llo_env" };
  expect((await command(["status", "--relay", relay.url, "--owner-token", "llo_option", "--json"], { env })).code).toBe(0);
  expect(relay.seen[0]?.headers.authorization).toBe("Bearer llo_option");
});

async function closedPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const address = server.address();
  await new Promise((done) => server.close(done));
  return typeof address === "object" && address !== null ? address.port : 1;
}
