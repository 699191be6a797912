/** A real round trip to each upstream, as the agent makes it: started, listed, asked, stopped. */
import { setTimeout as sleep } from "node:timers/promises";
import type { UpstreamConfig } from "../../agent/types.ts";
import { DOCTOR } from "../../limits.ts";
import { cleanText } from "../../policy/clean-text.ts";
import { failed, ok, type Finding } from "./finding.ts";

/** Starts the upstreams and says how each one does. Never rejects. */
export async function checkUpstreams(configs: readonly UpstreamConfig[], version: string): Promise<Finding[]> {
  return await Promise.all(configs.map(async (config) => await checkUpstream(config, version)));
}

async function checkUpstream(config: UpstreamConfig, version: string): Promise<Finding> {
  if (config.kind === "builtin") return ok("upstream", `${config.alias}: ${config.tools.length} tools inside the agent`);
  if (config.kind === "declared") return ok("upstream", `${config.alias}: a declared tool`);
  if (config.kind === "feed") return ok("upstream", `${config.alias}: an event feed, connected when the agent runs`);
  const { McpUpstream } = await import("../../agent/upstreams/mcp-upstream.ts");
  const { Watchdog } = await import("../../agent/upstreams/watchdog.ts");
  const watchdog = new Watchdog();
  const settled = Promise.withResolvers<void>();
  const look = (): void => {
    if (upstream.lists() !== null || upstream.state().state === "crashed") settled.resolve();
  };
  const listener = { state: look, lists: look, resourceUpdated: () => undefined, warning: () => undefined };
  const upstream = new McpUpstream({ config, version, watchdog, listener });
  const late = new AbortController();
  upstream.start();
  await Promise.race([settled.promise, sleep(DOCTOR.upstreamMs, undefined, { signal: late.signal }).catch(() => undefined)]);
  late.abort();
  if (upstream.lists() !== null) await upstream.probe();
  const { state, era, lastRoundTripMs, problem } = upstream.state();
  const tools = upstream.lists()?.tools.length;
  await upstream.stop();
  watchdog.close();
  if (tools !== undefined && lastRoundTripMs !== null && problem === null)
    return ok("upstream", `${config.alias} answers in ${lastRoundTripMs} ms (${tools} tools, ${era ?? "unknown era"})`);
  const why = problem === null ? `no answer within ${DOCTOR.upstreamMs / 1000} s` : cleanText(problem);
  const advice =
    config.kind === "stdio"
      ? "Run the command by itself to see what it says; it gets only the variables that the agent gives it."
      : "Start that server, or correct its URL and --upstream-headers.";
  return failed("upstream", `${config.alias} is ${state}: ${why}`, advice);
}
