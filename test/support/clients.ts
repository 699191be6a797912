/** Official MCP clients of both generations, connected to one MCP URL with a bearer token. */
import { Client as ClientV1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as TransportV1 } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from "@modelcontextprotocol/client";
import type { ClientCapabilities, VersionNegotiationMode } from "@modelcontextprotocol/client";

const info = { name: "longline-test", version: "1.0.0" };

/** The 1.x client, handshake era. */
export async function connectV1(url: string, token: string, capabilities: object = {}): Promise<ClientV1> {
  const client = new ClientV1(info, { capabilities });
  const transport = new TransportV1(new URL(url), { requestInit: { headers: { authorization: `Bearer ${token}` } } });
  await client.connect(transport);
  return client;
}

/** The 2.x client in one of its negotiation modes; undefined is its default. */
export async function connectV2(
  url: string,
  token: string,
  mode?: VersionNegotiationMode,
  capabilities: ClientCapabilities = {},
): Promise<ClientV2> {
  const client = new ClientV2(info, { capabilities, ...(mode === undefined ? {} : { versionNegotiation: { mode } }) });
  await client.connect(new TransportV2(new URL(url), { requestInit: { headers: { authorization: `Bearer ${token}` } } }));
  return client;
}

/** Headers and body of a modern request, for `fetch`. */
export function modernRequest(
  token: string,
  method: string,
  params: Record<string, unknown> = {},
  options: { id?: unknown; name?: string; capabilities?: object; accept?: string; meta?: object; headers?: Record<string, string> } = {},
): RequestInit & { method: "POST"; headers: Record<string, string>; body: string } {
  const name = options.name ?? params["name"] ?? params["uri"];
  return {
    method: "POST",
    headers: {
      authorization: `Bearer ${token}`,
      accept: options.accept ?? "application/json, text/event-stream",
      "content-type": "application/json",
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": method,
      ...(typeof name === "string" ? { "mcp-name": name } : {}),
      ...options.headers,
    },
    body: JSON.stringify({
      jsonrpc: "2.0",
      id: "id" in options ? options.id : 1,
      method,
      params: {
        ...params,
        _meta: {
          "io.modelcontextprotocol/protocolVersion": "2026-07-28",
          "io.modelcontextprotocol/clientCapabilities": options.capabilities ?? {},
          "io.modelcontextprotocol/clientInfo": info,
          ...options.meta,
        },
      },
    }),
  };
}

/** The JSON messages of a response, whether it is JSON or SSE. */
export async function readMessages(response: Response): Promise<Record<string, unknown>[]> {
  const text = await response.text();
  if (!(response.headers.get("content-type") ?? "").startsWith("text/event-stream")) {
    if (text === "") return [];
    const value: unknown = JSON.parse(text);
    return (Array.isArray(value) ? value : [value]) as Record<string, unknown>[];
  }
  return text
    .split("\n")
    .filter((line) => line.startsWith("data:"))
    .map((line) => JSON.parse(line.slice(5)) as Record<string, unknown>);
}
