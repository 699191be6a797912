/** Owner commands against a real relay: the JSON that other programs read, and the exit codes they decide by. */
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { temporaryDir } from "../support/processes.ts";
import { longline, startLongline, startRelay, type RelayProcess } from "../support/relay-process.ts";

let relay: RelayProcess;
let home: Awaited<ReturnType<typeof temporaryDir>>;

beforeAll(async () => {
  home = await temporaryDir();
  // The place where commands look for a relay that no option names.
  relay = await startRelay({ dataDir: join(home.path, ".longline") });
});
afterAll(async () => {
  await relay.stop();
  await home.remove();
});

async function ok(...args: string[]): Promise<unknown> {
  const { code, stdout, stderr } = await longline([...args, "--json"], { env: relay.env });
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout).toMatch(/^[^\n]*\n$/);
  return JSON.parse(stdout);
}

test("a device from add to remove", async () => {
  const added = await ok("device", "add", "workshop");
  expect(added).toEqual({
    device: "workshop",
    deviceKey: expect.stringMatching(/^llk_[0-9a-f]{32}_[\w-]{43}$/),
    mcpUrl: `${relay.url}/mcp/workshop`,
  });
  expect(await longline(["device", "add", "workshop", "--json"], { env: relay.env })).toMatchObject({ code: 1, stdout: "" });
  expect(await ok("device", "list")).toMatchObject([{ device: "workshop", state: "never", lastSeenAt: null }]);

  const status = {
    device: "workshop",
    state: "never",
    generation: 0,
    agentVersion: null,
    lastSeenAt: null,
    upstreams: [],
    lastCallAt: null,
    sessions: 0,
    inFlight: 0,
    rivalAt: null,
    settings: { sessionExpiry: "sleep", headerOnlyModern: false, initializedModern: false },
  };
  expect(await ok("status", "workshop")).toEqual(status);
  expect(await ok("status")).toEqual([status]);

  expect(await ok("device", "remove", "workshop")).toEqual({ device: "workshop", removed: true });
  expect(await ok("device", "list")).toEqual([]);
  expect((await longline(["status", "workshop"], { env: relay.env })).code).toBe(4);
});

test("a token from create to revoke", async () => {
  await ok("device", "add", "bench");
  const before = Date.now();
  const created = (await ok("token", "create", "--device", "bench", "--for", "Alice", "--tools", "camera_*", "--expires", "7d")) as Record<
    string,
    unknown
  >;
  expect(created).toEqual({
    token: expect.stringMatching(/^eyJ[\w-]+\.[\w-]+\.[\w-]+$/),
    grant: expect.any(String),
    mcpUrl: `${relay.url}/mcp/bench`,
    expiresAt: expect.any(Number),
  });
  expect(Number(created["expiresAt"]) - before).toBeGreaterThanOrEqual(7 * 86_400_000);
  const row = { grant: created["grant"], device: "bench", for: "Alice", rights: { tools: ["camera_*"] } };
  expect(await ok("token", "list", "--device", "bench")).toMatchObject([{ ...row, state: "active" }]);
  expect(JSON.stringify(await ok("token", "list"))).not.toContain(created["token"]);
  expect(await ok("token", "revoke", String(created["grant"]))).toEqual({ grant: created["grant"], revoked: true });
  expect(await ok("token", "list")).toMatchObject([{ ...row, state: "revoked" }]);
  expect((await longline(["token", "revoke", "nosuchgrant"], { env: relay.env })).code).toBe(4);
  expect((await longline(["token", "create", "--device", "nosuch", "--for", "x"], { env: relay.env })).code).toBe(4);
});

describe("exit codes", () => {
  test("3 for a wrong owner token, which is not shown", async () => {
    const wrong = `llo_${"A".repeat(43)}`;
    const { code, stdout, stderr } = await longline(["status", "--json"], { env: { ...relay.env, LONGLINE_OWNER_TOKEN: wrong } });
    expect({ code, stdout }).toEqual({ code: 3, stdout: "" });
    expect(stderr).not.toContain(wrong);
    expect(stderr.trim().split("\n")).toHaveLength(1);
  });
  test("2 for a name that no device can have", async () => {
    expect((await longline(["device", "add", "Not A Name"], { env: relay.env })).code).toBe(2);
  });
});

test("without options, the relay running in .longline/ is meant", async () => {
  const here = await longline(["device", "list", "--json"], { cwd: home.path });
  expect({ code: here.code, stderr: here.stderr }).toEqual({ code: 0, stderr: "" });
  const elsewhere = await longline(["device", "list"], { cwd: join(home.path, ".longline") });
  expect(elsewhere.code).toBe(2);
});

test("a reader that leaves early ends a command quietly", async () => {
  const run = startLongline(["--help"]);
  run.child.stdout?.destroy();
  expect((await run.ended()).code).toBe(0);
  expect(run.output.stderr).toBe("");
});
