/** OAuth on the embedded relay: what it keeps over a restart, where it fetches nothing from, and what it says without TLS. */
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test } from "vitest";
import { temporaryDir } from "../support/processes.ts";
import { type RelayProcess, startRelay } from "../support/relay-process.ts";

const ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

function authorizeUrl(relay: RelayProcess, clientId: string, redirect: string, mcpUrl: string): string {
  const query = new URLSearchParams({
    response_type: "code",
    client_id: clientId,
    redirect_uri: redirect,
    code_challenge: "A".repeat(43),
    code_challenge_method: "S256",
    resource: mcpUrl,
  });
  return `${relay.url}/oauth/authorize?${query.toString()}`;
}

async function register(relay: RelayProcess, redirect: string): Promise<string> {
  const response = await fetch(`${relay.url}/oauth/register`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ client_name: "Kept", redirect_uris: [redirect], token_endpoint_auth_method: "none" }),
  });
  expect(response.status).toBe(201);
  return ((await response.json()) as { client_id: string }).client_id;
}

test("a registered client is known after a restart", async () => {
  const data = await temporaryDir();
  ends.push(data.remove);
  const redirect = "http://127.0.0.1:4711/callback";
  const first = await startRelay({ dataDir: data.path });
  ends.push(() => first.stop());
  const { mcpUrl } = await first.addDevice("pi");
  const clientId = await register(first, redirect);
  await first.stop();
  const port = new URL(first.url).port;
  const second = await startRelay({ dataDir: data.path, args: ["--port", port] });
  ends.push(() => second.stop());
  const known = await fetch(authorizeUrl(second, clientId, redirect, mcpUrl), { redirect: "manual" });
  expect(known.status).toBe(303);
  expect(known.headers.get("location")).toMatch(/^\/sign-in\?next=/);
  const unknown = await fetch(authorizeUrl(second, "AAAAAAAAAAAAAAAA", redirect, mcpUrl), { redirect: "manual" });
  expect(unknown.status).toBe(400);
});

test("no client's metadata document is fetched from this machine", async () => {
  const relay = await startRelay();
  ends.push(() => relay.stop());
  const { mcpUrl } = await relay.addDevice("pi");
  let connections = 0;
  const inside = createServer((socket) => {
    connections += 1;
    socket.destroy();
  });
  await new Promise<void>((resolve) => inside.listen(0, "127.0.0.1", resolve));
  ends.push(() => new Promise((resolve) => inside.close(resolve)));
  const { port } = inside.address() as AddressInfo;
  for (const host of ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0.0.0.0", "2130706433", "127.0.0.1.nip.io"]) {
    const clientId = `https://${host}:${port}/client.json`;
    const response = await fetch(authorizeUrl(relay, clientId, "http://127.0.0.1/callback", mcpUrl), { redirect: "manual" });
    expect(response.status).toBe(400);
    expect(await response.text()).toContain("metadata document could not be read");
  }
  expect(connections).toBe(0);
});

test("a relay whose public origin is plain http in a network says why there is no OAuth", async () => {
  const relay = await startRelay({ args: ["--origin", "http://relay.lan:8787"] });
  ends.push(() => relay.stop());
  // The socket is loopback, but the issuer would be the public origin.
  const local = `http://127.0.0.1:${new URL(await localUrl(relay)).port}`;
  const response = await fetch(`${local}/.well-known/oauth-authorization-server`);
  expect(response.status).toBe(404);
  expect(await response.text()).toContain("OAuth is off: http://relay.lan:8787 is plain http");
});

/** Where a relay with another public origin listens. */
async function localUrl(relay: RelayProcess): Promise<string> {
  const { readFile } = await import("node:fs/promises");
  const lock = JSON.parse(await readFile(`${relay.dataDir}/lock`, "utf8")) as { url: string };
  return lock.url;
}
