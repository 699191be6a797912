/** Turns the options of `longline agent install` into what the service runs: absolute paths, and no secret. */
import { resolve } from "node:path";
import { ApiError } from "../../errors.ts";
import type { AgentCommandOptions } from "../commands/agent.ts";
import type { Terminal } from "../terminal.ts";
import type { ServicePlan } from "./service.ts";

/** Variables that say how to reach the relay and where programs are. */
const KEPT = [
  "PATH",
  "HTTPS_PROXY",
  "https_proxy",
  "HTTP_PROXY",
  "http_proxy",
  "NO_PROXY",
  "no_proxy",
  "NODE_EXTRA_CA_CERTS",
  "XDG_STATE_HOME",
];

export interface PlanInput {
  name: string;
  relay: URL;
  keyFile: string;
  options: AgentCommandOptions;
  /** The tool server's command and arguments. */
  command: readonly string[];
  /** How this program was started: Node and its script. */
  self: readonly string[];
}

/** What the service runs. Throws for a line break, which no service definition carries safely. */
export function planService(terminal: Terminal, input: PlanInput): ServicePlan {
  const { name, relay, keyFile, options, command, self } = input;
  const file = (option: string, path: string | undefined): string[] => (path === undefined ? [] : [option, resolve(terminal.cwd, path)]);
  const argv = [
    ...self,
    "agent",
    "--relay",
    relay.origin,
    "--key-file",
    keyFile,
    ...file("--state", options.state),
    ...file("--config", options.config),
    ...file("--ca-file", options.caFile),
    ...(options.upstream === undefined ? [] : ["--upstream", options.upstream]),
    ...file("--upstream-headers", options.upstreamHeaders),
    ...(options.demo === true ? ["--demo"] : []),
    ...(options.isolation === undefined ? [] : ["--isolation", options.isolation]),
    ...(command.length === 0 ? [] : ["--", ...command]),
  ];
  const env = Object.fromEntries(KEPT.flatMap((key) => (terminal.env[key] === undefined ? [] : [[key, terminal.env[key]]])));
  const plan = { name, description: `Longline agent for ${relay.host}`, argv, cwd: terminal.cwd, env };
  // oxlint-disable-next-line no-control-regex -- control characters are what this refuses
  if ([...argv, plan.cwd, ...Object.values(env)].some((text) => /[\u0000-\u001f]/.test(text)))
    throw new ApiError("bad_request", "A line break or control character in an option or path cannot be part of a service.");
  refuseSecrets(plan);
  return plan;
}

/** SECURITY: service definitions are readable by others and end up in backups. */
function refuseSecrets({ argv, env }: ServicePlan): void {
  for (const [name, value] of Object.entries(env)) {
    if (/^\w+:\/\/[^/@]*:[^/@]*@/.test(value))
      throw new ApiError(
        "bad_request",
        `${name} holds a password, which does not belong into a service's definition. Unset it here and give it to the service in a way of your system that keeps secrets.`,
      );
  }
  if (argv.some((word) => /\bll[a-z]_[\w-]{20,}/.test(word)))
    throw new ApiError("bad_request", "An argument looks like a Longline secret. Name a file that holds it instead.");
}
