import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { LineFramer, type Oversize } from "../../src/agent/upstreams/line-framer.ts";
import { SseParser, type SseEvent } from "../../src/agent/upstreams/sse.ts";

/** Cuts bytes at the given places. */
function pieces(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const places = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].toSorted((a, b) => a - b);
  const parts: Buffer[] = [];
  let from = 0;
  for (const to of [...places, bytes.length]) {
    parts.push(bytes.subarray(from, to));
    from = to;
  }
  return parts;
}

function frame(parts: readonly Buffer[], max = 1_000): { lines: string[]; oversize: Oversize[] } {
  const lines: string[] = [];
  const oversize: Oversize[] = [];
  const framer = new LineFramer(
    max,
    (line) => lines.push(line.toString()),
    (line) => oversize.push(line),
  );
  for (const part of parts) framer.push(part);
  framer.end();
  return { lines, oversize };
}

function parse(parts: readonly Buffer[], max = 10_000): { events: SseEvent[]; parser: SseParser } {
  const events: SseEvent[] = [];
  const parser = new SseParser(max, (event) => events.push(event));
  for (const part of parts) parser.push(part);
  return { events, parser };
}

describe("the line framer", () => {
  test("gives the same lines however the bytes are cut", () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: "grapheme" })), fc.array(fc.nat()), (texts, cuts) => {
        const wanted = texts.map((line) => line.replaceAll("\n", "")).filter((line) => line !== "");
        const bytes = Buffer.from(texts.map((line) => line.replaceAll("\n", "")).join("\n"));
        expect(frame(pieces(bytes, cuts), 100_000).lines).toEqual(wanted.map((line) => Buffer.from(line).toString()));
      }),
    );
  });

  test("costs one line when one is over the cap, and keeps both its ends", () => {
    const big = `{"id":"first"${"x".repeat(5_000)}"last"}`;
    for (const size of [1, 7, 600, 100_000]) {
      const bytes = Buffer.from(`before\n${big}\nafter\n`);
      const parts = Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) => bytes.subarray(i * size, (i + 1) * size));
      const { lines, oversize } = frame(parts);
      expect(lines).toEqual(["before", "after"]);
      expect(oversize).toHaveLength(1);
      expect(oversize[0]?.size).toBe(big.length);
      expect(oversize[0]?.head.toString()).toContain('"id":"first"');
      expect(oversize[0]?.tail.toString()).toContain('"last"}');
    }
  });

  test("takes a line of exactly the cap and refuses one byte more", () => {
    expect(frame([Buffer.from(`${"x".repeat(1_000)}\n`)]).lines).toHaveLength(1);
    expect(frame([Buffer.from(`${"x".repeat(1_001)}\n`)]).oversize).toHaveLength(1);
  });
});

describe("the SSE parser", () => {
  test("gives the same events however the bytes are cut and lines end", () => {
    const source = ': hello\nid: 7\ndata: {"a":\ndata: 1}\n\nretry: 40\nevent: message\ndata:x\n\ndata\n\n';
    fc.assert(
      fc.property(fc.array(fc.nat()), fc.constantFrom("\n", "\r\n", "\r"), (cuts, end) => {
        const { events, parser } = parse(pieces(Buffer.from(source.replaceAll("\n", end)), cuts));
        expect(events.map((event) => [event.id, event.data.toString()])).toEqual([
          ["7", '{"a":\n1}'],
          ["7", "x"],
          ["7", ""],
        ]);
        expect(parser.retryMs).toBe(40);
      }),
    );
  });

  test("refuses an event over the cap", () => {
    expect(() => parse([Buffer.from(`data: ${"x".repeat(20_000)}`)])).toThrow(RangeError);
    expect(() => parse(Array.from({ length: 300 }, () => Buffer.from(`data: ${"x".repeat(100)}\n`)))).toThrow(RangeError);
  });
});
