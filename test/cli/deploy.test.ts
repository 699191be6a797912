/** `longline deploy` and `destroy`, against a stand-in for wrangler that keeps an account and runs the SQL. */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { deployConfig } from "../../src/cli/deploy/deploy-dir.ts";
import { originsOf } from "../../src/cli/deploy/wrangler.ts";
import { packageRoot } from "../../src/serve/package-root.ts";
import { command, type Outcome } from "./support.ts";

const STUB = join(import.meta.dirname, "../support/stub-wrangler.mjs");
const LINK = "https://relay.test/sign-in#code";

let home: string;
let server: Server;
let address: string;
/** Requests of the deployed relay, as `METHOD PATH`. */
let asked: string[];

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "longline-test-"));
  asked = [];
  server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    const token = (request.headers.authorization ?? "").replace("Bearer ", "");
    const isKnown = request.url === "/health" || tokenHashes().includes(createHash("sha256").update(token).digest("base64url"));
    response.writeHead(isKnown ? 200 : 401, { "content-type": "application/json" });
    response.end(JSON.stringify(isKnown ? { ok: true, link: LINK, inFlight: 0 } : { error: { code: "not_authorised", message: "no" } }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  address = `http://127.0.0.1:${(server.address() as { port: number }).port}`;
});
afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  await rm(home, { recursive: true, force: true });
});

function tokenHashes(): string[] {
  const rows = new DatabaseSync(join(home, "d1.sqlite")).prepare("SELECT hash FROM owner_tokens").all();
  return rows.map((row) => String(row["hash"]));
}

async function run(args: readonly string[], env: Record<string, string> = {}): Promise<Outcome> {
  const all = { PATH: process.env["PATH"] ?? "", STUB_ACCOUNT: home, STUB_ADDRESS: address, ...env };
  return await command([...args, "--wrangler", STUB], { cwd: home, env: all });
}

/** The calls of wrangler since the last look, without the paths. */
async function calls(): Promise<string[]> {
  const text = await readFile(join(home, "calls"), "utf8").catch(() => "");
  await rm(join(home, "calls"), { force: true });
  const lines = text.split("\n").filter((line) => line !== "");
  return lines.map((line) => (JSON.parse(line) as string[]).filter((arg) => !/\/|^INSERT|^SELECT/.test(arg)).join(" "));
}

function account(): { databases: { name: string }[]; namespaces: { title: string }[]; workers: Record<string, Worker> } {
  return JSON.parse(readFileSync(join(home, "account.json"), "utf8")) as ReturnType<typeof account>;
}
interface Worker {
  vars: Record<string, string>;
  secrets: string[];
  config: Record<string, unknown>;
}

describe("a first deploy", () => {
  test("makes what is missing, in order, and prints how to go on", async () => {
    const { code, out, err } = await run(["deploy"]);
    expect([code, err]).toEqual([0, expect.stringContaining("Checking the Cloudflare login")]);
    expect(await calls()).toEqual([
      "whoami --json",
      "secret list --name longline --format json",
      "d1 list --json",
      "d1 create longline",
      "d1 list --json",
      "kv namespace list",
      "kv namespace create longline-oauth",
      "kv namespace list",
      "d1 migrations apply longline --remote --config",
      "d1 execute longline --remote --yes --json --config --command",
      "d1 execute longline --remote --yes --config --command",
      "deploy --config --keep-vars --secrets-file",
      "deploy --config --keep-vars",
    ]);
    expect(account().workers["longline"]).toMatchObject({
      vars: { LONGLINE_RUNTIME: "cloudflare", LONGLINE_ORIGINS: address },
      secrets: ["LONGLINE_ROOT_KEY"],
    });
    expect(asked).toEqual(["GET /health", "POST /api/setup-links"]);
    expect(out).toContain(`The relay is ready at ${address}`);
    expect(out).toContain(LINK);
    expect(out).toContain(`longline agent --relay ${address}`);
    expect(`${out}${err}`).not.toContain("llo_");
  });

  test("keeps the owner token for its owner only, and no root key", async () => {
    const { out } = await run(["deploy", "--json"]);
    const printed = JSON.parse(out) as Record<string, string>;
    expect(Object.keys(printed)).toEqual(["url", "ownerToken", "consoleUrl", "setupLink"]);
    const dir = join(home, ".longline/deploy/longline");
    expect((await readFile(join(dir, "owner-token"), "utf8")).trim()).toBe(printed["ownerToken"]);
    expect((await stat(join(dir, "owner-token"))).mode & 0o777).toBe(0o600);
    expect((await readdir(dir)).toSorted()).toEqual(["owner-token", "relay.json", "wrangler.json"]);
  });

  test("serves a domain from the first upload on, and keeps data in its jurisdiction", async () => {
    await run(["deploy", "--name", "team", "--domain", "relay.example", "--jurisdiction", "eu"], { STUB_FAILS: "deploy" });
    const seen = await calls();
    expect(seen).toContain("d1 create team --jurisdiction eu");
    expect(seen).toContain("kv namespace create team-oauth --jurisdiction eu");
    const config = JSON.parse(await readFile(join(home, ".longline/deploy/team/wrangler.json"), "utf8")) as unknown;
    expect(config).toMatchObject({
      name: "team",
      vars: { LONGLINE_ORIGINS: "https://relay.example", LONGLINE_JURISDICTION: "eu" },
      routes: [{ pattern: "relay.example", custom_domain: true }],
      workers_dev: false,
      d1_databases: [{ database_id: "uuid-of-team" }],
      kv_namespaces: [{ id: "id-of-team-oauth" }],
    });
  });

  test("goes on where it was when it failed half-way", async () => {
    const failed = await run(["deploy"], { STUB_FAILS: "kv namespace create" });
    expect([failed.code, failed.err]).toEqual([1, expect.stringContaining("code: 10000")]);
    await calls();
    // The database is there, but nothing that it holds needs a key yet.
    expect((await run(["deploy"])).code).toBe(0);
  });
});

describe("a second deploy", () => {
  test("upgrades in place: the database first, then the agents are told, then the code", async () => {
    await run(["deploy"]);
    await calls();
    asked = [];
    const { code, out } = await run(["deploy"]);
    expect([code, out]).toEqual([0, expect.stringContaining("The relay is up to date")]);
    expect((await calls()).slice(-3)).toEqual([
      "d1 migrations apply longline --remote --config",
      "d1 execute longline --remote --yes --config --command",
      "deploy --config --keep-vars",
    ]);
    expect(asked).toEqual(["POST /api/drain", "GET /health", "POST /api/setup-links"]);
    expect(account().workers["longline"]?.secrets).toEqual(["LONGLINE_ROOT_KEY"]);
    expect(tokenHashes()).toHaveLength(1);
  });

  test("from a machine that did not make the relay needs to be told where it is, and keeps its address", async () => {
    await run(["deploy"]);
    await rm(join(home, ".longline"), { recursive: true });
    const refused = await run(["deploy"]);
    expect([refused.code, refused.err]).toEqual([2, expect.stringContaining("--workers-dev")]);
    expect((await run(["deploy", "--workers-dev"])).code).toBe(0);
    expect(account().workers["longline"]?.vars["LONGLINE_ORIGINS"]).toBe(address);
    expect(tokenHashes()).toHaveLength(2);
  });

  test("never gives a database with data a new root key", async () => {
    await run(["deploy"]);
    new DatabaseSync(join(home, "d1.sqlite")).exec(
      "INSERT INTO signing_keys (kid, public_jwk, sealed_private, created_at) VALUES ('k', '{}', 'sealed', 1)",
    );
    const lost = account();
    await writeFile(join(home, "account.json"), JSON.stringify({ ...lost, isLoggedIn: true, workers: {} }));
    const { code, err } = await run(["deploy"]);
    expect([code, err]).toEqual([1, expect.stringContaining("longline destroy --name longline")]);
    expect(account().workers).toEqual({});
  });
});

test("the relay's address is the host on workers.dev that wrangler names, with or without a scheme", () => {
  const line = (...targets: string[]): string => JSON.stringify({ type: "deploy", targets });
  expect(originsOf(`{"type":"wrangler-session"}\n${line("schedule: 0 * * * *", "longline.team.workers.dev")}\n`)).toEqual([
    "https://longline.team.workers.dev",
  ]);
  expect(originsOf(line("https://longline.team.workers.dev"))).toEqual(["https://longline.team.workers.dev"]);
  expect(originsOf("not JSON")).toEqual([]);
});

test("without a login nothing is touched, and the line says how to get one", async () => {
  await writeFile(join(home, "account.json"), JSON.stringify({ isLoggedIn: false, databases: [], namespaces: [], workers: {} }));
  const { code, err } = await run(["deploy"]);
  expect([code, err]).toEqual([3, expect.stringContaining("npx wrangler login")]);
  expect(await calls()).toEqual(["whoami --json"]);
});

test("--dry-run shows every step and runs none", async () => {
  const { code, out } = await run(["deploy", "--dry-run", "--domain", "relay.example"]);
  expect([code, await calls()]).toEqual([0, []]);
  for (const part of ["d1 create longline", "d1 migrations apply", "--keep-vars", "relay.example", "/api/drain"])
    expect(out).toContain(part);
});

test.each([
  [["deploy", "--name", "Not a name"], "lower-case"],
  [["deploy", "--domain", "https://relay.example"], "host name"],
  [["deploy", "--domain", "relay.example", "--workers-dev"], "contradict"],
  [["deploy", "--jurisdiction", "moon"], "eu, us, fedramp"],
])("%j is a mistake of usage", async (args, text) => {
  const { code, err } = await run(args);
  expect([code, err]).toEqual([2, expect.stringContaining(text)]);
});

describe("destroy", () => {
  test("removes what deploy made, and nothing else", async () => {
    await run(["deploy"]);
    await run(["deploy", "--name", "other"]);
    await calls();
    const { code, err } = await run(["destroy", "--yes"]);
    expect([code, err]).toEqual([0, expect.stringContaining("the D1 database longline")]);
    expect(account()).toMatchObject({ databases: [{ name: "other" }], namespaces: [{ title: "other-oauth" }] });
    expect(Object.keys(account().workers)).toEqual(["other"]);
    expect(await readdir(join(home, ".longline/deploy"))).toEqual(["other"]);
    const again = await run(["destroy", "--yes"]);
    expect([again.code, again.err]).toEqual([4, expect.stringContaining("no relay named longline")]);
  });

  test("asks first, and cannot be answered by a pipe", async () => {
    await run(["deploy"]);
    const { code, err } = await run(["destroy"]);
    expect([code, err]).toEqual([2, expect.stringContaining("--yes")]);
    expect(account().databases).toHaveLength(1);
  });
});

test("wrangler itself builds the Worker from a deployment's configuration", async () => {
  const dir = join(home, "deploy");
  await mkdir(dir);
  const place = { url: "https://relay.example", domain: "relay.example", jurisdiction: "eu" };
  const toml = await readFile(join(packageRoot(), "wrangler.toml"), "utf8");
  const config = deployConfig(toml, packageRoot(), { name: "team", databaseId: "0".repeat(32), namespaceId: "1".repeat(32), place });
  await writeFile(join(dir, "wrangler.json"), JSON.stringify(config));
  const wrangler = join(packageRoot(), "node_modules/wrangler/bin/wrangler.js");
  const args = [wrangler, "deploy", "--dry-run", "--config", join(dir, "wrangler.json"), "--outdir", join(dir, "out")];
  const { stdout } = await promisify(execFile)(process.execPath, args, {
    env: { ...process.env, CI: "1", WRANGLER_SEND_METRICS: "false" },
  });
  for (const binding of ["TUNNEL", "PAIRING", "DB", "OAUTH_KV", "LONGLINE_JURISDICTION", "ASSETS"]) expect(stdout).toContain(binding);
}, 60_000);
