/** The whole product: `longline serve`, devices with keys, tokens whose grants have caps, and the agent as it is. */
import { join } from "node:path";
import { temporaryDir } from "../../support/processes.ts";
import { startRelay, type RelayProcess } from "../../support/relay-process.ts";
import { startHelper, type Helper } from "./child.ts";
import { addDevices } from "./devices.ts";
import { cpuOf, workerdBelow } from "./processes.ts";
import { legacyCall, modernCall } from "./requests.ts";
import { PAYLOAD, type Subject } from "./subject.ts";

/** Simulated agents of devices of their own. */
export interface IdleAgents {
  /** Resolves when all are online. */
  connect(): Promise<void>;
  /** Resolves when all are online for the second time. */
  onlineAgain(): Promise<void>;
}

/** ms that a thousand agents have to come back. */
const RECONNECT_MS = 120_000;

/** Longline as a subject, with what the other measurements do to it. */
export interface Longline extends Subject {
  relay: RelayProcess;
  /** Counts its runs by name, and takes so long. */
  once(name: string, ms: number): ReturnType<typeof modernCall>;
  /** Adds devices for simulated agents, which connect later. */
  prepareIdle(count: number): Promise<IdleAgents>;
  /** Kills the relay and starts it again on the same port and data. */
  killAndRestart(): Promise<void>;
}

/** Starts Longline with so many devices, each with an agent, all agents in one process. */
export async function startLongline(devices: number, options: { agentNodeArgs?: readonly string[] } = {}): Promise<Longline> {
  const dir = await temporaryDir();
  const dataDir = join(dir.path, "data");
  let relay = await startRelay({ dataDir });
  const callers = await addDevices(relay, "d", devices);
  const keys = callers.map((caller) => caller.deviceKey);
  const agents = [
    await startHelper("longline-agent", [relay.url, join(dir.path, "agents")], { input: keys, nodeArgs: options.agentNodeArgs ?? [] }),
  ];
  const [first] = callers;
  if (first === undefined) throw new Error("at least one device is needed");
  const pids = { workerd: (await workerdBelow(relay.process.pid))[0] ?? -1, agent: agents[0]?.pid ?? -1 };
  const { url, token } = first;
  return {
    name: "longline",
    call: (device = 0) => {
      const caller = callers[device] ?? first;
      return modernCall(caller.url, caller.token, "echo", { text: PAYLOAD });
    },
    legacyCall: await legacyCall(url, token, "echo", { text: PAYLOAD }),
    events: (count) => modernCall(url, token, "bench_events", { count }, { progressToken: 1 }),
    image: (size) => modernCall(url, token, "bench_image", { size }),
    once: (name, ms) => modernCall(url, token, "bench_once", { name, ms }),
    pids,
    cpu: () => cpuOf(pids),
    get relay() {
      return relay;
    },
    prepareIdle: async (count) => {
      const idle = await addDevices(relay, "idle", count);
      let helper: Helper | undefined;
      return {
        connect: async () => {
          helper = await startHelper("idle-agents", [relay.url], { input: idle.map((device) => device.deviceKey) });
          agents.push(helper);
        },
        onlineAgain: async () => {
          await helper?.process.line("stdout", (line) => line === "online 2", RECONNECT_MS);
        },
      };
    },
    killAndRestart: async () => {
      relay.process.child.kill("SIGKILL");
      await relay.process.ended();
      relay = await startRelay({ dataDir });
      pids.workerd = (await workerdBelow(relay.process.pid))[0] ?? -1;
    },
    stop: async () => {
      for (const agent of agents) await agent.stop();
      await relay.stop();
      await dir.remove();
    },
  };
}
