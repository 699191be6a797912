/** The hand-written checks of the call path's frames say what the schemas say, and nothing that they do not. */
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { AgentFrame, newCallId, RelayFrame } from "../../src/tunnel/frames.ts";
import { isHotAgentFrame, isHotRelayFrame } from "../../src/tunnel/hot-frames.ts";

const callId = fc.constant(0).map(newCallId);
const stream = fc.oneof(callId, fc.constant("catalogue"));
const count = fc.nat();
const positive = fc.integer({ min: 1 });
const text = fc.string({ maxLength: 20 });
/** Without the one member that the schema drops instead of passing or refusing it; it has a test of its own. */
const json = fc.jsonValue().map((value) => JSON.parse(JSON.stringify(value).replaceAll("__proto__", "proto")) as unknown);
const object = fc.dictionary(text, json).map((value) => JSON.parse(JSON.stringify(value).replaceAll("__proto__", "proto")) as object);
/** A member that may be absent: undefined ones are left out before the frame is used. */
const maybe = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.option(value, { nil: undefined });
const base = { optional: maybe(fc.constant(true)) };

const credit = fc.record({ ...base, type: fc.constant("credit"), stream, bytes: positive, offset: maybe(positive) });
const chunk = fc.record({ ...base, type: fc.constant("chunk"), stream, offset: count });
const agentFrames = fc.oneof(
  credit,
  chunk,
  fc.record({ ...base, type: fc.constant("ack"), callId }),
  fc.record({
    ...base,
    type: fc.constant("event"),
    callId,
    seq: positive,
    method: fc.constantFrom("notifications/progress", "notifications/message"),
  }),
  fc.record({
    ...base,
    type: fc.constant("result"),
    callId,
    seq: positive,
    protocol: text,
    bytes: maybe(count),
    meta: maybe(object),
    resultType: maybe(text),
    ttlMs: maybe(json),
    cacheScope: maybe(json),
    structuredAt: maybe(count),
  }),
);
const relayFrames = fc.oneof(
  credit,
  chunk,
  fc.record({ ...base, type: fc.constant("delivered"), callIds: fc.array(callId, { minLength: 1, maxLength: 3 }) }),
  fc.record({
    ...base,
    type: fc.constant("call"),
    callId,
    method: text,
    target: maybe(text),
    ref: maybe(object),
    timeoutMs: positive,
    credit: count,
    caller: fc.record({ grant: text, label: text, member: text }),
    client: fc.record({ era: fc.constantFrom("modern", "legacy"), protocol: text, capabilities: object, info: maybe(object) }),
    meta: maybe(object),
    progress: maybe(fc.boolean()),
    logLevel: maybe(text),
    paramHeaders: maybe(fc.dictionary(text, text)),
    bytes: maybe(count),
  }),
);

/** As it arrives: what JSON makes of it. */
function onTheWire(value: unknown): Record<string, unknown> {
  return JSON.parse(JSON.stringify(value)) as Record<string, unknown>;
}

/** ms for a thousand damaged frames on a busy machine. */
const DEADLINE_MS = 60_000;

/** Values that a member can be wrong with, and some that it cannot. */
const anything = fc.oneof(
  json,
  fc.constantFrom<unknown>(
    "",
    -1,
    0,
    1,
    1.5,
    2 ** 53,
    Number.POSITIVE_INFINITY,
    true,
    false,
    null,
    [],
    {},
    "modern",
    "c_short",
    "x".repeat(257),
    "x".repeat(8193),
  ),
  callId,
);
const MEMBERS =
  "type callId seq method protocol bytes meta optional stream offset callIds target ref timeoutMs credit caller client " +
  "progress logLevel paramHeaders structuredAt resultType grant label member era capabilities info unknown";
const member = fc.constantFrom(...MEMBERS.split(" "));

/** A frame with one member replaced, added or taken away, in it or one level below. */
const damage = (frames: fc.Arbitrary<object>): fc.Arbitrary<Record<string, unknown>> =>
  fc
    .tuple(frames, member, fc.constantFrom("caller", "client", undefined), fc.option(anything, { nil: undefined }))
    .map(([frame, name, inside, value]) => {
      const damaged = onTheWire(frame);
      const place = inside === undefined ? damaged : (damaged[inside] as Record<string, unknown> | undefined);
      const target = typeof place === "object" && place !== null ? place : damaged;
      if (value === undefined) delete target[name];
      else target[name] = value;
      return damaged;
    });

const sides = [
  { side: "agent", frames: agentFrames, isHot: isHotAgentFrame, schema: AgentFrame },
  { side: "relay", frames: relayFrames, isHot: isHotRelayFrame, schema: RelayFrame },
] as const;

test("a member named __proto__ inside a frame is left to the schema, which drops it", () => {
  const frame = JSON.parse(`{"type":"result","callId":"${newCallId()}","seq":1,"protocol":"x","meta":{"__proto__":{"a":1}}}`) as Record<
    string,
    unknown
  >;
  expect(isHotAgentFrame(frame)).toBe(false);
  expect(AgentFrame.parse(frame)).toMatchObject({ meta: {} });
  expect(Object.hasOwn((AgentFrame.parse(frame) as { meta: object }).meta, "__proto__")).toBe(false);
});

describe.each(sides)("frames of the $side", ({ frames, isHot, schema }) => {
  test("a valid one passes by hand, as the very frame that the schema gives", () => {
    fc.assert(
      fc.property(frames, (frame) => {
        const value = onTheWire(frame);
        expect(isHot(value)).toBe(true);
        expect(schema.parse(value)).toEqual(value);
      }),
    );
  });

  test(
    "a damaged one passes by hand exactly when it passes the schema",
    () => {
      const types = new Set(["ack", "event", "result", "call", "delivered", "chunk", "credit"]);
      fc.assert(
        fc.property(damage(frames), (value) => {
          fc.pre(typeof value["type"] === "string" && types.has(value["type"]));
          expect(isHot(value)).toBe(schema.safeParse(value).success);
        }),
        { numRuns: 1_000 },
      );
    },
    DEADLINE_MS,
  );

  test("names that objects inherit are unknown members", () => {
    fc.assert(
      fc.property(frames, fc.constantFrom("__proto__", "constructor", "toString", "hasOwnProperty"), (frame, name) => {
        const text = JSON.stringify(frame);
        const value = JSON.parse(`${text.slice(0, -1)},"${name}":1}`) as Record<string, unknown>;
        expect(isHot(value)).toBe(schema.safeParse(value).success);
      }),
    );
  });
});
