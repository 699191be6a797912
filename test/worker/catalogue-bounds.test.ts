/** The catalogue's bounds, at both sides of each: what the object keeps of a device's lists, and what callers are told. */
import { describe, expect, it } from "vitest";
import { CATALOGUE } from "../../src/limits.ts";
import { accepted, eventually, failure, onlineDevice } from "./support/device.ts";
import { type FakeAgent, requestOf, type Stub } from "./support/fake-agent.ts";
import { catalogueOf } from "./support/listening.ts";

const PIECE = 200_000;
const encoder = new TextEncoder();
const toolsOf = (count: number) => Array.from({ length: count }, (_, n) => ({ name: `t${n}` }));

/** Bytes of a stream in chunks, from `from` on. */
function sendChunks(agent: FakeAgent, stream: string, bytes: Uint8Array, from = 0, to = bytes.length): void {
  for (let at = from; at < to; at += PIECE) {
    agent.send({ type: "chunk", stream, offset: at }, bytes.slice(at, Math.min(at + PIECE, to)));
  }
}

async function sendCatalogue(agent: FakeAgent, digest: string, text: string): Promise<void> {
  const bytes = encoder.encode(text);
  agent.send({ type: "catalogue", digest, bytes: bytes.length });
  if (bytes.length <= CATALOGUE.maxBytes) {
    expect((await agent.next("credit")).frame).toEqual({ type: "credit", stream: "catalogue", bytes: bytes.length });
    sendChunks(agent, "catalogue", bytes);
  }
  await agent.settled();
}

async function offered(stub: Stub): Promise<string[]> {
  return ((await stub.offeredTools()) ?? []).map(({ name }) => name);
}

/** A text with as many characters in place of PAD as it takes to be so many bytes. */
function padded(text: string, bytes: number): string {
  return text.replace("PAD", "x".repeat(bytes - text.length + "PAD".length));
}

/** A catalogue with one tool, of so many bytes. */
function sized(tool: string, bytes: number): string {
  return padded(catalogueOf([tool]).replace('"discover":{', '"discover":{"instructions":"PAD",'), bytes);
}

function listing(stub: Stub, grant: string) {
  const { target: _target, ...request } = requestOf(grant, { method: "tools/list", payload: "{}" });
  return { callId: request.callId, reply: stub.call(request) };
}

describe("a catalogue", () => {
  it("of the most bytes is kept; with one more the one before stays", async () => {
    const { stub, agent } = await onlineDevice();
    const most = sized("most", CATALOGUE.maxBytes);
    expect(most.length).toBe(CATALOGUE.maxBytes);
    await sendCatalogue(agent, "d1", most);
    expect(await offered(stub)).toEqual(["most"]);
    await sendCatalogue(agent, "d2", sized("more", CATALOGUE.maxBytes + 1));
    expect(await offered(stub)).toEqual(["most"]);
    await sendCatalogue(agent, "d3", sized("less", 1_000));
    expect(await offered(stub)).toEqual(["less"]);
  });

  it("of the most tools is kept; with one more the one before stays", async () => {
    const { stub, agent } = await onlineDevice();
    const names = toolsOf(CATALOGUE.maxTools + 1).map(({ name }) => name);
    await sendCatalogue(agent, "d1", catalogueOf(names.slice(0, -1)));
    expect(await offered(stub)).toHaveLength(CATALOGUE.maxTools);
    await sendCatalogue(agent, "d2", catalogueOf(names));
    expect(await offered(stub)).toHaveLength(CATALOGUE.maxTools);
  });
});

describe("a list of the device", () => {
  it("of the most tools passes and becomes the catalogue; one more is refused with both numbers and what to do", async () => {
    const { stub, agent, grant } = await onlineDevice();
    agent.send({ type: "catalogue", digest: "d1" }, catalogueOf(["lamp"]));
    await agent.settled();
    const most = listing(stub, grant.id);
    await agent.next("call");
    agent.answer(most.callId, JSON.stringify({ tools: toolsOf(CATALOGUE.maxTools) }));
    expect((JSON.parse((await accepted(most.reply)).payload) as { tools: unknown[] }).tools).toHaveLength(CATALOGUE.maxTools);
    const more = listing(stub, grant.id);
    await agent.next("call");
    agent.answer(more.callId, JSON.stringify({ tools: toolsOf(CATALOGUE.maxTools + 1) }));
    expect(await failure(more.reply)).toMatchObject({
      reason: "too_large",
      message: `The device lists ${CATALOGUE.maxTools + 1} tools at once; at most ${CATALOGUE.maxTools} are carried. Let its server list in pages.`,
      data: { size: CATALOGUE.maxTools + 1, cap: CATALOGUE.maxTools },
    });
    agent.send({ type: "bye", reason: "test" });
    await eventually(async () => expect(await offered(stub)).toHaveLength(CATALOGUE.maxTools));
  });

  it("of the most bytes passes; one more is refused with both numbers, before it is sent", async () => {
    const { stub, agent, grant } = await onlineDevice();
    const most = listing(stub, grant.id);
    const { frame } = await agent.next("call");
    const bytes = encoder.encode(padded('{"tools":[{"name":"big","x":"PAD"}]}', CATALOGUE.maxBytes));
    expect(bytes).toHaveLength(CATALOGUE.maxBytes);
    agent.send({ type: "result", callId: most.callId, seq: 1, protocol: "2026-07-28", bytes: bytes.length });
    for (let at = 0, credit = frame.credit; at < bytes.length; credit = (await agent.next("credit")).frame.bytes) {
      const to = Math.min(at + credit, bytes.length);
      sendChunks(agent, most.callId, bytes, at, to);
      at = to;
      if (at === bytes.length) break;
    }
    expect((await accepted(most.reply)).payload).toHaveLength(CATALOGUE.maxBytes);
    const more = listing(stub, grant.id);
    await agent.next("call");
    agent.send({ type: "result", callId: more.callId, seq: 1, protocol: "2026-07-28", bytes: CATALOGUE.maxBytes + 1 });
    expect(await failure(more.reply)).toMatchObject({
      reason: "too_large",
      message: expect.stringContaining("Let its server list in pages"),
      data: { size: CATALOGUE.maxBytes + 1, cap: CATALOGUE.maxBytes },
    });
  });
});
