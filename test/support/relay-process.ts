/** The real `longline` command for tests: a relay, agents, and owner commands, each a process of its own. */
import { join } from "node:path";
import { z } from "zod";
import { startProcess, temporaryDir, type RunningProcess } from "./processes.ts";

const ROOT = join(import.meta.dirname, "../..");
const COMMAND = join(ROOT, "bin/longline.cjs");

const Ready = z.strictObject({ url: z.string(), ownerToken: z.string(), consoleUrl: z.string() });
const Added = z.strictObject({ device: z.string(), deviceKey: z.string(), mcpUrl: z.string() });
const Created = z.strictObject({ token: z.string(), grant: z.string(), mcpUrl: z.string(), expiresAt: z.number() });
const Online = z.strictObject({ state: z.literal("online"), device: z.string(), mcpUrl: z.string() });

/** No setting of the person who runs the tests reaches the command. */
const NO_SETTINGS = { LONGLINE_RELAY: undefined, LONGLINE_OWNER_TOKEN: undefined, LONGLINE_DEVICE_KEY: undefined };
/** Node keeps what it made of the source there: a command from a checkout starts in half the time. */
const COMPILED = { NODE_COMPILE_CACHE: join(ROOT, "node_modules/.cache/longline-tests") };

/** Starts the `longline` command. */
export function startLongline(
  args: readonly string[],
  options: { cwd?: string; env?: Record<string, string | undefined> } = {},
): RunningProcess {
  return startProcess(process.execPath, [COMMAND, ...args], { ...options, env: { ...NO_SETTINGS, ...COMPILED, ...options.env } });
}

/** Runs the `longline` command to its end. */
export async function longline(
  args: readonly string[],
  options: { cwd?: string; env?: Record<string, string | undefined> } = {},
): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const run = startLongline(args, options);
  const { code } = await run.ended();
  return { code, ...run.output };
}

/** A relay of `longline serve`. */
export interface RelayProcess extends z.infer<typeof Ready> {
  process: RunningProcess;
  dataDir: string;
  /** The environment that points owner commands at this relay. */
  env: Record<string, string>;
  addDevice(name: string): Promise<z.infer<typeof Added>>;
  createToken(device: string, options?: readonly string[]): Promise<z.infer<typeof Created>>;
  /** Stops it, and removes its data when the relay made the directory itself. */
  stop(): Promise<void>;
}

/** Starts a relay on a free port with data of its own, and resolves when it answers. */
export async function startRelay(options: { dataDir?: string; args?: readonly string[] } = {}): Promise<RelayProcess> {
  const own = options.dataDir === undefined ? await temporaryDir() : undefined;
  const dataDir = options.dataDir ?? join(own?.path ?? "", "data");
  const run = startLongline(["serve", "--json", "--port", "0", "--data", dataDir, ...(options.args ?? [])]);
  const ready = Ready.parse(JSON.parse(await run.line("stdout", () => true)));
  const env = { LONGLINE_RELAY: ready.url, LONGLINE_OWNER_TOKEN: ready.ownerToken };
  return {
    ...ready,
    process: run,
    dataDir,
    env,
    addDevice: async (name) => await owner(Added, ["device", "add", name, "--json"], env),
    createToken: async (device, more = []) =>
      await owner(Created, ["token", "create", "--device", device, "--for", "test", "--json", ...more], env),
    stop: async () => {
      await run.stop();
      await own?.remove();
    },
  };
}

/** An agent of `longline agent` that is online. */
export interface AgentProcess extends z.infer<typeof Online> {
  process: RunningProcess;
  stateDir: string;
  stop(): Promise<void>;
}

/** Starts an agent and resolves when it is online. `args` say what it offers, such as `["--demo"]` or `["--", "node", "server.mjs"]`. */
export async function startAgent(options: {
  relay: string;
  deviceKey: string;
  args: readonly string[];
  stateDir?: string;
  env?: Record<string, string>;
}): Promise<AgentProcess> {
  const own = options.stateDir === undefined ? await temporaryDir() : undefined;
  const stateDir = options.stateDir ?? join(own?.path ?? "", "state");
  const run = startLongline(["agent", "--relay", options.relay, "--state", stateDir, "--json", ...options.args], {
    env: { ...options.env, LONGLINE_DEVICE_KEY: options.deviceKey },
  });
  const online = Online.parse(JSON.parse(await run.line("stdout", () => true)));
  return {
    ...online,
    process: run,
    stateDir,
    stop: async () => {
      await run.stop();
      await own?.remove();
    },
  };
}

async function owner<T>(shape: z.ZodType<T>, args: readonly string[], env: Record<string, string>): Promise<T> {
  const { code, stdout, stderr } = await longline(args, { env });
  if (code !== 0) throw new Error(`longline ${args.join(" ")} ended with ${code}: ${stderr}`);
  return shape.parse(JSON.parse(stdout));
}
