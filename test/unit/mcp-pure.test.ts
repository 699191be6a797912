import * as fc from "fast-check";
import { expect, test } from "vitest";
import { classifyRequest } from "../../src/mcp/classify.ts";
import { acceptsEventStream, isJsonContent } from "../../src/mcp/headers.ts";
import { readBody, type RpcRequest } from "../../src/mcp/json-rpc.ts";
import { sourceTexts } from "../../src/mcp/source-texts.ts";
import { canonicalJson } from "../../src/mcp/request-state.ts";
import { oneLine, oneLineBytes, spliceBytes, spliceText } from "../../src/mcp/splice.ts";
import { encodeEvent } from "../../src/mcp/sse.ts";
import { decodeHeaderValue } from "../../src/policy/header-value.ts";
import { checkParamHeaders, readParamRules } from "../../src/policy/param-headers.ts";
import { readRecords, RecordError, writeRecord } from "../../src/tunnel/record.ts";

const VERSION = "io.modelcontextprotocol/protocolVersion";
const NONE = { version: undefined, sessionId: undefined, method: undefined, name: undefined };
const request = (method: string, meta?: unknown): RpcRequest => ({
  kind: "request",
  method,
  params: meta === undefined ? undefined : { _meta: meta },
  id: 1,
  idText: "1",
  tokenText: undefined,
});

test.each([
  ["initialize alone", "initialize", {}, undefined, "legacy"],
  ["initialize with a modern header", "initialize", { version: "2026-07-28" }, undefined, "legacy"],
  ["initialize with modern _meta only", "initialize", {}, { [VERSION]: "2026-07-28" }, "legacy"],
  [
    "initialize in the full modern form",
    "initialize",
    { version: "2026-07-28", method: "initialize" },
    { [VERSION]: "2026-07-28" },
    "modern",
  ],
  [
    "session and legacy header, whatever _meta holds",
    "tools/list",
    { sessionId: "s", version: "2025-06-18" },
    { [VERSION]: "2026-07-28" },
    "legacy",
  ],
  ["session without a header, modern _meta", "tools/list", { sessionId: "s" }, { [VERSION]: "2026-07-28" }, "modern"],
  ["_meta without the version key", "tools/list", {}, { "io.modelcontextprotocol/clientCapabilities": {} }, "legacy"],
  ["an unknown version header", "tools/list", { version: "v9" }, undefined, "modern"],
  ["an unknown version header in a session", "tools/list", { version: "v9", sessionId: "s" }, undefined, "modern"],
  ["a legacy version header", "tools/list", { version: "2025-03-26" }, undefined, "legacy"],
  ["a legacy version header and Mcp-Method", "tools/list", { version: "2025-03-26", method: "tools/list" }, undefined, "legacy"],
  ["Mcp-Method alone", "tools/list", { method: "tools/list" }, undefined, "modern"],
  ["Mcp-Method in a session", "tools/list", { method: "tools/list", sessionId: "s" }, undefined, "legacy"],
  ["nothing", "tools/list", {}, undefined, "legacy"],
] as const)("classify: %s", (_what, method, headers, meta, era) => {
  expect(classifyRequest(request(method, meta), { ...NONE, ...headers }).era).toBe(era);
});

test("classify never throws and depends on its arguments only", () => {
  const text = fc.option(fc.oneof(fc.constantFrom("2026-07-28", "2025-06-18", "", "s"), fc.string()), { nil: undefined });
  fc.assert(
    fc.property(
      fc.record({ version: text, sessionId: text, method: text, name: text }),
      fc.jsonValue(),
      fc.string(),
      (headers, params, method) => {
        const message: RpcRequest = { ...request(method), params };
        expect(classifyRequest(message, headers)).toEqual(classifyRequest(message, headers));
      },
    ),
  );
});

/** JSON text with random white space between its tokens. */
function spaced(value: unknown, blank: string): string {
  return JSON.stringify(value, null, 1).replaceAll("\n", blank);
}

test("the scanner finds what JSON.parse reads, in any JSON, single or batch", () => {
  const id = fc.oneof(fc.string(), fc.integer());
  const message = fc.record(
    {
      id,
      x: fc.jsonValue(),
      params: fc.oneof(
        fc.jsonValue(),
        fc.record({ id: fc.jsonValue(), _meta: fc.record({ progressToken: id, id: fc.jsonValue() }, { requiredKeys: [] }) }),
      ),
      'y"\\': fc.jsonValue(),
    },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(fc.oneof(message, fc.array(message)), fc.constantFrom("", " ", "\n\t"), (value, blank) => {
      const messages = sourceTexts(spaced(value, blank)) ?? [];
      const all = Array.isArray(value) ? value : [value];
      expect(messages).toHaveLength(all.length);
      for (const [i, item] of all.entries()) {
        const found = messages[i];
        expect(found?.id === undefined ? undefined : JSON.parse(found.id)).toEqual(item.id);
        const meta = (item.params as Record<string, unknown> | null | undefined)?.["_meta"];
        const token =
          typeof meta === "object" && meta !== null && !Array.isArray(meta)
            ? (meta as Record<string, unknown>)["progressToken"]
            : undefined;
        const isScalar = typeof token === "string" || typeof token === "number";
        if (isScalar) expect(JSON.parse(found?.progressToken ?? "null")).toEqual(token);
        else if (token === undefined) expect(found?.progressToken).toBeUndefined();
      }
    }),
  );
});

test("readBody never throws, and takes any text", () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
      expect(["single", "batch"]).toContain(readBody(text).kind);
    }),
  );
});

test("of equal keys the last wins, as in JSON.parse", () => {
  const body = readBody(
    '{"jsonrpc":"2.0","id":1,"method":"a","method":"b","\\u0069d":2.0,"params":{"_meta":{"progressToken":7}},"params":{"_meta":{}}}',
  );
  expect(body).toMatchObject({ message: { kind: "request", method: "b", id: 2, idText: "2.0", tokenText: undefined } });
  expect(readBody('{"jsonrpc":"2.0","id":1,"method":"a","__proto__":{"id":5}}')).toMatchObject({ message: { idText: "1" } });
});

test.each([
  ["attic", "attic"],
  [" \tattic\t ", "attic"],
  ["", ""],
  ["=?base64?esO8cmljaA==?=", "zürich"],
  ["=?base64?IGxlZnQgcGFk?=", " left pad"],
  ["=?base64?PT9iYXNlNjQ/eD89?=", "=?base64?x?="],
  ["=?base64??=", ""],
  ["=?base64?esO8cmljaA==", "=?base64?esO8cmljaA=="],
  ["esO8cmljaA==?=", "esO8cmljaA==?="],
  ["=?BASE64?SGVsbG8=?=", "=?BASE64?SGVsbG8=?="],
  ["=?base64?=", "=?base64?="],
  ["=?base64?SGVsbG8?=", null],
  ["=?base64?SGVs!!!bG8=?=", null],
  ["=?base64?/w==?=", null],
  ["=?base64?SGVsbG8=\n?=", null],
  ["zürich", null],
  ["a\u007f", null],
])("R31–R35: the header value %j stands for %j", (raw, expected) => {
  expect(decodeHeaderValue(raw)).toBe(expected);
});

test("any text survives the Base64 form", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), (text) => {
      expect(decodeHeaderValue(`=?base64?${Buffer.from(text).toString("base64")}?=`)).toBe(text);
    }),
  );
});

const SCHEMA = {
  type: "object",
  properties: {
    room: { type: "string", "x-mcp-header": "Room" },
    level: { type: "integer", "x-mcp-header": "Level" },
    on: { type: "boolean", "x-mcp-header": "On" },
    deep: { type: "object", properties: { __proto__x: { type: "string" }, zone: { type: "string", "x-mcp-header": "Zone" } } },
  },
};

test.each([
  ["R36 missing", { room: "attic" }, {}, false],
  ["equal", { room: "attic" }, { room: "attic" }, true],
  ["R37 different", { room: "attic" }, { room: "cellar" }, false],
  ["R38 null without a header", { room: null }, {}, true],
  ["absent but sent", {}, { room: "attic" }, false],
  ["Base64", { room: "zürich" }, { room: "=?base64?esO8cmljaA==?=" }, true],
  ["bad Base64", { room: "zürich" }, { room: "=?base64?esO8cmljaA=?=" }, false],
  ["R39 integers as numbers", { level: 7 }, { level: "7.0" }, true],
  ["no hexadecimal", { level: 16 }, { level: "0x10" }, false],
  ["no blank as zero", { level: 0 }, { level: "" }, false],
  ["R39 booleans in lower case", { on: true }, { on: "True" }, false],
  ["booleans", { on: false }, { on: "false" }, true],
  ["R40 nested", { deep: { zone: "a" } }, { zone: "b" }, false],
  ["R41 unknown ones pass", {}, { zzz: "=?base64?!?=" }, true],
  ["arguments that are no object", "x", {}, true],
])("parameter headers: %s", (_rule, args, headers, isFine) => {
  const { rules, problems } = readParamRules(SCHEMA);
  expect(problems).toEqual([]);
  expect(checkParamHeaders(rules, args, headers as Record<string, string>) === null).toBe(isFine);
});

const at = (more: Record<string, unknown>) => ({ type: "string", "x-mcp-header": "A", ...more });

test("annotations that break a rule are reported and not applied", () => {
  for (const schema of [
    at({}),
    { properties: { a: at({ "x-mcp-header": "" }) } },
    { properties: { a: at({ "x-mcp-header": "ä" }) } },
    { properties: { a: at({ type: "number" }) } },
    { properties: { list: { type: "array", items: at({}) } } },
    { oneOf: [{ properties: { a: at({}) } }] },
  ]) {
    expect(readParamRules(schema)).toMatchObject({ rules: [], problems: [expect.any(String)] });
  }
  const twice = readParamRules({ properties: { a: at({}), b: at({ "x-mcp-header": "a" }) } });
  expect([twice.rules.length, twice.problems.length]).toEqual([1, 1]);
  fc.assert(fc.property(fc.jsonValue(), fc.jsonValue(), (schema, args) => void checkParamHeaders(readParamRules(schema).rules, args, {})));
});

test.each([
  ["application/json, text/event-stream", true],
  ["TEXT/Event-Stream", true],
  ["text/event-stream;q=0.5", true],
  ["text/*", true],
  ["text/event-stream; q=0", false],
  ["*/*", false],
  ["application/json", false],
  [null, false],
])("Accept %j takes a stream: %s", (accept, expected) => {
  expect(acceptsEventStream(accept)).toBe(expected);
});

test("a JSON body may carry a charset, and may not say anything else", () => {
  expect([null, "application/json", "Application/JSON;charset=utf-8"].map(isJsonContent)).toEqual([true, true, true]);
  expect(["", "text/json", "application/jsonx", "application/json-patch+json"].map(isJsonContent)).toEqual([false, false, false, false]);
});

test("an event is one data line whatever the JSON holds", () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.constantFrom("\n", "\r\n", "\r"), (value, end) => {
      const text = JSON.stringify(value, null, 1).replaceAll("\n", end);
      const event = new TextDecoder().decode(encodeEvent(text));
      expect(event.match(/[\r\n]/g)).toEqual(["\n", "\n"]);
      expect(JSON.parse(event.slice("data: ".length))).toEqual(JSON.parse(text));
      expect(new TextDecoder().decode(oneLineBytes(new TextEncoder().encode(text)))).toBe(oneLine(text));
    }),
  );
});

test("members are spliced into any object, as text and as bytes in any pieces", async () => {
  const cases = fc.asyncProperty(
    fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 3 }),
    fc.constantFrom("", " ", "\n"),
    fc.constantFrom("", '"\\u0000era":1'),
    fc.integer({ min: 1, max: 7 }),
    async (value, blank, members, size) => {
      const text = `${blank}${JSON.stringify(value, null, 1)}${blank}`;
      const own = JSON.parse(text) as object;
      const expected = { ...(members === "" ? {} : { "\u0000era": 1 }), ...own };
      expect(JSON.parse(spliceText(members, text))).toEqual(expected);
      const bytes = new TextEncoder().encode(text);
      async function* pieces() {
        for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
      }
      let whole = "";
      const decoder = new TextDecoder();
      for await (const piece of spliceBytes(members, pieces())) whole += decoder.decode(piece, { stream: true });
      expect(JSON.parse(whole)).toEqual(expected);
    },
  );
  await fc.assert(cases, { numRuns: 60 });
});

test("canonical JSON does not depend on the order of keys", () => {
  expect(canonicalJson({ b: [1, { d: null, c: "x" }], a: true })).toBe('{"a":true,"b":[1,{"c":"x","d":null}]}');
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      expect(JSON.parse(canonicalJson(value))).toEqual(JSON.parse(JSON.stringify(value)));
    }),
  );
});

test("records come out as they went in, however the stream cuts them", async () => {
  const cases = fc.asyncProperty(
    fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 6 }),
    fc.integer({ min: 1, max: 9 }),
    async (messages, size) => {
      const all = Buffer.concat(messages.map(writeRecord));
      const stream = new ReadableStream<Uint8Array>({
        start(controller) {
          for (let at = 0; at < all.length; at += size) controller.enqueue(new Uint8Array(all.subarray(at, at + size)));
          controller.close();
        },
      });
      const read: Uint8Array[] = [];
      for await (const message of readRecords(stream)) read.push(new Uint8Array(message));
      expect(read).toEqual(messages);
    },
  );
  await fc.assert(cases, { numRuns: 60 });
});

function of(...parts: Uint8Array[]): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>({
    start(controller) {
      for (const part of parts) controller.enqueue(part);
      controller.close();
    },
  });
}

test("a record that is cut off or over the bound is an error; cancelling tells the producer", async () => {
  await expect(readRecords(of(writeRecord("abc").subarray(0, 5))).next()).rejects.toThrow(RecordError);
  await expect(readRecords(of(new Uint8Array([0, 0]))).next()).rejects.toThrow(RecordError);
  expect(await readRecords(of(writeRecord("abcd")), 4).next()).toEqual(new TextEncoder().encode("abcd"));
  await expect(readRecords(of(writeRecord("abcde")), 4).next()).rejects.toThrow(RecordError);
  const cancelled = Promise.withResolvers<unknown>();
  const open = readRecords(new ReadableStream<Uint8Array>({ cancel: (reason) => cancelled.resolve(reason) }));
  await open.cancel("enough");
  expect(await cancelled.promise).toBe("enough");
});
