import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { lastMember, parseValue, scanElements, scanMembers, ScanError, skipValue, valueOf } from "../../src/tunnel/json-scan.ts";
import { canonicalResult, withoutMembers } from "../../src/agent/upstreams/result.ts";
import { UPSTREAM } from "../../src/limits.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const text = (value: Uint8Array) => new TextDecoder().decode(value);

/** Whether the scanner takes the whole text for one JSON value. */
function accepts(source: string): boolean {
  const encoded = bytes(source);
  try {
    return /^[ \t\r\n]*$/.test(text(encoded.subarray(skipValue(encoded, 0))));
  } catch (error) {
    if (error instanceof ScanError) return false;
    throw error;
  }
}

function parses(source: string): boolean {
  try {
    JSON.parse(source);
    return true;
  } catch {
    return false;
  }
}

const spaced = fc
  .tuple(fc.jsonValue(), fc.constantFrom(undefined, 1, "\t", "  "))
  .map(([value, space]) => JSON.stringify(value, null, space));
const object = fc.dictionary(fc.string(), fc.jsonValue());

function nested(depth: number): string {
  return "[".repeat(depth) + "]".repeat(depth);
}

describe("the scanner", () => {
  test("accepts whatever JSON.stringify makes", () => {
    fc.assert(
      fc.property(spaced, (source) => {
        expect(accepts(source)).toBe(true);
      }),
    );
  });

  test("agrees with JSON.parse on damaged texts", () => {
    const damaged = fc.tuple(
      spaced,
      fc.nat(),
      fc.constantFrom("", ",", '"', "}", "]", "{", "[", ":", "\\", "\\u12", "0", "-", "e", "\n", "\u0001", " ", "tru", "é"),
    );
    fc.assert(
      fc.property(damaged, ([source, at, insert]) => {
        const cut = at % (source.length + 1);
        const candidate = source.slice(0, cut) + insert + source.slice(cut + (insert === "" ? 1 : 0));
        // A lone surrogate does not survive UTF-8.
        fc.pre(candidate.isWellFormed());
        expect(accepts(candidate)).toBe(parses(candidate));
      }),
      { numRuns: 2_000 },
    );
  });

  test.each([
    "",
    " ",
    "01",
    "-",
    "1.",
    "1e",
    "+1",
    ".5",
    "tru",
    "nul",
    '"a',
    '"\\x"',
    '"\\u12g4"',
    "[1,]",
    "[,]",
    '{"a"}',
    '{"a":}',
    '{"a":1,}',
    "{a:1}",
    "[1 2]",
    "}",
    '"\t"',
  ])("refuses %j as JSON.parse does", (source) => {
    expect(parses(source)).toBe(false);
    expect(accepts(source)).toBe(false);
  });

  test("finds members and elements as JSON.parse sees them", () => {
    fc.assert(
      fc.property(object, (value) => {
        const source = bytes(JSON.stringify(value));
        const found = scanMembers(source).map((member) => [member.key, parseValue(valueOf(source, member))] as const);
        expect(Object.fromEntries(found)).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
    fc.assert(
      fc.property(fc.array(fc.jsonValue()), (value) => {
        const source = bytes(JSON.stringify(value));
        const found = scanElements(source).map((span) => parseValue(source.subarray(span.start, span.end)));
        expect(found).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });

  test("decodes escaped keys, so that an escape hides nothing", () => {
    expect(scanMembers(bytes(String.raw`{"n\u0061me":1,"\u005fmeta":2}`)).map((member) => member.key)).toEqual(["name", "_meta"]);
  });

  test("does not overflow on nesting, and refuses what is over the bound", () => {
    expect(accepts(nested(UPSTREAM.maxJsonDepth))).toBe(true);
    expect(accepts(nested(UPSTREAM.maxJsonDepth + 2))).toBe(false);
    expect(accepts("[".repeat(1_000_000))).toBe(false);
  });
});

describe("a canonical result", () => {
  test("passes byte for byte when nothing is lifted", () => {
    const source = bytes(String.raw`{ "content" : [ 1.0, 12345678901234567890, "\u00e9\/" ], "structuredContent": {"a": 1e2} }`);
    const { header, payload } = canonicalResult(source);
    expect(header).toEqual({});
    expect(payload).toBe(source);
  });

  test("lifts the era members and leaves the bytes of the others", () => {
    const source = bytes(
      String.raw`{"_meta":{"k":1},"content":[{"n":12345678901234567890}],"resultType":"complete","ttlMs":5,"x":"\u00e9","cacheScope":"private"}`,
    );
    const { header, payload } = canonicalResult(source);
    expect(header).toEqual({ meta: { k: 1 }, resultType: "complete", ttlMs: 5, cacheScope: "private" });
    expect(text(payload)).toBe(String.raw`{"content":[{"n":12345678901234567890}],"x":"\u00e9"}`);
  });

  test.each(["[1,2]", '"text"', "3", "null", "true"])("moves a structuredContent of %s to the end, where it can be cut off", (value) => {
    const { header, payload } = canonicalResult(bytes(`{"structuredContent":${value},"content":[],"z":1}`));
    const at = header.structuredAt ?? -1;
    expect(text(payload)).toBe(`{"content":[],"z":1,"structuredContent":${value}}`);
    expect(`${text(payload.subarray(0, at))}}`).toBe('{"content":[],"z":1}');
    const alone = canonicalResult(bytes(`{"structuredContent":${value}}`));
    expect(`${text(alone.payload.subarray(0, alone.header.structuredAt))}}`).toBe("{}");
  });

  test("keeps every other member's value, whatever the result is", () => {
    fc.assert(
      fc.property(object, fc.jsonValue(), (value, structured) => {
        const source = { ...value, structuredContent: structured };
        const { header, payload } = canonicalResult(bytes(JSON.stringify({ ...source, resultType: "complete", _meta: {} })));
        const {
          resultType: _type,
          _meta,
          ttlMs: _ttl,
          cacheScope: _scope,
          ...kept
        } = JSON.parse(JSON.stringify(source)) as Record<string, unknown>;
        expect(parseValue(payload)).toEqual(kept);
        expect(header.structuredAt !== undefined).toBe(typeof structured !== "object" || structured === null || Array.isArray(structured));
      }),
    );
  });

  test("refuses members that a header cannot carry", () => {
    expect(() => canonicalResult(bytes('{"_meta":[]}'))).toThrow("_meta");
    expect(() => canonicalResult(bytes('{"resultType":1}'))).toThrow("resultType");
    expect(() => canonicalResult(bytes("[]"))).toThrow(ScanError);
  });

  test("removes members by decoded name", () => {
    expect(text(withoutMembers(bytes(String.raw`{"a":1,"progress\u0054oken":2,"b":3}`), new Set(["progressToken"])))).toBe('{"a":1,"b":3}');
    expect(lastMember(scanMembers(bytes('{"a":1,"a":2}')), "a")).toMatchObject({ valueStart: 11 });
  });
});
