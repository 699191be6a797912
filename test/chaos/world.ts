/** Relay, proxies and agents of a chaos run, each a real process that can be killed and started again. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { longline, startLongline } from "../support/relay-process.ts";
import { eventually, startProcess, temporaryDir, type RunningProcess } from "../support/processes.ts";
import { freePort, startTcpProxy, type TcpProxy } from "../support/tcp-proxy.ts";

const COUNTING = join(import.meta.dirname, "../fixtures/upstream/counting.mjs");
const RELAY = join(import.meta.dirname, "relay.ts");
/** ms a process may take to start on a machine that does other things as well. */
const START_MS = 120_000;
const Ready = z.object({ url: z.string(), ownerToken: z.string() });
const Added = z.object({ deviceKey: z.string(), mcpUrl: z.string() });
const Created = z.object({ token: z.string() });

/** One device: its agent reaches the relay through a proxy of its own. */
export interface Device {
  name: string;
  id: string;
  mcpUrl: string;
  tokens: string[];
  proxy: TcpProxy;
  agent(): RunningProcess | undefined;
  startAgent(): void;
}

export class World {
  readonly counts: string;
  readonly devices: Device[] = [];
  readonly #dir: { path: string; remove: () => Promise<void> };
  readonly #port: number;
  readonly #proxies: TcpProxy[];
  readonly #log: (line: string) => void;
  #relay: RunningProcess | undefined;
  #up: Promise<void> = Promise.resolve();
  #open: () => void = () => undefined;
  #env: Record<string, string> = {};

  private constructor(dir: Awaited<ReturnType<typeof temporaryDir>>, port: number, proxies: TcpProxy[], log: (line: string) => void) {
    this.#dir = dir;
    this.#port = port;
    this.#proxies = proxies;
    this.#log = log;
    this.counts = join(dir.path, "counts");
    writeFileSync(this.counts, "");
  }

  /** A relay with two devices, one of each era behind it, all online. */
  static async start(log: (line: string) => void): Promise<World> {
    const dir = await temporaryDir();
    const port = await freePort();
    const world = new World(dir, port, [await startTcpProxy(port), await startTcpProxy(port)], log);
    try {
      await world.startRelay();
      await world.#addDevice("both", "both", 0);
      await world.#addDevice("legacy", "legacy", 1);
      for (const device of world.devices) device.startAgent();
      for (const device of world.devices) await device.agent()?.line("stdout", (line) => line.includes("online"), START_MS);
      return world;
    } catch (error) {
      await world.stop();
      throw error;
    }
  }

  /** Starts the relay and resolves when it answers. */
  async startRelay(): Promise<void> {
    const origins = this.#proxies.map((proxy) => `http://127.0.0.1:${proxy.port}`);
    const relay = startProcess(process.execPath, [RELAY, join(this.#dir.path, "data"), String(this.#port), ...origins]);
    this.#relay = relay;
    const { ownerToken } = Ready.parse(JSON.parse(await relay.line("stdout", () => true, START_MS)));
    this.#open();
    this.#env = { LONGLINE_RELAY: `http://127.0.0.1:${this.#port}`, LONGLINE_OWNER_TOKEN: ownerToken };
  }

  get relay(): RunningProcess | undefined {
    return this.#relay;
  }

  /** Resolves when the relay's process is there: a client without a connection has made no call. */
  up(): Promise<void> {
    return this.#up;
  }

  /** Ends the relay with a signal and starts it again. */
  async restartRelay(signal: "SIGTERM" | "SIGKILL"): Promise<void> {
    this.#close();
    this.#relay?.child.kill(signal);
    await this.#relay?.ended();
    await this.startRelay();
  }

  /** Makes a device's object lose memory and sockets. */
  async reset(device: Device): Promise<void> {
    const response = await fetch(`http://127.0.0.1:${this.#port}/reset-for-tests/${device.id}`).catch(() => undefined);
    await response?.body?.cancel();
  }

  /** `longline status NAME --json`. */
  async status(device: Device): Promise<Record<string, unknown>> {
    return z.record(z.string(), z.unknown()).parse(await this.#owner(["status", device.name, "--json"]));
  }

  /** Resolves when nothing runs at any device any more. */
  async quiet(withinMs: number): Promise<void> {
    for (const device of this.devices) {
      await eventually(`${device.name} is idle`, async () => (await this.status(device))["inFlight"] === 0, withinMs);
    }
  }

  async stop(): Promise<void> {
    for (const device of this.devices) {
      device.agent()?.child.kill("SIGCONT");
      await device.agent()?.stop();
    }
    await this.#relay?.stop();
    for (const proxy of this.#proxies) await proxy.close();
    await this.#dir.remove();
  }

  #close(): void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#up = promise;
    this.#open = resolve;
  }

  async #addDevice(name: string, era: string, at: number): Promise<void> {
    const proxy = this.#proxies[at];
    if (proxy === undefined) throw new Error("no proxy");
    const { deviceKey, mcpUrl } = Added.parse(await this.#owner(["device", "add", name, "--json"]));
    const tokens: string[] = [];
    for (const label of ["a", "b"]) {
      tokens.push(Created.parse(await this.#owner(["token", "create", "--device", name, "--for", label, "--json"])).token);
    }
    let agent: RunningProcess | undefined;
    const args = ["--relay", `http://127.0.0.1:${proxy.port}`, "--state", join(this.#dir.path, `state-${name}`), "--json"];
    this.devices.push({
      name,
      id: /^llk_([0-9a-f]{32})_/.exec(deviceKey)?.[1] ?? "",
      // Clients come without a proxy: their connections live as long as the relay.
      mcpUrl: `http://127.0.0.1:${this.#port}${new URL(mcpUrl).pathname}`,
      tokens,
      proxy,
      agent: () => agent,
      startAgent: () => {
        agent = startLongline(["agent", ...args, "--", process.execPath, COUNTING, this.counts, era], {
          env: { LONGLINE_DEVICE_KEY: deviceKey },
        });
        const started = agent;
        started.child.stderr?.on("data", (text: string) => {
          if (/warning|breaks/.test(text)) this.#log(`agent ${name}: ${text.trim()}`);
        });
      },
    });
  }

  async #owner(args: readonly string[]): Promise<unknown> {
    const { code, stdout, stderr } = await longline(args, { env: this.#env });
    if (code !== 0) throw new Error(`longline ${args.join(" ")} ended with ${code}: ${stderr}`);
    return JSON.parse(stdout);
  }
}
