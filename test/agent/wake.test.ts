/** A machine that slept or changed its network: noticed by its clock and addresses, and answered at once. */
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { TunnelClient } from "../../src/agent/tunnel-client.ts";
import type { AgentEvent } from "../../src/agent/types.ts";
import { watchForWake } from "../../src/agent/wake-watch.ts";
import { AGENT, TUNNEL } from "../../src/limits.ts";
import { DEVICE_KEY, startRelay } from "./harness.ts";
import { quietListener } from "./quiet-listener.ts";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "Date"] });
});
afterEach(() => {
  vi.useRealTimers();
});

test("a clock that went on while timers stood still, and a new address, are noticed; time that passes is not", () => {
  let asleepMs = 0;
  let addresses = "192.0.2.1";
  const onWake = vi.fn();
  const stop = watchForWake(onWake, { now: () => Date.now() + asleepMs, addresses: () => addresses });
  vi.advanceTimersByTime(10 * AGENT.watchMs);
  expect(onWake).not.toHaveBeenCalled();
  asleepMs += AGENT.jumpMs + 1;
  vi.advanceTimersByTime(AGENT.watchMs);
  expect(onWake).toHaveBeenCalledTimes(1);
  addresses = "198.51.100.7";
  vi.advanceTimersByTime(AGENT.watchMs);
  expect(onWake).toHaveBeenCalledTimes(2);
  stop();
  asleepMs += 3_600_000;
  vi.advanceTimersByTime(10 * AGENT.watchMs);
  expect(onWake).toHaveBeenCalledTimes(2);
});

async function client() {
  const relay = await startRelay();
  const events: AgentEvent[] = [];
  let changed = Promise.withResolvers<void>();
  const framed = Promise.withResolvers<void>();
  let wake: () => void = () => undefined;
  const tunnel = new TunnelClient({
    relay: relay.url,
    deviceKey: DEVICE_KEY,
    maxFrameBytes: TUNNEL.maxFrameBytes,
    log: (event) => {
      events.push(event);
      changed.resolve();
      changed = Promise.withResolvers();
    },
    watch: (onWake) => {
      wake = onWake;
      return () => undefined;
    },
    listener: { ...quietListener, frame: () => framed.resolve() },
  });
  onTestFinished(async () => await tunnel.stop("the test is over"));
  const until = async (type: AgentEvent["type"]): Promise<void> => {
    while (!events.splice(0).some((event) => event.type === type)) await changed.promise;
  };
  return { relay, tunnel, until, wake: () => wake(), framed: framed.promise };
}

test("a link that died in the sleep is found within seconds and dialled again", async () => {
  const { relay, tunnel, until, wake } = await client();
  tunnel.start();
  const { agent } = await relay.agent();
  await until("online");
  // Nothing answers any more, and nothing says so.
  agent.socket.pause();
  wake();
  vi.advanceTimersByTime(AGENT.wakePongMs);
  await until("offline");
  await vi.runOnlyPendingTimersAsync();
  await relay.agent();
});

test("a link that lives is left alone", async () => {
  const { relay, tunnel, until, wake, framed } = await client();
  tunnel.start();
  const { agent } = await relay.agent();
  await until("online");
  const asked = new Promise((resolve) => agent.socket.once("message", resolve));
  wake();
  await asked;
  // This comes after the answer.
  agent.send({ type: "probe", probeId: "p" });
  await framed;
  vi.advanceTimersByTime(AGENT.wakePongMs);
  expect(tunnel.status.link).toBe("online");
  expect(relay.dials).toBe(1);
});

test("a redial does not wait for its turn", async () => {
  const { relay, tunnel, until, wake } = await client();
  relay.options.refuse = 503;
  tunnel.start();
  await until("offline");
  delete relay.options.refuse;
  wake();
  // No time passes on the test's clock.
  await relay.agent();
});
