/** An agent against a fake relay, with everything ended after the test. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { runAgent } from "../../src/agent/run-agent.ts";
import type { AgentEvent, AgentHandle, AgentOptions, UpstreamConfig } from "../../src/agent/types.ts";
import { demoTools } from "../../src/agent/tools/demo.ts";
import { FakeRelay, type AgentSocket, type FakeRelayOptions } from "../support/fake-relay.ts";

export const DEVICE_KEY = `llk_${"0".repeat(32)}_${"A".repeat(43)}`;
const FIXTURES = new URL("../fixtures/upstream/", import.meta.url).pathname;
const EVERYTHING = new URL("../../node_modules/@modelcontextprotocol/server-everything/dist/index.js", import.meta.url).pathname;

/** The conformance fixture over stdio: speaks both eras. */
export function fixture(extra: Partial<Extract<UpstreamConfig, { kind: "stdio" }>> = {}): UpstreamConfig {
  return { kind: "stdio", alias: "fixture", command: process.execPath, args: [join(FIXTURES, "stdio.mjs")], ...extra };
}

/** The SDK's everything server: legacy only. */
export function everything(extra: Partial<Extract<UpstreamConfig, { kind: "stdio" }>> = {}): UpstreamConfig {
  return { kind: "stdio", alias: "everything", command: process.execPath, args: [EVERYTHING, "stdio"], ...extra };
}

/** A server written for one test: an ES module's text, run by Node. */
export function script(code: string, extra: Partial<Extract<UpstreamConfig, { kind: "stdio" }>> = {}): UpstreamConfig {
  return { kind: "stdio", alias: "script", command: process.execPath, args: ["--input-type=module", "-e", code], ...extra };
}

export function builtin(): UpstreamConfig {
  return { kind: "builtin", alias: "demo", tools: demoTools() };
}

export function stateDir(): string {
  const dir = mkdtempSync(join(tmpdir(), "longline-agent-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

export async function startRelay(options: FakeRelayOptions = {}): Promise<FakeRelay> {
  const relay = await FakeRelay.start(options);
  onTestFinished(async () => await relay.stop());
  return relay;
}

export interface Started {
  relay: FakeRelay;
  handle: AgentHandle;
  events: AgentEvent[];
}

export async function startAgent(relay: FakeRelay, upstreams: UpstreamConfig[], extra: Partial<AgentOptions> = {}): Promise<Started> {
  const events: AgentEvent[] = [];
  const handle = await runAgent({
    relay: relay.url,
    deviceKey: DEVICE_KEY,
    stateDir: extra.stateDir ?? stateDir(),
    upstreams,
    log: (event) => events.push(event),
    ...extra,
  });
  onTestFinished(async () => await handle.stop("the test is over"));
  return { relay, handle, events };
}

/** Relay, agent and the agent's first socket. */
export async function connected(
  upstreams: UpstreamConfig[],
  relayOptions: FakeRelayOptions = {},
  extra: Partial<AgentOptions> = {},
): Promise<Started & { agent: AgentSocket }> {
  const started = await startAgent(await startRelay(relayOptions), upstreams, extra);
  const { agent } = await started.relay.agent();
  return { ...started, agent };
}
