/** `longline start`, which is `npm start`: relay and agent on this machine, one call through both, and what to do next. */
import { join, resolve } from "node:path";
import type { Command } from "commander";
import { cleanText } from "../../agent/clean-text.ts";
import { ApiError } from "../../errors.ts";
import { CLI } from "../../limits.ts";
import type { RelayHandle } from "../../serve/relay.ts";
import { LOCAL_DATA } from "../connection.ts";
import { parsePort } from "../numbers.ts";
import { OwnerApi } from "../owner-api.ts";
import { startAgentProcess, type AgentProcess } from "../start/agent-process.ts";
import { clientEntries, reachNote } from "../../policy/client-entries.ts";
import { ensureDemoDevice, type DemoDevice } from "../start/demo-device.ts";
import { curlLine, exampleCall, readAnswer, type ExampleCall } from "../start/example-call.ts";
import { isWorthShowing } from "../start/relay-log.ts";
import { listenForStop, type StopSignal } from "../stop-signals.ts";
import { printJson, type Terminal } from "../terminal.ts";

interface StartOptions {
  port?: number;
  data: string;
  json?: boolean;
}

/** Adds the `start` command to the program. */
export function addStartCommand(program: Command, terminal: Terminal): void {
  program
    .command("start")
    .description("try it: a relay and an agent on this machine, one call through both, and entries for MCP clients")
    .option("--port <port>", "port on 127.0.0.1 (default: that of the last start, else 8787 or a free one)", parsePort)
    .option("--data <dir>", "directory that keeps its data", LOCAL_DATA)
    .option("--json", "print what a program needs as one JSON value when all is ready")
    .addHelpText("after", "\nExample:\n  longline start --port 8787")
    .action(async (options: StartOptions) => await start(terminal, options));
}

async function start(terminal: Terminal, options: StartOptions): Promise<void> {
  process.umask(0o077);
  using stop = listenForStop(terminal.env);
  const dataDir = resolve(terminal.cwd, options.data);
  const { promise: relayEnded, resolve: onExit } = Promise.withResolvers<void>();
  // Loaded when needed: the other commands start faster without the runtime.
  const { startRelay } = await import("../../serve/relay.ts");
  const log = (line: string): void => {
    if (isWorthShowing(line)) terminal.err(`relay  ${line}`);
  };
  const relay = await startRelay({ dataDir, port: options.port, log, onExit });
  try {
    await runDemo(terminal, { dataDir, relay, relayEnded, stop, json: options.json === true });
  } finally {
    await relay.stop();
  }
}

interface Demo {
  dataDir: string;
  relay: RelayHandle;
  relayEnded: Promise<void>;
  stop: StopSignal;
  json: boolean;
}

async function runDemo(terminal: Terminal, demo: Demo): Promise<void> {
  const { dataDir, relay, stop } = demo;
  terminal.err(`Relay ready at ${relay.url}`);
  const device = await ensureDemoDevice(new OwnerApi(new URL(relay.localUrl), relay.ownerToken), dataDir, Date.now());
  let agent: AgentProcess | undefined;
  try {
    agent = await startAgentProcess({
      relay: relay.localUrl,
      deviceKey: device.deviceKey,
      stateDir: join(dataDir, "agent"),
      signal: stop.signal,
      log: (line) => terminal.err(`agent  ${cleanText(line)}`),
    });
    await showResult(terminal, demo, device);
    const ended = await Promise.race([
      stop.stopped.then(() => undefined),
      demo.relayEnded.then(() => "relay's runtime"),
      agent.ended.then(() => "agent"),
    ]);
    // Ctrl-C reaches the agent too, which may be gone first.
    if (ended !== undefined && !stop.signal.aborted)
      throw new ApiError("failed", `The ${ended} ended unexpectedly. The lines above may say why; start again.`);
  } catch (error) {
    // Stopped by the person while still starting: that is no failure.
    if (!stop.signal.aborted) throw error;
  } finally {
    await agent?.stop();
  }
}

async function showResult(terminal: Terminal, { relay, stop, json }: Demo, { device, grant }: DemoDevice): Promise<void> {
  const greeting = { text: `Hello from ${device}` };
  const call = exampleCall(grant.mcpUrl, grant.token, "echo", greeting);
  const answer = await makeCall(call, stop.signal);
  const { mcpUrl, token } = grant;
  if (json) {
    const { url, ownerToken, consoleUrl } = relay;
    return printJson(terminal, { url, ownerToken, consoleUrl, device, mcpUrl, token, grant: grant.id, expiresAt: grant.expiresAt });
  }
  const entries = clientEntries({ name: device, mcpUrl, token }).flatMap(({ title, where, text, unreachable }) =>
    unreachable === undefined ? [`${title} (${where}):\n${text}`] : [],
  );
  const sections = [
    `Called the tool "echo" on device "${device}" through the relay. Its answer:\n${cleanText(JSON.stringify(answer))}`,
    `MCP URL:       ${mcpUrl}\nAccess token:  ${token}`,
    `Call it yourself:\n${curlLine(call)}`,
    ...entries,
    reachNote(mcpUrl),
    "The relay and the agent run until you press Ctrl-C. The next start uses the same device and token.",
  ];
  terminal.out(`\n${sections.filter((section) => section !== "").join("\n\n")}\n`);
}

/** Makes the call; anything but a result is a failure that says what came instead. */
async function makeCall(call: ExampleCall, stopped: AbortSignal): Promise<unknown> {
  const signal = AbortSignal.any([stopped, AbortSignal.timeout(CLI.requestMs)]);
  const request = { method: "POST", headers: call.headers, body: call.body, redirect: "manual", signal } as const;
  const { response, text } = await fetch(call.url, request)
    .then(async (response) => ({ response, text: await response.text() }))
    .catch((cause: unknown) => {
      throw new ApiError("failed", "The first call got no answer. The lines above may say why.", { cause });
    });
  if (!response.ok) throw new ApiError("failed", `The first call failed with HTTP ${response.status}: ${cleanText(text)}`);
  const answer = readAnswer(response.headers.get("content-type"), text);
  const isResult = typeof answer === "object" && answer !== null && "result" in answer;
  if (!isResult) throw new ApiError("failed", `The first call failed: ${cleanText(text)}`);
  return answer.result;
}
