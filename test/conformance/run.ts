/**
 * The official MCP conformance suite through relay and agent, at every protocol version.
 *
 *   npm run conformance [-- --upstream stdio|http] [--delay MS] [--version V] [--verbose]
 *
 * Prints checks passed and failed per version. Exits 1 when a check fails that test/conformance/baseline.json does not
 * name, or when one it names passes.
 */
import { execFile } from "node:child_process";
import { mkdtemp, readFile, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs, promisify } from "node:util";
import { FIXTURE_STDIO, startFixtureHttp, startStack } from "../support/stack.ts";
import { startCredentialProxy } from "./credential-proxy.ts";

const VERSIONS = ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];
const CLI = new URL("../../node_modules/@modelcontextprotocol/conformance/dist/index.js", import.meta.url).pathname;
const run = promisify(execFile);

interface Check {
  scenario: string;
  id: string;
  status: string;
  message: string;
}

/** Reads every checks.json the suite wrote. */
async function readChecks(directory: string): Promise<Check[]> {
  const checks: Check[] = [];
  for (const entry of (await readdir(directory)).sort()) {
    const scenario = entry.replace(/^server-/, "").replace(/-\d{4}-\d\d-\d\dT.*$/, "");
    const text = await readFile(join(directory, entry, "checks.json"), "utf8").catch(() => "[]");
    for (const { id, status, errorMessage } of JSON.parse(text) as { id: string; status: string; errorMessage?: string }[]) {
      checks.push({ scenario, id, status, message: errorMessage ?? "" });
    }
  }
  return checks;
}

const { values } = parseArgs({
  options: {
    upstream: { type: "string", default: "stdio" },
    delay: { type: "string", default: "0" },
    version: { type: "string", multiple: true },
    verbose: { type: "boolean", default: false },
  },
});

const baseline = JSON.parse(await readFile(new URL("./baseline.json", import.meta.url), "utf8")) as Record<string, Record<string, string>>;
const fixture = values.upstream === "http" ? await startFixtureHttp() : undefined;
const stack = await startStack({
  agent: fixture ? ["--upstream", fixture.url, "--isolation", "grant"] : ["--", ...FIXTURE_STDIO],
  tunnelDelayMs: Number(values.delay),
  ...(fixture ? { alsoStop: [fixture] } : {}),
});
const proxy = await startCredentialProxy(stack.mcpUrl, stack.token);
const output = await mkdtemp(join(tmpdir(), "longline-conformance-"));
let bad = 0;
let totalPassed = 0;
let totalFailed = 0;
try {
  for (const version of values.version ?? VERSIONS) {
    const directory = join(output, version);
    const args = [CLI, "server", "--url", proxy.url, "--suite", "all", "--spec-version", version, "-o", directory];
    const { stdout } = await run(process.execPath, args, { maxBuffer: 64 << 20 }).catch((error: { stdout?: string }) => ({
      stdout: error.stdout ?? "",
    }));
    if (values.verbose) console.log(stdout);
    const checks = await readChecks(directory);
    const of = (status: string): Check[] => checks.filter((check) => check.status === status);
    const expected = baseline[version] ?? {};
    const failures = of("FAILURE");
    const unexpected = failures.filter((check) => !(check.scenario in expected) && !(`${check.scenario}:${check.id}` in expected));
    const healed = Object.keys(expected).filter((key) => !failures.some((c) => key === c.scenario || key === `${c.scenario}:${c.id}`));
    const scenarios = new Set(checks.map((check) => check.scenario)).size;
    const passed = of("SUCCESS").length;
    console.log(`${version}: ${scenarios} scenarios, ${passed}/${passed + failures.length} checks, ${of("WARNING").length} warnings`);
    for (const check of [...unexpected, ...of("WARNING")]) {
      console.log(`  ${check.status} ${check.scenario}:${check.id} ${check.message.slice(0, 300)}`);
    }
    for (const key of healed) console.log(`  PASSES but is in the baseline: ${key}`);
    if (checks.length === 0) console.log("  no check ran");
    bad += unexpected.length + healed.length + (checks.length === 0 ? 1 : 0);
    totalPassed += passed;
    totalFailed += failures.length;
  }
} finally {
  await proxy.close();
  await stack.stop();
  await rm(output, { recursive: true, force: true });
}
console.log(
  `conformance through ${values.upstream}${values.delay === "0" ? "" : ` at ${values.delay} ms`}: ${totalPassed} passed, ${totalFailed} failed`,
);
process.exitCode = bad === 0 ? 0 : 1;
