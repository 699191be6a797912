/** One chaos run: the world, the callers, the faults, and the verdict. */
import { setTimeout as sleep } from "node:timers/promises";
import { runCaller } from "./callers.ts";
import { runFaults } from "./faults.ts";
import { Ledger, type Report } from "./ledger.ts";
import { seeded } from "./random.ts";
import { World } from "./world.ts";

export interface ChaosOptions {
  seed: number;
  /** ms in which calls are made and things go wrong; what is in flight then is waited for. */
  ms: number;
  withRelayRestarts: boolean;
  /** Callers of each era on each device; they share two grants. */
  callers?: number;
  log: (line: string) => void;
}

/** ms after the last fault in which everything has come to rest. */
const QUIET_MS = 60_000;
/** ms in which a call that nobody waits for any more may still be on its way to its upstream. */
const LATE_MS = 3_000;

export async function runChaos(options: ChaosOptions): Promise<Report & { faults: number; relayRestarts: boolean }> {
  const { log, callers = 3 } = options;
  const random = seeded(options.seed);
  const ledger = new Ledger();
  const world = await World.start(log);
  try {
    const until = AbortSignal.timeout(options.ms);
    const faults = runFaults({ world, random: random.fork(), until, log, withRelayRestarts: options.withRelayRestarts });
    const running = world.devices.flatMap((device) =>
      (["modern", "legacy"] as const).flatMap((era) =>
        Array.from({ length: callers }, (_none, at) => {
          const token = device.tokens[at % device.tokens.length] ?? "";
          return runCaller({
            name: `${device.name}-${era}-${at}`,
            era,
            mcpUrl: device.mcpUrl,
            token,
            random: random.fork(),
            ledger,
            until,
            up: () => world.up(),
          });
        }),
      ),
    );
    const count = await faults;
    await Promise.all(running);
    await world.quiet(QUIET_MS);
    await sleep(LATE_MS);
    return { ...ledger.check(world.counts), faults: count, relayRestarts: options.withRelayRestarts };
  } finally {
    await world.stop();
  }
}
