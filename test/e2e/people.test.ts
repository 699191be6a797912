/** People, keys and records by the command line, against a real relay; and a machine that is paired without a key. */
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { modernRequest } from "../support/clients.ts";
import { eventually, temporaryDir } from "../support/processes.ts";
import { longline, startAgent, startLongline, startRelay, type RelayProcess } from "../support/relay-process.ts";
import { freePort } from "../support/tcp-proxy.ts";

let relay: RelayProcess;
let home: Awaited<ReturnType<typeof temporaryDir>>;

beforeAll(async () => {
  home = await temporaryDir();
  relay = await startRelay();
});
afterAll(async () => {
  await relay.stop();
  await home.remove();
});

async function ok(...args: string[]): Promise<unknown> {
  const { code, stdout, stderr } = await longline([...args, "--json"], { env: relay.env });
  expect({ args, code, stderr }).toEqual({ args, code: 0, stderr: "" });
  return JSON.parse(stdout);
}

// Each mostly waits for processes of its own, and names only what is its own.
describe.concurrent("a relay and its people", () => {
  test("an invitation from create to revoke, and the people", async () => {
    const made = (await ok("invite", "create", "--for", "Ada", "--expires", "2d")) as Record<string, unknown>;
    expect(made["link"]).toMatch(new RegExp(`^${relay.url}/join#lli_[\\w-]{43}$`));
    const id = String(made["invitation"]);
    expect(await ok("invite", "list")).toMatchObject([{ invitation: id, for: "Ada", state: "open" }]);
    expect(await ok("invite", "revoke", id)).toEqual({ invitation: id, state: "revoked" });
    expect(await ok("member", "list")).toMatchObject([{ name: "owner", role: "owner" }]);
    expect((await longline(["member", "remove", "nobody"], { env: relay.env })).code).toBe(4);
    const [owner] = (await ok("member", "list")) as { member: string }[];
    expect((await longline(["member", "remove", owner?.member ?? ""], { env: relay.env })).code).toBe(1);
  });

  test("owner tokens, links, origins and signing keys", async () => {
    const { ownerToken } = (await ok("owner", "token", "create", "--for", "laptop")) as { ownerToken: string };
    expect((await longline(["device", "list"], { env: { ...relay.env, LONGLINE_OWNER_TOKEN: ownerToken } })).code).toBe(0);
    const tokens = (await ok("owner", "token", "list")) as { id: string; label: string }[];
    expect(JSON.stringify(tokens)).not.toContain(ownerToken);
    await ok("owner", "token", "revoke", tokens.find((row) => row.label === "laptop")?.id ?? "");
    expect((await longline(["device", "list"], { env: { ...relay.env, LONGLINE_OWNER_TOKEN: ownerToken } })).code).toBe(3);
    expect(await ok("owner", "link")).toMatchObject({ link: expect.stringContaining("/join#lli_") });
    expect(await ok("origin", "add", "https://tools.example")).toMatchObject([{ canonical: true }, { origin: "https://tools.example" }]);
    expect(await ok("origin", "remove", "https://tools.example")).toHaveLength(1);
    expect(await ok("keys", "rotate")).toMatchObject({ kid: expect.any(String) });
  });

  test("a device that is called, paused, renamed and re-keyed; and the record of it all", async () => {
    const { deviceKey } = await relay.addDevice("bench");
    const { token, grant, mcpUrl } = await relay.createToken("bench");
    const agent = await startAgent({ relay: relay.url, deviceKey, args: ["--demo"] });
    const call = async (url = mcpUrl): Promise<string> =>
      (await fetch(url, modernRequest(token, "tools/call", { name: "echo", arguments: { text: "canary-argument" } }))).text();
    expect(await call()).toContain("canary-argument");
    await ok("device", "pause", "bench");
    expect(await call()).toContain("paused");
    await ok("device", "resume", "bench");
    await ok("token", "pause", grant);
    expect(await call()).toContain("not_authorised");
    await ok("token", "resume", grant);
    const renamed = (await ok("device", "rename", "bench", "garage")) as { mcpUrl: string };
    expect(await call()).toContain("canary-argument");
    expect(await call(renamed.mcpUrl)).toContain("canary-argument");
    expect(await ok("device", "rotate-key", "garage")).toMatchObject({ deviceKey: expect.stringMatching(/^llk_/) });
    await ok("device", "revoke-key", "garage");
    expect((await agent.process.ended()).code).toBe(3);

    let rows: Record<string, unknown>[] = [];
    await eventually("the calls are on record", async () => {
      rows = (await ok("audit", "--grant", grant)) as Record<string, unknown>[];
      return rows.filter((row) => row["kind"] === "call").length >= 3;
    });
    const summary = rows.map((row) => [row["kind"], row["method"], row["outcome"], row["reason"]]);
    expect(summary).toContainEqual(["call", "tools/call", "ok", null]);
    expect(summary).toContainEqual(["refused", "tools/call", "refused", "device_offline"]);
    expect(summary).toContainEqual(["refused", "tools/call", "refused", "grant"]);
    expect(summary).toContainEqual(["admin", "token.pause", "ok", null]);
    const csv = await longline(["audit", "--csv", "--limit", "1000"], { env: relay.env });
    expect(csv.stdout).toContain("device.rename");
    for (const secret of ["canary-argument", token, deviceKey]) expect(csv.stdout + JSON.stringify(rows)).not.toContain(secret);
    await agent.stop();
  });

  test("audit --follow prints rows as they arrive, and ends with 0 when it is stopped", async () => {
    const follower = startLongline(["audit", "--follow", "--json", "--limit", "1"], { env: relay.env });
    await follower.line("stdout", () => true);
    await ok("device", "add", "followed");
    await follower.line("stdout", (line) => line.includes("followed"));
    follower.child.kill("SIGINT");
    expect(await follower.ended()).toEqual({ code: 0, signal: null });
  });

  test("a machine without a key shows a code, is approved on the command line, and keeps its key for itself", async () => {
    const env = { XDG_STATE_HOME: join(home.path, "state") };
    const args = ["agent", "--relay", relay.url, "--pair-as", "attic", "--demo", "--json"];
    const agent = startLongline(args, { env });
    const line = await agent.line("stderr", (text) => text.includes("longline device approve"));
    const [, code = "", screen = ""] = /approve (\S+) --screen (\S+)/.exec(line) ?? [];
    const wrong = screen === "BB" ? "CC" : "BB";
    expect((await longline(["device", "approve", code, "--screen", wrong], { env: relay.env })).code).toBe(3);
    const approved = await longline(["device", "approve", code, "--screen", screen, "--json"], { env: relay.env });
    expect({ code: approved.code, out: JSON.parse(approved.stdout) }).toEqual({ code: 0, out: { device: "attic", approved: true } });
    expect(JSON.parse(await agent.line("stdout", () => true))).toMatchObject({ state: "online", device: "attic" });
    agent.child.kill("SIGINT");
    expect((await agent.ended()).code).toBe(0);

    const path = join(env.XDG_STATE_HOME, "longline", "paired", `${new URL(relay.url).host.replaceAll(/[^a-z0-9.-]/g, "_")}_attic`);
    const key = (await readFile(path, "utf8")).trim();
    expect(key).toMatch(/^llk_/);
    expect((await stat(path)).mode & 0o077).toBe(0);
    expect(agent.output.stderr + agent.output.stdout).not.toContain(key);

    const again = startLongline(args, { env });
    expect(JSON.parse(await again.line("stdout", () => true))).toMatchObject({ state: "online", device: "attic" });
    await again.stop();
  });

  test("owner recover makes a new owner token from the data of a stopped relay, and ends the others", async () => {
    const dataDir = join(home.path, "recover");
    // The second start needs the port of the first again.
    const args = ["--port", String(await freePort())];
    const first = await startRelay({ dataDir, args });
    expect((await longline(["owner", "recover", "--data", dataDir])).code).toBe(1);
    await first.stop();
    const recovered = await longline(["owner", "recover", "--data", dataDir, "--json"]);
    expect(recovered.code).toBe(0);
    const { ownerToken } = JSON.parse(recovered.stdout) as { ownerToken: string };
    expect(ownerToken).not.toBe(first.ownerToken);
    const second = await startRelay({ dataDir, args });
    expect(second.ownerToken).toBe(ownerToken);
    expect((await longline(["device", "list"], { env: second.env })).code).toBe(0);
    expect((await longline(["device", "list"], { env: { ...second.env, LONGLINE_OWNER_TOKEN: first.ownerToken } })).code).toBe(3);
    await second.stop();
  });

  test("a machine that waits to be paired stops in order", async () => {
    const agent = startLongline(["agent", "--relay", relay.url, "--demo"], { env: { XDG_STATE_HOME: join(home.path, "waiting") } });
    await agent.line("stderr", (text) => text.includes("Waiting for"));
    agent.child.kill("SIGINT");
    expect(await agent.ended()).toEqual({ code: 0, signal: null });
    expect(agent.output.stdout).toBe("");
  });
});
