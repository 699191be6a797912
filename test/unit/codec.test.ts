import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { TUNNEL } from "../../src/limits.ts";
import { decodeAgentMessage, decodeRelayMessage, encode, payloadBytes, payloadText, split } from "../../src/tunnel/codec.ts";
import { newCallId } from "../../src/tunnel/frames.ts";

const callId = newCallId();

describe("codec", () => {
  test("a text payload comes back as it was, whatever it holds", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        const decoded = decodeAgentMessage(encode({ type: "event", callId, seq: 1, method: "notifications/progress" }, text));
        expect(decoded).toMatchObject({ ok: true, payload: text });
      }),
    );
  });

  test("byte payloads come back as they were, cut inside a character or not", () => {
    fc.assert(
      fc.property(fc.uint8Array(), (bytes) => {
        const decoded = decodeRelayMessage(encode({ type: "chunk", stream: callId, offset: 0 }, bytes));
        expect(decoded).toMatchObject({ ok: true, payload: bytes });
      }),
    );
  });

  test("an empty payload is not an absent one", () => {
    expect(split(encode({ type: "ack", callId }, ""))?.payload).toBe("");
    expect(split(encode({ type: "ack", callId }))?.payload).toBeUndefined();
  });

  test.each([
    ["not JSON", "{", "header is not JSON"],
    ["an array", "[]", "header has no type"],
    ["null", "null", "header has no type"],
    ["no type", "{}", "header has no type"],
    ["a numeric type", '{"type":1}', "header has no type"],
    ["an unknown type", '{"type":"teleport"}', "unknown frame type"],
    ["a relay frame from an agent", `{"type":"probe","probeId":"p"}`, "unknown frame type"],
    ["a prototype key", '{"type":"__proto__"}', "unknown frame type"],
    ["an unknown member", `{"type":"ack","callId":"${callId}","x":1}`, "ack:"],
    ["a client's id in place of a call id", `{"type":"ack","callId":"7"}`, "ack: callId"],
  ])("%s is refused with its problem", (_name, message, problem) => {
    const decoded = decodeAgentMessage(message);
    expect(decoded).toMatchObject({ ok: false, problem: expect.stringContaining(problem) });
  });

  test("an unknown type marked optional is readable and says nothing", () => {
    expect(decodeAgentMessage('{"type":"teleport","optional":true,"to":"mars"}')).toEqual({ ok: true, frame: null });
  });

  test("a header is read up to its cap and not beyond", () => {
    const header = (length: number) => `{"type":"bye","optional":true,"reason":"${"x".repeat(length)}"}`;
    const room = TUNNEL.maxHeaderBytes - header(0).length;
    expect(split(header(room))).not.toBeNull();
    expect(split(header(room + 1))).toBeNull();
    expect(split(new TextEncoder().encode(header(room + 1)))).toBeNull();
  });

  test("bytes that are not UTF-8 make a header unreadable, not the process", () => {
    expect(decodeAgentMessage(new Uint8Array([0xff, 0xfe, 0x0a]))).toMatchObject({ ok: false });
  });

  test("hostile text never throws", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: "binary" }), fc.json(), fc.uint8Array()), (message) => {
        expect(typeof decodeAgentMessage(message).ok).toBe("boolean");
        expect(typeof decodeRelayMessage(message).ok).toBe("boolean");
      }),
    );
  });

  test("payload lengths are counted in bytes, and a byte order mark is kept", () => {
    expect(payloadBytes("zürich")).toBe(7);
    expect(payloadText(new TextEncoder().encode("\ufeffa"))).toBe("\ufeffa");
  });
});
