/** MCP requests of both eras as bytes. */
import { modernRequest } from "../../support/clients.ts";
import { postRequest, type Target } from "../http-connection.ts";

const LEGACY_VERSION = "2025-11-25";
const ACCEPT = "application/json, text/event-stream";

/** A modern `tools/call`; `meta` is added to its `_meta`. */
export function modernCall(url: URL, token: string, name: string, args: object, meta: object = {}): Target {
  const { headers, body } = modernRequest(token, "tools/call", { name, arguments: args }, { meta });
  const port = Number(url.port);
  return { port, request: postRequest(url.pathname, port, headers, body) };
}

/** Opens a legacy session and makes a `tools/call` in it. */
export async function legacyCall(url: URL, token: string, name: string, args: object): Promise<Target> {
  const headers = { authorization: `Bearer ${token}`, accept: ACCEPT, "content-type": "application/json" };
  const initialize = {
    jsonrpc: "2.0",
    id: 0,
    method: "initialize",
    params: { protocolVersion: LEGACY_VERSION, capabilities: {}, clientInfo: { name: "bench", version: "1.0.0" } },
  };
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(initialize) });
  await response.text();
  const session = response.headers.get("mcp-session-id");
  if (session === null) throw new Error(`initialize gave no session: HTTP ${response.status}`);
  const inSession = { ...headers, "mcp-session-id": session, "mcp-protocol-version": LEGACY_VERSION };
  const initialized = JSON.stringify({ jsonrpc: "2.0", method: "notifications/initialized" });
  await (await fetch(url, { method: "POST", headers: inSession, body: initialized })).text();
  const call = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args } };
  const port = Number(url.port);
  return { port, request: postRequest(url.pathname, port, inSession, JSON.stringify(call)) };
}
