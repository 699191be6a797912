/** A whole Longline for a test: relay, device, token and agent, each a real process, with a real upstream behind it. */
import { join } from "node:path";
import { startProcess } from "./processes.ts";
import { startAgent, startRelay } from "./relay-process.ts";
import type { AgentProcess, RelayProcess } from "./relay-process.ts";
import { freePort, startTcpProxy } from "./tcp-proxy.ts";
import type { TcpProxy } from "./tcp-proxy.ts";

const ROOT = join(import.meta.dirname, "../..");

/** Command of the conformance fixture over stdio; both eras. */
export const FIXTURE_STDIO = [process.execPath, join(ROOT, "test/fixtures/upstream/stdio.mjs")];
/** Command of `@modelcontextprotocol/server-everything` over stdio; handshake era only. */
export const EVERYTHING = [process.execPath, join(ROOT, "node_modules/@modelcontextprotocol/server-everything/dist/index.js"), "stdio"];

interface Stoppable {
  stop(): Promise<unknown>;
}

export interface Stack {
  relay: RelayProcess;
  agent: AgentProcess;
  device: string;
  deviceKey: string;
  mcpUrl: string;
  token: string;
  grant: string;
  /** The proxy between agent and relay; only with `tunnelDelayMs`. */
  tunnel?: TcpProxy;
  stop(): Promise<void>;
}

export interface StackOptions {
  /** Arguments of `longline agent` that say what it offers. */
  agent: readonly string[];
  /** The agent's environment beyond the test's own. */
  agentEnv?: Record<string, string>;
  /** Arguments of `longline token create` beyond device and label. */
  token?: readonly string[];
  /** Puts a proxy between agent and relay that adds so many ms each way. */
  tunnelDelayMs?: number;
  /** What ends with the stack. */
  alsoStop?: readonly Stoppable[];
}

/** Starts everything and resolves when the agent is online. */
export async function startStack(options: StackOptions): Promise<Stack> {
  const link = options.tunnelDelayMs === undefined ? undefined : await startDelayedLink(options.tunnelDelayMs);
  const relay = await startRelay(link ? { args: link.relayArgs } : {});
  const { device, deviceKey, mcpUrl } = await relay.addDevice("bench");
  const { token, grant } = await relay.createToken(device, options.token);
  const agent = await startAgent({ relay: relay.url, deviceKey, args: options.agent, env: options.agentEnv ?? {} });
  return {
    relay,
    agent,
    device,
    deviceKey,
    // With a delayed link the canonical origin is the proxy's; clients go to the relay itself.
    mcpUrl: link ? mcpUrl.replace(relay.url, link.directUrl) : mcpUrl,
    token,
    grant,
    ...(link ? { tunnel: link.proxy } : {}),
    stop: async () => {
      await agent.stop();
      await relay.stop();
      await link?.proxy.close();
      for (const other of options.alsoStop ?? []) await other.stop();
    },
  };
}

/** A proxy in front of a port that the relay will take, listed as an origin so that agents can dial it. */
async function startDelayedLink(delayMs: number): Promise<{ proxy: TcpProxy; relayArgs: string[]; directUrl: string }> {
  const port = await freePort();
  const proxy = await startTcpProxy(port, delayMs);
  return {
    proxy,
    relayArgs: ["--port", String(port), "--origin", `http://127.0.0.1:${proxy.port}`],
    directUrl: `http://127.0.0.1:${port}`,
  };
}

/** Starts the conformance fixture as a Streamable HTTP server on a free loopback port. */
export async function startFixtureHttp(): Promise<{ url: string; stop(): Promise<unknown> }> {
  const server = startProcess(process.execPath, [join(ROOT, "test/fixtures/upstream/http.mjs")], { env: { PORT: "0" } });
  const line = await server.line("stdout", (text) => text.startsWith("fixture on "));
  return { url: line.replace("fixture on ", ""), stop: () => server.stop() };
}

/** A stack for each way to serve the conformance fixture. */
export const FIXTURE_STACKS: readonly { name: string; start: () => Promise<Stack> }[] = [
  { name: "the fixture over stdio", start: () => startStack({ agent: ["--", ...FIXTURE_STDIO] }) },
  {
    name: "the fixture over HTTP",
    start: async () => {
      const fixture = await startFixtureHttp();
      return startStack({ agent: ["--upstream", fixture.url], alsoStop: [fixture] });
    },
  },
];
