/** People who watch a device's calls: who is told what, and that watching costs a sleeping object nothing. */
import { evictDurableObject } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import { LIVE } from "../../src/limits.ts";
import { LiveMessage, WATCH_HEADER, WATCH_PATH, type WatchFacts } from "../../src/tunnel/live.ts";
import { within } from "../support/deadline.ts";
import { eventually, onlineDevice } from "./support/device.ts";
import { grantOf, requestOf, SOON_MS, stubOf } from "./support/fake-agent.ts";

/** A watcher as the Worker has it. */
class Watcher {
  readonly closed: Promise<unknown>;
  readonly #received: LiveMessage[] = [];
  #wake: () => void = () => undefined;

  constructor(socket: WebSocket) {
    socket.addEventListener("message", ({ data }) => {
      this.#received.push(LiveMessage.parse(JSON.parse(String(data))));
      this.#wake();
    });
    this.closed = new Promise((resolve) => socket.addEventListener("close", resolve));
    socket.accept();
  }

  async next(): Promise<LiveMessage> {
    const waited = async (): Promise<LiveMessage> => {
      for (;;) {
        const message = this.#received.shift();
        if (message !== undefined) return message;
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    };
    return within(SOON_MS, "a message", waited());
  }

  get unread(): readonly LiveMessage[] {
    return this.#received;
  }
}

async function open(deviceId: string, facts: unknown): Promise<Response> {
  const headers = { Upgrade: "websocket", [WATCH_HEADER]: JSON.stringify(facts) };
  return await stubOf(deviceId).fetch(new Request(`https://object${WATCH_PATH}`, { headers }));
}

async function watching(deviceId: string, facts: WatchFacts = { member: null }) {
  const { webSocket } = await open(deviceId, facts);
  if (webSocket === null) throw new Error("no socket");
  const watcher = new Watcher(webSocket);
  return { watcher, opened: await watcher.next() };
}

describe("a watcher", () => {
  it("is told of a call's beginning, progress and end, in order", async () => {
    const { deviceId, stub, agent, grant } = await onlineDevice();
    const { watcher, opened } = await watching(deviceId);
    expect(opened).toEqual({ type: "open", online: true, calls: [] });
    const request = requestOf(grant.id, { target: "lamp", progress: true });
    const reply = stub.call(request);
    const { frame } = await agent.next("call");
    agent.send(
      { type: "event", callId: frame.callId, seq: 1, method: "notifications/progress" },
      '{"progressToken":"p","progress":1,"total":4,"message":"a\\u202eb"}',
    );
    agent.answer(frame.callId, "{}", 2);
    await reply;
    expect(await watcher.next()).toMatchObject({ type: "began", call: { id: request.callId, target: "lamp", label: grant.label } });
    expect(await watcher.next()).toEqual({ type: "progress", id: request.callId, progress: 1, total: 4, message: "ab" });
  });

  it("sees the calls that run already, and only those of its member's grants", async () => {
    const { deviceId, stub, agent, grant } = await onlineDevice();
    const other = grantOf({ member: "somebody" });
    await stub.putGrant(other);
    const mine = requestOf(other.id, { target: "theirs" });
    void stub.call(requestOf(grant.id, { target: "lamp" })).catch(() => undefined);
    await agent.next("call");
    void stub.call(mine).catch(() => undefined);
    await agent.next("call");
    const { opened, watcher } = await watching(deviceId, { member: "somebody" });
    expect(opened).toMatchObject({ calls: [{ id: mine.callId }] });
    expect(await watching(deviceId)).toMatchObject({ opened: { calls: [{}, {}] } });
    await stub.cancel(mine.callId, "caller_asked");
    expect(await watcher.next()).toMatchObject({ type: "ended", id: mine.callId, outcome: "cancelled", reason: "caller_asked" });
    expect(watcher.unread).toEqual([]);
  });

  it("hears from an object that slept meanwhile, and of a device that goes away", async () => {
    const { deviceId, stub, agent, grant } = await onlineDevice();
    const { watcher } = await watching(deviceId);
    await evictDurableObject(stub);
    const request = requestOf(grant.id, {});
    const reply = stub.call(request);
    const { frame } = await agent.next("call");
    expect(await watcher.next()).toMatchObject({ type: "began", call: { id: request.callId } });
    agent.answer(frame.callId, "{}");
    await reply;
    expect(await watcher.next()).toMatchObject({ type: "ended", outcome: "ok" });
    agent.socket.close(1000);
    expect(await watcher.next()).toEqual({ type: "link", online: false });
  });

  it("is one of a bounded number: a newer one takes the place of the oldest", async () => {
    const { deviceId } = await onlineDevice();
    const { watcher } = await watching(deviceId);
    for (let count = 0; count < LIVE.watchers; count += 1) await watching(deviceId);
    await within(SOON_MS, "the end", watcher.closed);
  });

  it("ends with its device", async () => {
    const { deviceId, stub } = await onlineDevice();
    const { watcher } = await watching(deviceId);
    await stub.destroy();
    await within(SOON_MS, "the end", watcher.closed);
  });

  it("is nobody without facts, or at a device that never connected", async () => {
    const { deviceId } = await onlineDevice();
    expect((await open(deviceId, { member: 7 })).status).toBe(400);
    const never = crypto.randomUUID();
    expect((await open(never, { member: null })).status).toBe(404);
    await eventually(async () => expect(await stubOf(never).liveCalls(null)).toEqual([]));
  });
});
