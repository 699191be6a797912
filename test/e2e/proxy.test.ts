/** An agent in a network that lets nothing out but a proxy, towards a relay whose certificate comes from a private authority. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { connect, type AddressInfo } from "node:net";
import { join } from "node:path";
import { createServer, type Server } from "node:tls";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { startConnectProxy, type ConnectProxy } from "../support/connect-proxy.ts";
import { eventually, temporaryDir, type RunningProcess } from "../support/processes.ts";
import { longline, startLongline, startRelay, type RelayProcess } from "../support/relay-process.ts";
import { freePort } from "../support/tcp-proxy.ts";

const ORIGIN = "https://relay.test";
const TARGET = "relay.test:443";
/** No proxy of the person who runs the tests. */
const NO_PROXY = Object.fromEntries(
  ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY", "https_proxy", "http_proxy", "all_proxy", "no_proxy", "NODE_EXTRA_CA_CERTS"].map(
    (name) => [name, undefined],
  ),
);

let dir: Awaited<ReturnType<typeof temporaryDir>>;
let relay: RelayProcess;
let front: Server;
let proxy: ConnectProxy;
let caFile: string;
let deviceKey: string;
let targets: Map<string, number>;
const running: RunningProcess[] = [];

/** A self-signed certificate for the relay's name: its own authority. */
function makeCertificate(directory: string): { key: Buffer; cert: Buffer } {
  const args = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30", "-subj", "/CN=relay.test"];
  const more = ["-addext", "subjectAltName=DNS:relay.test", "-keyout", join(directory, "key.pem"), "-out", join(directory, "ca.pem")];
  execFileSync("openssl", [...args, ...more], { stdio: "ignore" });
  return { key: readFileSync(join(directory, "key.pem")), cert: readFileSync(join(directory, "ca.pem")) };
}

beforeAll(async () => {
  dir = await temporaryDir();
  caFile = join(dir.path, "ca.pem");
  const port = await freePort();
  front = createServer(makeCertificate(dir.path), (socket) => {
    const onward = connect(port, "127.0.0.1");
    socket.pipe(onward).pipe(socket);
    for (const end of [socket, onward]) end.on("error", () => void (socket.destroy(), onward.destroy()));
  });
  await new Promise<void>((resolve) => front.listen(0, "127.0.0.1", resolve));
  targets = new Map([[TARGET, (front.address() as AddressInfo).port]]);
  proxy = await startConnectProxy(targets);
  relay = await startRelay({ args: ["--port", String(port), "--origin", `http://127.0.0.1:${port}`, "--origin", ORIGIN] });
  ({ deviceKey } = await relay.addDevice("inside"));
});
afterEach(async () => {
  for (const run of running.splice(0)) await run.stop();
});
afterAll(async () => {
  await relay.stop();
  await proxy.stop();
  await new Promise((resolve) => front.close(resolve));
  await dir.remove();
});

function agent(env: Record<string, string>, more: readonly string[] = []): RunningProcess {
  const run = startLongline(["agent", "--relay", ORIGIN, "--state", join(dir.path, "state"), "--demo", ...more], {
    env: { ...NO_PROXY, LONGLINE_DEVICE_KEY: deviceKey, ...env },
  });
  running.push(run);
  return run;
}

test("the tunnel goes through HTTPS_PROXY by CONNECT, its name resolved there, with --ca-file or NODE_EXTRA_CA_CERTS", async () => {
  const first = agent({ HTTPS_PROXY: `http://${proxy.host}` }, ["--ca-file", caFile]);
  await first.line("stderr", (line) => line.startsWith("online as inside"));
  expect(proxy.asked).toContain(TARGET);
  await first.stop();
  const second = agent({ https_proxy: `http://${proxy.host}`, NODE_EXTRA_CA_CERTS: caFile });
  await second.line("stderr", (line) => line.startsWith("online as inside"));
});

test("without the authority the certificate is refused, and doctor says which option helps", async () => {
  const env = { ...NO_PROXY, LONGLINE_DEVICE_KEY: deviceKey, HTTPS_PROXY: `http://${proxy.host}` };
  const run = agent({ HTTPS_PROXY: `http://${proxy.host}` });
  await run.line("stderr", (line) => line.includes("SELF_SIGNED"));
  const { code, stdout } = await longline(["doctor", "--relay", ORIGIN], { env });
  expect(code).toBe(1);
  expect(stdout).toMatch(/FAILED .*SELF_SIGNED/);
  expect(stdout).toContain("--ca-file");
  const well = await longline(["doctor", "--relay", ORIGIN, "--ca-file", caFile], { env });
  expect(well.code, well.stdout).toBe(0);
});

test("what NO_PROXY names goes past the proxy", async () => {
  const before = proxy.asked.length;
  const run = agent({ HTTPS_PROXY: `http://${proxy.host}`, NO_PROXY: "relay.test" }, ["--ca-file", caFile]);
  // This machine itself does not know the name.
  await run.line("stderr", (line) => /cannot be reached \((?:ENOTFOUND|EAI_AGAIN)\)/.test(line));
  expect(proxy.asked.length).toBe(before);
});

test("a proxy that wants a password is told apart from the relay, and the agent tries on until it has one", async () => {
  const strict = await startConnectProxy(targets, "ada:s3cret");
  try {
    const run = agent({ HTTPS_PROXY: `http://${strict.host}` }, ["--ca-file", caFile]);
    await run.line("stderr", (line) => line.includes("the proxy between here and the relay refused the connection (HTTP 407)"));
    await eventually("another try", () => strict.asked.length >= 2);
    const known = agent({ HTTPS_PROXY: `http://ada:s3cret@${strict.host}` }, [
      "--ca-file",
      caFile,
      "--state",
      join(dir.path, "other"),
      "--takeover",
    ]);
    await known.line("stderr", (line) => line.startsWith("online as inside"));
    expect(known.output.stderr).not.toContain("s3cret");
    // A 403 of the proxy is no verdict on the key.
    targets.delete(TARGET);
    const env = { ...NO_PROXY, HTTPS_PROXY: `http://ada:s3cret@${strict.host}` };
    const { stdout } = await longline(["doctor", "--relay", ORIGIN, "--ca-file", caFile], { env });
    expect(stdout).toContain("the proxy refuses to connect to relay.test (HTTP 403)");
    expect(stdout).not.toContain("s3cret");
  } finally {
    await strict.stop();
  }
});
