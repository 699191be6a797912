/** What the edge emits, held against the published schemas. */
import { readFileSync } from "node:fs";
import { Ajv, type ValidateFunction } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import { expect, test } from "vitest";
import { EdgeHarness, modern, modernMeta, type Read } from "../support/edge-harness.ts";
import { inSteps, message, resultMessage, whole } from "../support/fake-tunnel.ts";

function load(version: string): { of(name: string): ValidateFunction } {
  const schema = JSON.parse(readFileSync(new URL(`../fixtures/mcp-schema/${version}.json`, import.meta.url), "utf8")) as {
    $schema: string;
  };
  const options = { strict: false, validateFormats: false } as const;
  const ajv = schema.$schema.includes("2020-12") ? new Ajv2020(options) : new Ajv(options);
  ajv.addSchema(schema, "mcp");
  const root = schema.$schema.includes("2020-12") ? "$defs" : "definitions";
  return { of: (name) => ajv.getSchema(`mcp#/${root}/${name}`) as ValidateFunction };
}

function check(validate: ValidateFunction, value: unknown): void {
  expect([validate(value), validate.errors]).toEqual([true, null]);
}

const MODERN = load("2026-07-28");
const result = (read: Read): unknown => (read.json as { result: unknown }).result;

test.each([
  ["server/discover", "DiscoverResult", {}],
  ["tools/list", "ListToolsResult", { tools: [{ name: "t", inputSchema: { type: "object" } }] }],
  ["resources/list", "ListResourcesResult", { resources: [] }],
  ["resources/templates/list", "ListResourceTemplatesResult", { resourceTemplates: [] }],
  ["prompts/list", "ListPromptsResult", { prompts: [] }],
  ["completion/complete", "CompleteResult", { completion: { values: [] } }],
])("modern: the result of %s is a %s", async (method, name, payload) => {
  const edge = new EdgeHarness();
  edge.tunnel.onCall = ({ callId }) => whole(resultMessage(callId, payload));
  const read = await edge.exchange(modern(method, method === "completion/complete" ? { ref: { type: "ref/prompt", name: "p" } } : {}));
  check(MODERN.of(name), result(read));
  check(MODERN.of("JSONRPCResultResponse"), read.json);
});

test("modern: call, read, input_required, progress and log are what the schema says", async () => {
  const edge = new EdgeHarness();
  const meta = modernMeta({
    "io.modelcontextprotocol/clientCapabilities": { elicitation: {} },
    "io.modelcontextprotocol/logLevel": "debug",
    progressToken: "p",
  });
  edge.tunnel.onCall = ({ callId }) =>
    inSteps([
      message({ type: "event", callId, seq: 1, method: "notifications/progress" }, { progress: 1, total: 2 }),
      message({ type: "event", callId, seq: 2, method: "notifications/message" }, { level: "info", data: 1 }),
      resultMessage(callId, { content: [{ type: "text", text: "x" }], structuredContent: [1] }),
    ]);
  const { events } = await edge.exchange(modern("tools/call", { name: "t", _meta: meta }));
  check(MODERN.of("ProgressNotification"), events[0]);
  check(MODERN.of("LoggingMessageNotification"), events[1]);
  check(MODERN.of("CallToolResultResponse"), events[2]);
  edge.tunnel.onCall = ({ callId }) => whole(resultMessage(callId, { contents: [] }));
  check(MODERN.of("ReadResourceResultResponse"), (await edge.exchange(modern("resources/read", { uri: "test://x" }))).json);
  const params = { mode: "form", message: "m", requestedSchema: { type: "object", properties: {} } };
  edge.tunnel.onCall = ({ callId }) =>
    inSteps([
      message({ type: "ask", callId, seq: 1, askId: "k", method: "elicitation/create" }, params),
      new Promise<null>(() => undefined),
    ]);
  check(MODERN.of("InputRequiredResult"), result(await edge.exchange(modern("tools/call", { name: "t", _meta: meta }))));
  check(MODERN.of("MissingRequiredClientCapabilityError"), (await edge.exchange(modern("tools/call", { name: "t" }))).json);
});

test("modern: errors are what the schema says, with and without an id", async () => {
  const edge = new EdgeHarness();
  const sent = modern("tools/list");
  const error = async (change: Record<string, string>, text = JSON.stringify(sent.body)): Promise<unknown> =>
    (await edge.exchange({ text, headers: { ...sent.headers, ...change } })).json;
  check(MODERN.of("HeaderMismatchError"), await error({ "mcp-method": "x" }));
  const v9 = JSON.stringify(sent.body).replace("2026-07-28", "v9");
  check(MODERN.of("UnsupportedProtocolVersionError"), await error({ "mcp-protocol-version": "v9" }, v9));
  check(MODERN.of("JSONRPCErrorResponse"), await error({}, "{"));
  check(MODERN.of("JSONRPCErrorResponse"), (await edge.exchange(modern("nope"))).json);
  edge.tunnel.onCall = ({ callId }) =>
    whole(
      message({
        type: "error",
        callId,
        seq: 1,
        origin: "agent",
        reason: "upstream_failed",
        outcome: "unknown",
        message: "m",
      }),
    );
  check(MODERN.of("JSONRPCErrorResponse"), (await edge.exchange(modern("tools/call", { name: "t" }))).json);
});

test.each(["2025-11-25", "2025-06-18", "2025-03-26"])(
  "%s: initialize, a call, its server request, and errors are what the schema says",
  async (version) => {
    const schema = load(version);
    const edge = new EdgeHarness();
    const capabilities = version === "2025-03-26" ? { roots: {} } : { elicitation: {} };
    const opened = await edge.exchange({
      body: { jsonrpc: "2.0", id: 0, method: "initialize", params: { protocolVersion: version, capabilities } },
    });
    check(schema.of("InitializeResult"), result(opened));
    const headers = { "mcp-session-id": opened.headers.get("mcp-session-id") ?? "" };
    const isOld = version === "2025-03-26";
    const params = { message: "m", requestedSchema: { type: "object", properties: {} } };
    edge.tunnel.onCall = ({ callId }) =>
      inSteps([
        message(
          { type: "ask", callId, seq: 1, askId: "k", method: isOld ? "roots/list" : "elicitation/create" },
          isOld ? undefined : params,
        ),
        resultMessage(callId, { content: [] }, { resultType: "complete", ttlMs: 1 }),
      ]);
    const { events } = await edge.exchange({ headers, body: { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "t" } } });
    check(schema.of("JSONRPCRequest"), events[0]);
    check(schema.of(isOld ? "ListRootsRequest" : "ElicitRequest"), events[0]);
    check(schema.of("CallToolResult"), (events[1] as { result: unknown }).result);
    const unknown = await edge.exchange({ headers, body: { jsonrpc: "2.0", id: 1, method: "nope" } });
    check(schema.of(version === "2025-11-25" ? "JSONRPCErrorResponse" : "JSONRPCError"), unknown.json);
  },
);
