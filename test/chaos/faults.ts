/** What goes wrong in a chaos run, one thing after the other, drawn from a seed. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Random } from "./random.ts";
import type { Device, World } from "./world.ts";

export interface Faults {
  world: World;
  random: Random;
  until: AbortSignal;
  log: (line: string) => void;
  /** Clients' connections die with the relay's process, so a run can leave it alone. */
  withRelayRestarts: boolean;
}

type Fault = (faults: Faults, device: Device) => Promise<string>;

const cut: Fault = async (_faults, { proxy }) => {
  proxy.cut();
  return "cut";
};

const freeze: Fault = async ({ random }, { proxy }) => {
  const ms = random.int(50, 8_000);
  proxy.frozen = true;
  await sleep(ms);
  proxy.frozen = false;
  return `froze for ${ms} ms`;
};

const freezeAndCut: Fault = async ({ random }, { proxy }) => {
  const ms = random.int(50, 5_000);
  proxy.frozen = true;
  await sleep(ms);
  proxy.cut();
  proxy.frozen = false;
  return `froze for ${ms} ms and cut`;
};

const delay: Fault = async ({ random }, { proxy }) => {
  const ms = random.int(500, 4_000);
  proxy.delayMs = random.int(5, 250);
  await sleep(ms);
  proxy.delayMs = 0;
  return `delayed for ${ms} ms`;
};

const throttle: Fault = async ({ random }, { proxy }) => {
  const ms = random.int(500, 5_000);
  proxy.bytesPerSecond = random.int(40_000, 2_000_000);
  await sleep(ms);
  const rate = proxy.bytesPerSecond;
  proxy.bytesPerSecond = Infinity;
  return `${rate} bytes/s for ${ms} ms`;
};

const stopAgent: Fault = async ({ random }, device) => {
  const ms = random.int(100, 7_000);
  const agent = device.agent();
  agent?.child.kill("SIGSTOP");
  await sleep(ms);
  agent?.child.kill("SIGCONT");
  return `agent stood still for ${ms} ms`;
};

const killAgent: Fault = async ({ random }, device) => {
  const agent = device.agent();
  agent?.child.kill("SIGKILL");
  await agent?.ended();
  const ms = random.int(0, 1_500);
  await sleep(ms);
  device.startAgent();
  return `agent killed, started again after ${ms} ms`;
};

const resetObject: Fault = async ({ world }, device) => {
  await world.reset(device);
  return "object reset";
};

const resetTwice: Fault = async ({ world, random }, device) => {
  await world.reset(device);
  await sleep(random.int(0, 1_500));
  await world.reset(device);
  return "object reset twice";
};

const restartRelay: Fault = async ({ world, random }) => {
  const signal = random.pick(["SIGTERM", "SIGKILL"] as const);
  await world.restartRelay(signal);
  return `relay restarted by ${signal}`;
};

const FAULTS: readonly [Fault, ...Fault[]] = [
  cut,
  cut,
  cut,
  freeze,
  freezeAndCut,
  delay,
  throttle,
  stopAgent,
  killAgent,
  resetObject,
  resetObject,
  resetTwice,
];

/** ms of a storm, and of the calm after it: long enough for an agent to count its link as stable. */
const STORM_MS = 40_000;
const CALM_MS = 33_000;

/** One fault after the other, in storms, until told to stop; what was done is undone then. Gives the number of faults. */
export async function runFaults(faults: Faults): Promise<number> {
  const { world, random, until, log } = faults;
  let count = 0;
  let calmAt = Date.now() + STORM_MS;
  while (!until.aborted) {
    if (Date.now() >= calmAt) {
      log("calm");
      await sleep(CALM_MS, undefined, { signal: until }).catch(() => undefined);
      calmAt = Date.now() + STORM_MS;
      continue;
    }
    await sleep(random.int(100, 2_500));
    const device = random.pick(world.devices as [Device, ...Device[]]);
    const isRestart = faults.withRelayRestarts && random.next() < 0.04;
    const fault = isRestart ? restartRelay : random.pick(FAULTS);
    log(`${isRestart ? "" : `${device.name}: `}${await fault(faults, device)}`);
    count += 1;
  }
  return count;
}
