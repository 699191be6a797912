/** How often an agent dials when its links do not last, with the clock in the test's hand and real sockets. */
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { TunnelClient } from "../../src/agent/tunnel-client.ts";
import type { AgentEvent } from "../../src/agent/types.ts";
import { BACKOFF, TUNNEL } from "../../src/limits.ts";
import { DEVICE_KEY, startRelay } from "./harness.ts";
import { quietListener } from "./quiet-listener.ts";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "Date"] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** A client whose links a test ends; `ended` gives the ms it waits before it dials again. */
async function client() {
  vi.spyOn(Math, "random").mockReturnValue(0.999);
  onTestFinished(() => {
    vi.restoreAllMocks();
  });
  const relay = await startRelay();
  let offline = Promise.withResolvers<number | null>();
  let online = Promise.withResolvers<void>();
  const log = (event: AgentEvent): void => {
    if (event.type === "offline") offline.resolve(event.retryInMs);
    if (event.type === "online") online.resolve();
  };
  const tunnel = new TunnelClient({
    relay: relay.url,
    deviceKey: DEVICE_KEY,
    maxFrameBytes: TUNNEL.maxFrameBytes,
    log,
    listener: quietListener,
  });
  onTestFinished(async () => await tunnel.stop("the test is over"));
  tunnel.start();
  /** The next link lasts `ms`, then the relay ends it. */
  const round = async (ms: number, code: number): Promise<number> => {
    const { agent } = await relay.agent();
    await online.promise;
    online = Promise.withResolvers();
    offline = Promise.withResolvers();
    vi.setSystemTime(Date.now() + ms);
    agent.socket.close(code);
    const wait = await offline.promise;
    if (wait === null) throw new Error("the client gave up");
    vi.advanceTimersByTime(wait);
    return wait;
  };
  return { relay, round };
}

test.each([
  [1_000, 1012],
  [20, 4000],
  [20, 4200],
])(
  "a relay that accepts and closes %i times with %i is dialled once each time, in the end every half minute",
  async (rounds, code) => {
    const { relay, round } = await client();
    const waits: number[] = [];
    for (let count = 0; count < rounds; count += 1) waits.push(await round(10, code));
    await relay.dialled(rounds + 1);
    expect(relay.dials).toBe(rounds + 1);
    const longest = Math.round(0.999 * BACKOFF.capMs);
    expect(Math.max(...waits)).toBe(longest);
    expect(waits.slice(8).every((wait) => wait === longest)).toBe(true);
    expect(waits[0]).toBeLessThanOrEqual(BACKOFF.redialMs);
  },
  120_000,
);

test("fifty links that each last an hour are each redialled within a second", async () => {
  const { round } = await client();
  for (let count = 0; count < 50; count += 1) expect(await round(3_600_000, 1012)).toBeLessThanOrEqual(BACKOFF.redialMs);
});
