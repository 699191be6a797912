/** A relay that sends anything: well-formed frames in any order cost at most the calls they name, and nothing runs twice. */
import * as fc from "fast-check";
import { expect, test } from "vitest";
import type { BuiltinTool } from "../../src/agent/types.ts";
import { newCallId, type RelayFrame } from "../../src/tunnel/frames.ts";
import { callFrame, legacyClient } from "../support/fake-relay.ts";
import { connected } from "./harness.ts";

type Sent = readonly [RelayFrame, string | Uint8Array | undefined];

const bytes = fc.constantFrom(0, 1, 5, 40, 70_000);
const text = fc.constantFrom("{}", "", "null", "7", '{"__proto__":{"name":"x"}}', '{"name":"other"}', '{"arguments":{}}', "not json");

/** Frames that name one call, in shapes that are allowed and values that may not be. */
function framesOf(callId: string): fc.Arbitrary<Sent> {
  const call = callFrame({ method: "tools/call", target: "t", callId, progress: true });
  const sent = (frame: RelayFrame, payload?: string | Uint8Array): Sent => [frame, payload];
  return fc.oneof(
    text.map((body) => sent(call, body)),
    text.map((body) => sent({ ...call, client: legacyClient() }, body)),
    bytes.map((size) => sent({ ...call, bytes: size })),
    fc.tuple(bytes, bytes).map(([offset, size]) => sent({ type: "chunk", stream: callId, offset }, new Uint8Array(size))),
    fc.tuple(bytes, bytes).map(([offset, credit]) => sent({ type: "attach", callId, seq: offset % 4, offset, credit })),
    bytes.map((size) => sent({ type: "credit", stream: callId, bytes: size + 1 })),
    fc.constantFrom("caller_left" as const, "deadline" as const).map((reason) => sent({ type: "cancel", callId, reason })),
    fc.constant(sent({ type: "delivered", callIds: [callId, callId] })),
    text.map((body) => sent({ type: "answer", callId, askId: "__proto__", kind: "result" }, body)),
    fc.constant(sent({ type: "probe", probeId: "__proto__" })),
  );
}

test("frames of one call in any order start it once at most, and another call is answered", async () => {
  const runs = new Map<string, number>();
  let serial = 0;
  const tool: BuiltinTool = {
    name: "t",
    description: "counts",
    inputSchema: { type: "object" },
    run: async (_args, context) => {
      context.progress(1, 2);
      serial += 1;
      await Promise.resolve();
      return { content: [{ type: "text", text: "x".repeat(2_000) }] };
    },
  };
  const ok: BuiltinTool = { ...tool, name: "ok", run: ({ key }) => ({ content: [{ type: "text", text: String(key) }] }) };
  const { agent, relay } = await connected([{ kind: "builtin", alias: "b", tools: [tool, ok] }]);
  const placeholder = `c_${"A".repeat(22)}`;
  const property = fc.asyncProperty(fc.array(framesOf(placeholder), { maxLength: 10 }), async (frames) => {
    const callId = newCallId();
    const before = serial;
    for (const [frame, payload] of frames)
      agent.send(JSON.parse(JSON.stringify(frame).replaceAll(placeholder, callId)) as RelayFrame, payload);
    const { payload } = await agent.outcome(agent.call({ method: "tools/call", target: "ok" }, { arguments: { key: callId } }));
    expect(JSON.parse(payload)).toMatchObject({ content: [{ text: callId }] });
    runs.set(callId, serial - before);
    agent.send({ type: "cancel", callId, reason: "caller_left" });
    agent.messages.length = 0;
  });
  await fc.assert(property, { numRuns: 150 });
  expect(Math.max(...runs.values())).toBeLessThanOrEqual(1);
  // Some sequences do start it, or this would show nothing.
  expect(Math.max(...runs.values())).toBe(1);
  expect(relay.dials).toBe(1);
  expect(agent.problem).toBeNull();
});
