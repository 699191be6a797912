/** Official MCP clients of both generations on the standard streams of `longline connect`. */
import { join } from "node:path";
import { Client as ClientV1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as TransportV1 } from "@modelcontextprotocol/sdk/client/stdio.js";
import { Client as ClientV2, type ClientCapabilities, type VersionNegotiationMode } from "@modelcontextprotocol/client";
import { StdioClientTransport as TransportV2 } from "@modelcontextprotocol/client/stdio";

const COMMAND = join(import.meta.dirname, "../../bin/longline.cjs");
const info = { name: "longline-test", version: "1.0.0" };

/** How the client's user set it up. */
export interface Setup {
  /** A device's MCP URL. */
  mcpUrl: string;
  env: Readonly<Record<string, string>>;
}

function server({ mcpUrl, env }: Setup) {
  const inherited = Object.entries({ ...process.env, ...env }).filter((pair): pair is [string, string] => pair[1] !== undefined);
  return { command: process.execPath, args: [COMMAND, "connect", mcpUrl], env: Object.fromEntries(inherited), stderr: "inherit" as const };
}

/** The 1.x client; `prepare` sets its handlers before it connects. */
export async function stdioV1(
  setup: Setup,
  capabilities: object = {},
  prepare: (client: ClientV1) => void = () => undefined,
): Promise<ClientV1> {
  const client = new ClientV1(info, { capabilities });
  prepare(client);
  await client.connect(new TransportV1(server(setup)));
  return client;
}

/** The 2.x client in one of its negotiation modes. */
export async function stdioV2(
  setup: Setup,
  mode: VersionNegotiationMode,
  capabilities: ClientCapabilities = {},
  prepare: (client: ClientV2) => void = () => undefined,
): Promise<ClientV2> {
  const client = new ClientV2(info, { capabilities, versionNegotiation: { mode } });
  prepare(client);
  await client.connect(new TransportV2(server(setup)));
  return client;
}
