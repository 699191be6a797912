/** A device as most tests want it: online, with one grant; and what they do with time and replies. */
import { runInDurableObject } from "cloudflare:test";
import { vi } from "vitest";
import type { CallReply, DeviceStatus, Refusal } from "../../../durable/rpc.ts";
import { readRecords } from "../../../src/tunnel/record.ts";
import { within } from "../../support/deadline.ts";
import { FakeAgent, grantOf, newDevice, read, SOON_MS, type Stub } from "./fake-agent.ts";

/** A device that is online with one grant, full unless said otherwise. */
export async function onlineDevice(hello: Parameters<typeof FakeAgent.connect>[1] = {}, grant = grantOf()) {
  const { deviceId, stub } = newDevice();
  const { agent, welcome } = await FakeAgent.connect(deviceId, hello);
  await stub.putGrant(grant);
  return { deviceId, stub, agent, welcome, grant };
}

/** Lets `ms` pass for the object. Only with fake timers; runs inside the object, as its own timers would. */
export async function pass(stub: Stub, ms: number): Promise<void> {
  await runInDurableObject(stub, () => {
    vi.advanceTimersByTime(ms);
  });
}

/** The platform's own timer, whatever a test does to it later. */
const realTimeout = globalThis.setTimeout;

/** Tries until it holds, for as long as a test waits for something; `check` may let time pass for the object. */
export async function eventually(check: () => Promise<void>): Promise<void> {
  for (let tries = SOON_MS / 20; ; tries -= 1) {
    try {
      return await check();
    } catch (error) {
      if (tries <= 0) throw error;
      await new Promise<void>((resolve) => realTimeout(resolve, 20));
    }
  }
}

/** The status of a device whose agent answers the probe that comes with it. */
export async function statusOf(stub: Stub, agent: FakeAgent): Promise<DeviceStatus> {
  const status = stub.status();
  await agent.answerProbe();
  return within(SOON_MS, "a status", status);
}

/** A reply that is not a refusal, with its first message read. */
export async function accepted(reply: Promise<CallReply>) {
  const answered = await within(SOON_MS, "a reply", reply);
  if (!answered.ok) throw new Error(`refused: ${JSON.stringify(answered.refusal)}`);
  return { ...answered, ...read(answered.first) };
}

/** The refusal of a reply. */
export async function refusal(reply: Promise<{ ok: true } | { ok: false; refusal: Refusal }>): Promise<Refusal> {
  const answered = await within(SOON_MS, "a refusal", reply);
  if (answered.ok) throw new Error("not refused");
  return answered.refusal;
}

/** A refusal that is a failure of ours. */
export async function failure(reply: Promise<{ ok: true } | { ok: false; refusal: Refusal }>) {
  const refused = await refusal(reply);
  if (refused.kind !== "failure") throw new Error(`refused as ${refused.kind}`);
  return refused.failure;
}

/** The messages of a reply's stream, one at a time. */
export class Rest {
  readonly #reader: ReturnType<typeof readRecords>;

  constructor(stream: ReadableStream<Uint8Array> | null) {
    if (stream === null) throw new Error("the reply has no stream");
    this.#reader = readRecords(stream);
  }

  /** The next message, or null at the end. */
  async next(): Promise<ReturnType<typeof read> | null> {
    const message = await within(SOON_MS, "a message of the stream", this.#reader.next());
    if (message?.length === 0) return this.next(); // a beat: no message
    return message === null ? null : read(message);
  }

  /** The next message's bytes after its header line. */
  async chunk(): Promise<{ frame: Record<string, unknown>; bytes: Uint8Array }> {
    const message = await within(SOON_MS, "a chunk of the stream", this.#reader.next());
    if (message === null) throw new Error("the stream ended");
    const end = message.indexOf(0x0a);
    const header = new TextDecoder().decode(end < 0 ? message : message.subarray(0, end));
    return { frame: JSON.parse(header) as Record<string, unknown>, bytes: end < 0 ? new Uint8Array() : message.slice(end + 1) };
  }

  /** Nobody reads on. */
  cancel(): Promise<void> {
    return this.#reader.cancel();
  }
}
