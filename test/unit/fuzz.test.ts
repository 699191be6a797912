/** Input nobody would write by hand: the endpoint, the header rules and the frame codec. What it finds stays as `examples`. */
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { headerValue, paramHeaders } from "../../src/agent/upstreams/http-headers.ts";
import { decodeAgentMessage, decodeRelayMessage, encode, payloadText } from "../../src/tunnel/codec.ts";
import type { AgentFrame, RelayFrame } from "../../src/tunnel/frames.ts";
import { decodeHeaderValue } from "../../src/policy/header-value.ts";
import { checkParamHeaders, readParamRules } from "../../src/policy/param-headers.ts";
import { EdgeHarness, MODERN } from "../support/edge-harness.ts";

const META = "io.modelcontextprotocol";
const VERSIONS = [MODERN, "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05", "v9", ""];
const METHODS = ["initialize", "ping", "server/discover", "tools/list", "tools/call", "resources/read", "prompts/get", "logging/setLevel"];
const NAMES = ["constructor", "__proto__", "toString", "notifications/cancelled", "notifications/initialized", "subscriptions/unlisten"];

const visible = fc.string({ unit: fc.constantFrom("a", "Z", "9", " ", "-", "_", "=", "?", "/", "+", ".", "~"), maxLength: 12 });
const method = fc.oneof(fc.constantFrom(...METHODS, ...NAMES), visible);
const version = fc.oneof(fc.constantFrom(...VERSIONS), visible);
const id = fc.oneof(fc.integer(), fc.string(), fc.double(), fc.constantFrom(null, {}, [], true, 0, "", -0));
const meta = fc.record(
  {
    [`${META}/protocolVersion`]: fc.oneof(version, fc.jsonValue()),
    [`${META}/clientCapabilities`]: fc.oneof(fc.constant({}), fc.jsonValue()),
    [`${META}/logLevel`]: fc.oneof(fc.constantFrom("info", "loud"), fc.jsonValue()),
    progressToken: fc.oneof(id, fc.jsonValue()),
  },
  { requiredKeys: [] },
);
const params = fc.oneof(
  fc.record(
    {
      name: fc.oneof(visible, fc.jsonValue()),
      uri: fc.oneof(visible, fc.jsonValue()),
      protocolVersion: fc.oneof(version, fc.jsonValue()),
      capabilities: fc.jsonValue(),
      requestId: id,
      requestState: fc.oneof(
        fc.string().map((text) => `ll1.${text}`),
        fc.jsonValue(),
      ),
      inputResponses: fc.jsonValue(),
      _meta: fc.oneof(meta, fc.jsonValue()),
    },
    { requiredKeys: [] },
  ),
  fc.jsonValue(),
);
const message = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record(
      { jsonrpc: fc.constantFrom("2.0", "2.0", "2.0", "1.0"), id, method: fc.oneof(method, fc.jsonValue()), params },
      { requiredKeys: ["jsonrpc"] },
    ),
  },
  {
    weight: 1,
    arbitrary: fc.record({ jsonrpc: fc.constant("2.0"), id, result: fc.jsonValue(), error: fc.jsonValue() }, { requiredKeys: [] }),
  },
  { weight: 1, arbitrary: fc.jsonValue() },
);
const headers = fc.record(
  {
    "mcp-protocol-version": version,
    "mcp-session-id": visible,
    "mcp-method": method,
    "mcp-name": visible,
    "mcp-param-room": visible,
    accept: visible,
  },
  { requiredKeys: [] },
);
const settings = fc.record({ headerOnlyModern: fc.boolean(), initializedModern: fc.boolean() });

test("the endpoint answers whatever comes with a status of the protocol and readable JSON, and reports no fault of its own", async () => {
  await fc.assert(
    fc.asyncProperty(fc.oneof(message, fc.array(message, { maxLength: 4 })), headers, settings, async (body, sent, switches) => {
      const edge = new EdgeHarness();
      edge.switches = switches;
      const { status, text, json } = await edge.exchange({ body, headers: sent });
      expect([200, 202, 400, 404]).toContain(status);
      if (status === 202) expect(text).toBe("");
      else expect(json, text).toBeDefined();
      expect(edge.reported).toEqual([]);
    }),
    { numRuns: 400 },
  );
});

test("the endpoint survives any bytes as a body", async () => {
  await fc.assert(
    fc.asyncProperty(fc.oneof(fc.uint8Array({ maxLength: 64 }), fc.string({ unit: "binary" }), fc.json()), async (text) => {
      const edge = new EdgeHarness();
      const { status } = await edge.exchange({ text, headers: { "mcp-protocol-version": MODERN } });
      expect([200, 202, 400, 404]).toContain(status);
      expect(edge.tunnel.calls).toEqual([]);
    }),
    { numRuns: 200 },
  );
});

const SCHEMA = {
  properties: {
    s: { type: "string", "x-mcp-header": "S" },
    n: { type: "integer", "x-mcp-header": "N" },
    b: { type: "boolean", "x-mcp-header": "B" },
    deep: { properties: { s: { type: "string", "x-mcp-header": "Deep" } } },
  },
};
const args = fc.record(
  {
    s: fc.oneof(fc.string(), fc.string({ unit: "grapheme" }), fc.constantFrom("=?base64?x?=", " s ", "", "=?base64?")),
    n: fc.oneof(fc.maxSafeInteger(), fc.constantFrom(0, 1e21, -7)),
    b: fc.boolean(),
    deep: fc.oneof(fc.record({ s: fc.string({ unit: "binary" }) }), fc.jsonValue()),
  },
  { requiredKeys: [] },
);
const rules = readParamRules(SCHEMA).rules;
/** Lone surrogates cannot be written as UTF-8, in a header or in a body. */
const isWritable = (value: unknown): boolean =>
  (JSON.stringify(value) ?? "").toWellFormed() === JSON.stringify(value) && !/\\ud[89a-f]/i.test(JSON.stringify(value) ?? "");

test("the headers that our own client half makes of arguments are what our server half accepts, and no others", () => {
  fc.assert(
    fc.property(args.filter(isWritable), (given) => {
      const made = paramHeaders(rules, given);
      const isComparable = typeof (given.deep as { s?: unknown } | undefined)?.s !== "object" || (given.deep as { s?: unknown }).s === null;
      if (!isComparable) return;
      const verdict = checkParamHeaders(rules, given, made);
      // A value whose type is not the schema's has no header form and is refused, whatever is sent for it.
      const deep = (given.deep as { s?: unknown } | undefined)?.s;
      if (deep === undefined || deep === null || typeof deep === "string") expect(verdict).toBe(null);
      for (const name of Object.keys(made)) {
        expect(checkParamHeaders(rules, given, { ...made, [name]: `${made[name]}x` })).not.toBe(null);
        const { [name]: _gone, ...without } = made;
        expect(checkParamHeaders(rules, given, without)).not.toBe(null);
      }
    }),
    { numRuns: 500 },
  );
});

test("any text survives the way into a header and back; any header value decodes or is refused", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), (text) => {
      expect(decodeHeaderValue(headerValue(text))).toBe(text);
    }),
  );
  fc.assert(
    fc.property(
      fc.oneof(
        visible,
        fc.string({ unit: "binary" }),
        visible.map((inner) => `=?base64?${inner}?=`),
      ),
      (raw) => {
        const value = decodeHeaderValue(raw);
        expect(value === null || value.isWellFormed()).toBe(true);
      },
    ),
  );
});

const callId = fc.constant("c_AAAAAAAAAAAAAAAAAAAAAA");
const seq = fc.integer({ min: 1, max: 2 ** 31 });
const short = fc.string({ maxLength: 40 });
const agentFrame: fc.Arbitrary<AgentFrame> = fc.oneof(
  fc.record({
    type: fc.constant("event" as const),
    callId,
    seq,
    method: fc.constantFrom("notifications/progress" as const, "notifications/message" as const),
  }),
  fc.record({
    type: fc.constant("ask" as const),
    callId,
    seq,
    askId: short,
    method: fc.constantFrom("roots/list" as const, "elicitation/create" as const),
  }),
  fc.record({
    type: fc.constant("error" as const),
    callId,
    seq,
    origin: fc.constant("upstream" as const),
    protocol: short,
    code: fc.integer(),
    message: short,
  }),
  fc.record({ type: fc.constant("chunk" as const), stream: callId, offset: fc.nat() }),
);
const relayFrame: fc.Arbitrary<RelayFrame> = fc.oneof(
  fc.record({ type: fc.constant("answer" as const), callId, askId: short, kind: fc.constantFrom("result" as const, "error" as const) }),
  fc.record({ type: fc.constant("attach" as const), callId, seq: fc.nat(), offset: fc.nat(), credit: fc.nat() }),
  fc.record({ type: fc.constant("credit" as const), stream: callId, bytes: seq }),
);
const payload = fc.option(fc.oneof(fc.string({ unit: "grapheme" }), fc.constantFrom("\n", "{}\n{}", "")), { nil: undefined });

test("a frame comes back as it went in, whatever its payload; one changed byte is read or refused, and never thrown", () => {
  fc.assert(
    fc.property(fc.oneof(agentFrame, relayFrame), payload, fc.nat(), fc.integer({ min: 0, max: 255 }), (frame, text, at, byte) => {
      const encoded = encode(frame, text);
      const decoded = [decodeAgentMessage(encoded), decodeRelayMessage(encoded)].find((one) => one.ok && one.frame !== null);
      expect(decoded).toMatchObject({ ok: true, frame: JSON.parse(JSON.stringify(frame)) });
      if (decoded?.ok === true && decoded.frame !== null) expect(payloadText(decoded.payload)).toBe(text ?? "");
      const bytes = new TextEncoder().encode(typeof encoded === "string" ? encoded : "");
      bytes[at % bytes.length] = byte;
      for (const decode of [decodeAgentMessage, decodeRelayMessage]) expect(typeof decode(bytes).ok).toBe("boolean");
    }),
    { numRuns: 300 },
  );
});
