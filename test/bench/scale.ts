/** What many idle devices cost: connecting at once, memory when asleep, other devices' calls, and a relay that was killed. */
import { setTimeout as sleep } from "node:timers/promises";
import { callOnce, closedLoop, warmUp } from "./closed-loop.ts";
import { startHelper, type Helper } from "./subjects/child.ts";
import { startFloor } from "./subjects/floor.ts";
import { startLongline, type Longline } from "./subjects/longline.ts";
import { residentBytes } from "./subjects/processes.ts";
import { spread, type Spread } from "./statistics.ts";

export interface ScaleOptions {
  devices: number;
  rounds: number;
  sliceMs: number;
  log: (line: string) => void;
}

export interface ScaleResult {
  results: Record<string, unknown>;
  ratios: Record<string, Spread>;
}

/** ms after which an idle object has left memory: ten seconds, and room for many to do so. */
const ASLEEP_MS = 20_000;
/** Calls that run while the relay is killed, and how long each takes. */
const CALLS_IN_FLIGHT = 8;
const CALL_MS = 2_000;

interface Idle {
  connectSeconds: number;
  bytesPerDevice: number;
}

/** Connects, waits until the objects sleep, and looks at workerd's memory. */
async function measureIdle(pid: number, devices: number, connect: () => Promise<unknown>): Promise<Idle> {
  const before = await residentBytes(pid);
  const startedAt = performance.now();
  await connect();
  const connectSeconds = (performance.now() - startedAt) / 1000;
  await sleep(ASLEEP_MS);
  return { connectSeconds, bytesPerDevice: ((await residentBytes(pid)) - before) / devices };
}

async function idleFloor(devices: number): Promise<Idle> {
  const floor = await startFloor({ request: 1024, answer: 1024 }, 1);
  await warmUp(floor.call(), 500);
  const { port } = floor.call();
  const urls = Array.from({ length: devices }, (_, device) => `ws://127.0.0.1:${port}/tunnel/idle${device}`);
  let helper: Helper | undefined;
  try {
    return await measureIdle(floor.pids["workerd"] ?? -1, devices, async () => {
      helper = await startHelper("floor-agent", urls);
    });
  } finally {
    await helper?.stop();
    await floor.stop();
  }
}

/** p50 of one connection with many idle devices connected, over that with one device only. */
async function costGrowth(many: Longline, one: Longline, { rounds, sliceMs }: ScaleOptions): Promise<Spread> {
  const ratios: number[] = [];
  for (const subject of [many, one]) await warmUp(subject.call(), sliceMs * 2);
  for (let round = 0; round < rounds; round += 1) {
    const p50 = new Map<Longline, number>();
    for (const subject of round % 2 === 0 ? [many, one] : [one, many]) {
      p50.set(subject, (await closedLoop(subject.call(), { connections: 1, durationMs: sliceMs })).p50);
    }
    ratios.push((p50.get(many) ?? Number.NaN) / (p50.get(one) ?? Number.NaN));
  }
  return spread(ratios);
}

/** Seconds until everybody is back after the relay was killed and started again; fails when a tool ran twice. */
async function reconnect(longline: Longline, allOnline: () => Promise<unknown>): Promise<number> {
  const names = Array.from({ length: CALLS_IN_FLIGHT }, (_, index) => `call-${index}`);
  const cut = names.map((name) => callOnce(longline.once(name, CALL_MS)).catch(() => "cut off"));
  await sleep(CALL_MS / 2);
  const startedAt = performance.now();
  await longline.killAndRestart();
  await allOnline();
  const seconds = (performance.now() - startedAt) / 1000;
  await Promise.all(cut);
  for (const name of names) {
    const { head } = await callOnce(longline.once(name, 0));
    // Once for the call that was cut off, and once for this one that asks.
    if (!head.includes('"text":"2"')) throw new Error(`a tool did not run exactly once: ${head}`);
  }
  return seconds;
}

/** Runs all of it. */
export async function runScale(options: ScaleOptions): Promise<ScaleResult> {
  const { devices, log } = options;
  log(`idle floor with ${devices} devices`);
  const floor = await idleFloor(devices);
  log(`idle longline with ${devices} devices`);
  const many = await startLongline(1);
  const one = await startLongline(1);
  try {
    await warmUp(many.call(), 500);
    const prepared = await many.prepareIdle(devices);
    const idle = await measureIdle(many.pids["workerd"] ?? -1, devices, async () => await prepared.connect());
    log("cost growth");
    const growth = await costGrowth(many, one, options);
    log("reconnect");
    const seconds = await reconnect(many, async () => await prepared.onlineAgain());
    return {
      results: { devices, floor, longline: idle, reconnectSeconds: seconds },
      ratios: {
        costGrowth: growth,
        idleBytesPerDeviceVsFloor: spread([idle.bytesPerDevice / floor.bytesPerDevice]),
        [`reconnect${devices}Seconds`]: spread([seconds]),
      },
    };
  } finally {
    await many.stop();
    await one.stop();
  }
}
