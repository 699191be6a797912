/** Secrets never travel: marked credentials and headers go in by every path, and are looked for everywhere they could come out. */
import { createHash } from "node:crypto";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { modernRequest } from "../support/clients.ts";
import { EventReader } from "../support/event-reader.ts";
import { MarkedClient, Marks } from "../support/marked-client.ts";
import { eventually, temporaryDir } from "../support/processes.ts";
import { type AgentProcess, type RelayProcess, startAgent, startRelay } from "../support/relay-process.ts";
import { recordTunnel, type TunnelRecorder } from "../support/tunnel-recorder.ts";

const SNOOP = join(import.meta.dirname, "../fixtures/upstream/snoop.mjs");
const REDIRECT = "http://127.0.0.1:4711/callback";
const FORM = { "Content-Type": "application/x-www-form-urlencoded" };
const JSON_BODY = { "Content-Type": "application/json", Accept: "application/json, text/event-stream" };
/** What a device is to see of a call, and nobody else. */
const PAYLOAD = ["an argument"];

const marks = new Marks();
const client = new MarkedClient(marks);
let relay: RelayProcess;
let tunnel: TunnelRecorder;
let agent: AgentProcess;
let home: Awaited<ReturnType<typeof temporaryDir>>;
let mcpUrl: string;
let token: string;
let deviceKey: string;
const witness = (): string => join(home.path, "witness");
const keyFile = (): string => join(home.path, "key");

beforeAll(async () => {
  home = await temporaryDir();
  relay = await startRelay({ dataDir: join(home.path, "data") });
  tunnel = await recordTunnel(relay.url);
  const added = await relay.addDevice("bench");
  ({ deviceKey } = added);
  ({ token, mcpUrl } = await relay.createToken("bench"));
  marks.add("the owner token", relay.ownerToken);
  marks.add("the access token", token);
  marks.add("the device key", deviceKey.slice(-43));
  marks.add("the root key", (await readFile(join(relay.dataDir, "root-key"), "utf8")).trim());
  await writeFile(keyFile(), deviceKey, { mode: 0o600 });
  const args = ["--key-file", keyFile(), "--", process.execPath, SNOOP, witness()];
  agent = await startAgent({ relay: tunnel.url, deviceKey, args, stateDir: join(home.path, "state") });
});
afterAll(async () => {
  await agent.stop();
  await tunnel.stop();
  await relay.stop();
  await home.remove();
});

/** A modern request, as it is sent by hand. */
function modern(method: string, params: Record<string, unknown> = {}, bearer = token) {
  const { headers, body } = modernRequest(bearer, method, params);
  return client.send(mcpUrl, { method: "POST", headers, body });
}

const call = (name: string, args: Record<string, unknown> = {}) => modern("tools/call", { name, arguments: args });

function post(path: string, body: Record<string, unknown>, headers: Record<string, string> = {}): Parameters<MarkedClient["get"]> {
  return [`${relay.url}${path}`, { method: "POST", headers: { ...JSON_BODY, ...headers }, body: JSON.stringify(body) }];
}

function form(path: string, fields: [string, string][] | Record<string, string>): Parameters<MarkedClient["get"]> {
  return [`${relay.url}${path}`, { method: "POST", headers: { ...FORM, Origin: relay.url }, body: new URLSearchParams(fields).toString() }];
}

const asOwner = (): Record<string, string> => ({ Authorization: `Bearer ${relay.ownerToken}` });

async function throughMcp(): Promise<void> {
  const args = { text: marks.make("an argument"), token: marks.make("a token among the arguments") };
  for (const method of ["server/discover", "tools/list", "no/such"]) await modern(method);
  const { text } = await call("brought", { text: args.text });
  expect(text).toContain(args.text);
  await modern("tools/call", { name: "brought", arguments: {} }, marks.make("a bearer that is no token"));
  await modern("tools/call", { name: "brought", arguments: {} }, `${token.slice(0, -4)}AAAA`);
  await client.send(`${mcpUrl}?access_token=${marks.make("a token in the query")}`, { method: "POST", headers: JSON_BODY, body: "{}" });
  await client.send(mcpUrl, { method: "POST", headers: { ...JSON_BODY, Authorization: `Bearer ${token}` }, body: `{"${args.token}` });
}

async function throughLegacy(): Promise<void> {
  const headers = { ...JSON_BODY, Authorization: `Bearer ${token}` };
  const rpc = (id: number, method: string, params: object, more: Record<string, string> = {}) =>
    client.send(mcpUrl, {
      method: "POST",
      headers: { ...headers, ...more },
      body: JSON.stringify({ jsonrpc: "2.0", id, method, params }),
    });
  const hello = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "old", version: "1" } };
  const { response } = await rpc(0, "initialize", hello);
  const inSession = { "Mcp-Session-Id": response.headers.get("mcp-session-id") ?? "", "MCP-Protocol-Version": "2025-11-25" };
  const stream = await client.open(mcpUrl, { headers: { ...headers, ...inSession, Accept: "text/event-stream" } });
  expect(stream.status).toBe(200);
  expect((await rpc(1, "tools/call", { name: "brought", arguments: {} }, inSession)).text).toContain("brought");
  await rpc(2, "tools/call", { name: "brought", arguments: {} });
  await stream.body?.cancel();
  await client.send(mcpUrl, { method: "DELETE", headers: { ...headers, ...inSession } });
}

async function throughListen(): Promise<void> {
  const { headers, body } = modernRequest(token, "subscriptions/listen", { notifications: { toolsListChanged: true } });
  const stream = await client.open(mcpUrl, { method: "POST", headers, body });
  expect(await new EventReader(stream).next()).toMatchObject({ method: expect.stringContaining("subscriptions") });
}

async function throughPages(): Promise<void> {
  await client.send(...form("/sign-in", { token: `llo_${marks.make("a wrong owner token")}`, next: "/account" }));
  const signedIn = await client.open(...form("/sign-in", { token: relay.ownerToken, next: "/account" }));
  client.session = signedIn.headers.getSetCookie()[0]?.split(";")[0] ?? "";
  marks.add("the session cookie", client.session.split("=")[1] ?? "");
  await client.send(`${relay.url}/account`);
  const invited = JSON.parse(await client.get(...post("/api/invitations", { for: "Ada" }, asOwner()))) as { link: string };
  const code = marks.add("an invitation's code", invited.link.split("#")[1] ?? "");
  const link = JSON.parse(await client.get(...post("/api/setup-links", {}, asOwner()))) as { link: string };
  marks.add("a set-up link's code", link.link.split("#")[1] ?? "");
  await client.send(`${relay.url}/join`);
  await client.get(...form("/join", { code, next: "/account" }));
  await client.send(...form("/join/accept", { code, next: "/account", name: "Ada" }));
  await client.send(...form("/join/accept", { code: `lli_${marks.make("a wrong code")}`, next: "/account", name: "Eve" }));
}

async function throughOAuth(): Promise<void> {
  const registration = { client_name: "Marked", redirect_uris: [REDIRECT], token_endpoint_auth_method: "client_secret_post" };
  const registered = JSON.parse(await client.get(...post("/oauth/register", registration))) as { client_id: string; client_secret: string };
  const { client_id, client_secret } = registered;
  marks.add("a client's secret", client_secret);
  const verifier = marks.make("a code verifier").padEnd(64, "v");
  const asked = new URLSearchParams({
    response_type: "code",
    client_id,
    redirect_uri: REDIRECT,
    state: marks.make("a state"),
    code_challenge: createHash("sha256").update(verifier).digest("base64url"),
    code_challenge_method: "S256",
    resource: mcpUrl,
  });
  const page = await client.get(`${relay.url}/oauth/authorize?${asked.toString()}`);
  const consent = / name="consent" value="([^"]+)"/.exec(page)?.[1] ?? "";
  const decided = await client.open(...form("/oauth/authorize", { consent, scope: "all", days: "1", decision: "allow" }));
  const code = marks.add("an authorization code", new URL(decided.headers.get("location") ?? "").searchParams.get("code") ?? "");
  const redeem = (fields: Record<string, string>): Parameters<MarkedClient["get"]> =>
    form("/oauth/token", { client_id, client_secret, resource: mcpUrl, ...fields });
  const withCode = { grant_type: "authorization_code", code, code_verifier: verifier, redirect_uri: REDIRECT };
  const first = JSON.parse(await client.get(...redeem(withCode))) as { access_token: string; refresh_token: string };
  marks.add("an access token of OAuth", first.access_token);
  marks.add("a refresh token", first.refresh_token);
  const next = JSON.parse(await client.get(...redeem({ grant_type: "refresh_token", refresh_token: first.refresh_token }))) as typeof first;
  marks.add("the next access token", next.access_token);
  marks.add("the next refresh token", next.refresh_token);
  expect((await modern("tools/call", { name: "brought", arguments: {} }, next.access_token)).response.status).toBe(200);
  await client.send(...redeem({ grant_type: "refresh_token", refresh_token: `a:b:${marks.make("a wrong refresh token")}` }));
  await client.send(...form("/oauth/token", { client_id, client_secret: marks.make("a wrong client secret"), ...withCode }));
  await client.send(...form("/oauth/revoke", { client_id, client_secret, token: next.refresh_token }));
}

async function throughPairing(): Promise<void> {
  const facts = { host: "h", system: "s", agentVersion: "1", name: "paired" };
  type Started = { deviceCode: string; userCode: string; screen: string };
  const started = JSON.parse(await client.get(...post("/pair/start", facts))) as Started;
  marks.add("a device code", started.deviceCode);
  await client.send(...post("/pair/claim", { deviceCode: started.deviceCode }));
  await client.send(...post("/pair/claim", { deviceCode: `llp_${marks.make("a wrong device code")}` }));
  await client.send(`${relay.url}/pair?code=${started.userCode}`);
  await client.send(...form("/pair", { code: started.userCode, name: "paired", screen: started.screen, decision: "approve" }));
  const paired = JSON.parse(await client.get(...post("/pair/claim", { deviceCode: started.deviceCode }))) as { deviceKey: string };
  marks.add("a paired device's key", paired.deviceKey.slice(-43));
}

async function throughApi(): Promise<void> {
  for (const path of ["/api/devices", "/api/status", "/api/audit", "/api/members", "/api/invitations", "/api/owner-tokens"])
    await client.send(`${relay.url}${path}`, { headers: asOwner() });
  const wrong = { Authorization: `Bearer llo_${marks.make("another wrong owner token")}` };
  await client.send(`${relay.url}/api/devices`, { headers: wrong });
  await client.send(`${relay.url}/tunnel`, { headers: { Authorization: `Bearer llk_${marks.make("a wrong device key")}` } });
  await client.send(...post("/api/devices", { name: "x", secret: marks.make("an unknown member") }, asOwner()));
  await client.send(`${relay.url}/health`);
  await client.send(`${relay.url}/no/such?token=${marks.make("a token in a query")}`);
}

async function snooping(): Promise<void> {
  for (const name of ["agent_environment", "environment_above", "own_environment"]) await call(name);
  await call("file", { path: keyFile() });
  await call("fail", { path: keyFile() });
}

async function filesBelow(directory: string): Promise<string[]> {
  const found = await readdir(directory, { recursive: true, withFileTypes: true });
  return found.filter((file) => file.isFile()).map((file) => join(file.parentPath, file.name));
}

test("secrets never travel", async () => {
  await throughMcp();
  await throughLegacy();
  await throughListen();
  await throughPages();
  await throughOAuth();
  await throughPairing();
  await throughApi();
  await snooping();
  expect(marks.size).toBeGreaterThan(45);

  // The tunnel carries what a call is about, and nothing else of whoever called.
  const frames = tunnel.frames();
  expect(frames).toContain('"type":"call"');
  expect(marks.in(frames, PAYLOAD)).toEqual([]);
  // What a tool got to see, what it was started with, and the agent's files beside it.
  const started = JSON.parse(await readFile(witness(), "utf8")) as { env: Record<string, string> };
  expect(marks.in(JSON.stringify(started))).toEqual([]);
  expect(Object.keys(started.env).filter((name) => name.startsWith("LONGLINE"))).toEqual([]);
  for (const path of await filesBelow(agent.stateDir)) expect({ path, marks: marks.in(await readFile(path)) }).toEqual({ path, marks: [] });

  // Answers: what a client sent comes back in none, but for its own argument.
  for (const { to, text } of client.answers) expect({ to, marks: marks.in(text, PAYLOAD) }).toEqual({ to, marks: [] });

  // The audit, with a row for each call.
  let rows = "";
  await eventually("the calls are on record", async () => {
    rows = await client.get(`${relay.url}/api/audit?limit=1000`, { headers: asOwner() });
    return rows.includes('"own_environment"') && rows.includes('"fail"') && rows.includes('"/api/*"');
  });
  expect(marks.in(rows)).toEqual([]);

  // Logs. The first line of `serve --json` is the owner's own.
  const { stdout, stderr } = relay.process.output;
  expect(marks.in(stdout.slice(stdout.indexOf("\n")) + stderr)).toEqual([]);
  const said = agent.process.output;
  expect(said.stderr).toContain("held this device's key and was not passed on");
  expect(marks.in(said.stdout + said.stderr)).toEqual([]);

  // D1, KV and the objects as they are on disk; the two files are the owner's own.
  const files = (await filesBelow(relay.dataDir)).filter((path) => !/\/(root-key|owner-token)$/.test(path));
  expect(files.filter((path) => path.endsWith(".sqlite")).length).toBeGreaterThan(3);
  for (const path of files) expect({ path, marks: marks.in(await readFile(path)) }).toEqual({ path, marks: [] });
});
