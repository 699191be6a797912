/** Compatibility switches of a device: off, they change nothing; on, they let one kind of client through. */
import { beforeEach, describe, expect, test } from "vitest";
import { DeviceSettings, readDeviceSettings } from "../../src/policy/device-settings.ts";
import { EdgeHarness, MODERN, modernMeta } from "../support/edge-harness.ts";
import { inSteps, message, resultMessage, whole } from "../support/fake-tunnel.ts";

const rpc = (method: string, params?: unknown, id: unknown = 1) => ({
  jsonrpc: "2.0",
  id,
  method,
  ...(params === undefined ? {} : { params }),
});

let edge: EdgeHarness;
beforeEach(() => {
  edge = new EdgeHarness();
});

describe("headerOnlyModern", () => {
  const headers = { "mcp-protocol-version": MODERN };
  beforeEach(() => {
    edge.switches = { headerOnlyModern: true };
  });

  test("a version header alone counts as having no capabilities, and ping answers", async () => {
    expect((await edge.exchange({ body: rpc("ping"), headers })).json).toEqual({ jsonrpc: "2.0", id: 1, result: {} });
    const { status, json } = await edge.exchange({ body: rpc("tools/call", { name: "lamp", arguments: {} }), headers });
    expect([status, json]).toMatchObject([200, { result: { resultType: "complete" } }]);
    expect(edge.tunnel.calls[0]).toMatchObject({ target: "lamp", client: { era: "modern", protocol: MODERN, capabilities: {} } });
    // Absent, not empty: no parameter header is demanded of such a client.
    expect(edge.tunnel.calls[0]).not.toHaveProperty("paramHeaders");
    expect((await edge.exchange({ body: rpc("server/discover"), headers })).status).toBe(200);
  });

  test.each([
    ["Mcp-Method", { ...headers, "mcp-method": "ping" }, undefined, -32602],
    ["_meta", headers, { _meta: {} }, -32602],
    ["another version", { "mcp-protocol-version": "2099-01-01" }, undefined, -32022],
  ])("%s makes the rules strict again", async (_what, sent, params, code) => {
    const { status, json } = await edge.exchange({ body: rpc("ping", params), headers: sent });
    expect([status, json]).toMatchObject([400, { error: { code } }]);
  });
});

describe("initializedModern", () => {
  const initialize = rpc("initialize", { protocolVersion: MODERN, capabilities: { elicitation: { url: {} } } });
  const open = async (): Promise<Record<string, string>> => {
    const { headers } = await edge.exchange({ body: initialize });
    return { "mcp-session-id": headers.get("mcp-session-id") ?? "", "mcp-protocol-version": MODERN };
  };
  beforeEach(() => {
    edge.switches = { initializedModern: true };
  });

  test("R110: off, a session at the stateless revision is answered with a handshake revision", async () => {
    edge.switches = {};
    expect((await edge.exchange({ body: initialize })).json).toMatchObject({ result: { protocolVersion: "2025-11-25" } });
  });

  test("on, it is answered with that revision, and results carry resultType without any Mcp-* header", async () => {
    const { json } = await edge.exchange({ body: initialize });
    expect(json).toMatchObject({ result: { protocolVersion: MODERN, resultType: "complete" } });
    const headers = await open();
    const call = rpc("tools/call", { name: "lamp", arguments: {}, _meta: modernMeta() });
    expect((await edge.exchange({ body: call, headers })).json).toMatchObject({ result: { resultType: "complete" } });
    expect((await edge.exchange({ body: rpc("ping"), headers })).json).toMatchObject({ result: { resultType: "complete" } });
    const initialized = { jsonrpc: "2.0", method: "notifications/initialized" };
    expect((await edge.exchange({ body: initialized, headers })).status).toBe(202);
    expect((await edge.exchange({ body: rpc("tools/list"), headers: { ...headers, "mcp-session-id": "unknown" } })).status).toBe(404);
  });

  test("structured content of any type stays, as the revision allows it", async () => {
    const headers = await open();
    edge.tunnel.onCall = ({ callId }) => whole(resultMessage(callId, '{"content":[],"structuredContent":[1]}', { structuredAt: 13 }));
    const { json } = await edge.exchange({ body: rpc("tools/call", { name: "lamp" }), headers });
    expect(json).toMatchObject({ result: { structuredContent: [1] } });
  });

  test("server requests go out on the call's stream, URL elicitation included, and answers come by POST", async () => {
    const headers = await open();
    const answered = Promise.withResolvers<string>();
    edge.tunnel.onCall = ({ callId }) =>
      inSteps([
        message(
          { type: "ask", callId, seq: 1, askId: "a1", method: "elicitation/create" },
          { mode: "url", url: "https://x.example", message: "m" },
        ),
        answered.promise.then(() => resultMessage(callId, { content: [] })),
      ]);
    const response = edge.exchange({ body: rpc("tools/call", { name: "lamp" }), headers });
    await expect.poll(() => edge.tunnel.calls.length).toBe(1);
    const id = `${edge.tunnel.calls[0]?.callId ?? ""}:a1`;
    const answer = await edge.exchange({ body: { jsonrpc: "2.0", id, result: { action: "accept" } }, headers });
    expect(answer.status).toBe(202);
    answered.resolve("");
    expect((await response).events).toMatchObject([
      { id, method: "elicitation/create", params: { mode: "url", elicitationId: expect.any(String) } },
      { id: 1, result: { resultType: "complete" } },
    ]);
    expect(edge.tunnel.answered).toMatchObject([{ askKey: id, kind: "result" }]);
  });

  test("a stateless client on the same device is not taken for a session, whatever session id it carries", async () => {
    const headers = { "mcp-session-id": "stale", "mcp-protocol-version": MODERN, "mcp-method": "tools/list" };
    const { status } = await edge.exchange({ body: rpc("tools/list", { _meta: modernMeta() }), headers });
    expect(status).toBe(200);
    expect(edge.tunnel.calls[0]).not.toHaveProperty("session");
  });
});

test("sessionExpiry: strict is told to the object with every use of a session", async () => {
  edge.switches = { sessionExpiry: "strict" };
  const { headers } = await edge.exchange({ body: rpc("initialize", { protocolVersion: "2025-11-25", capabilities: {} }) });
  await edge.exchange({ body: rpc("tools/list"), headers: { "mcp-session-id": headers.get("mcp-session-id") ?? "" } });
  expect(edge.tunnel.calls[0]?.session).toMatchObject({ strict: true });
});

test("stored settings: what is missing has its default, and what cannot be read counts as never set", () => {
  const defaults = { headerOnlyModern: false, initializedModern: false, sessionExpiry: "sleep" };
  expect(DeviceSettings.parse({})).toEqual(defaults);
  expect(readDeviceSettings('{"sessionExpiry":"strict"}')).toEqual({ ...defaults, sessionExpiry: "strict" });
  for (const text of ["", "[]", '{"sessionExpiry":1}', '{"unknown":true}']) expect(readDeviceSettings(text)).toEqual(defaults);
});
