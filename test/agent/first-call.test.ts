import { expect, test } from "vitest";
import { legacyClient } from "../support/fake-relay.ts";
import { builtin, connected, everything, fixture } from "./harness.ts";

test("a call runs at the built-in tools", async () => {
  const { agent } = await connected([builtin()]);
  const callId = agent.call({ method: "tools/call", target: "echo" }, { arguments: { text: "hello" } });
  const { frame, payload } = await agent.outcome(callId);
  expect(frame).toMatchObject({ type: "result", seq: 1, protocol: "2026-07-28", resultType: "complete" });
  expect(JSON.parse(payload)).toEqual({ content: [{ type: "text", text: "hello" }], structuredContent: { text: "hello" } });
  expect(agent.problem).toBeNull();
});

test("a modern caller reaches the stateless side of a dual-era stdio server", async () => {
  const { agent } = await connected([fixture()]);
  const { frame, payload } = await agent.outcome(agent.call({ method: "tools/call", target: "test_simple_text" }, { arguments: {} }));
  expect(frame).toMatchObject({ type: "result", protocol: "2026-07-28", resultType: "complete" });
  expect(JSON.parse(payload)).toEqual({ content: [{ type: "text", text: "This is a simple text response for testing." }] });
});

test("a legacy caller reaches the handshake side of the same server", async () => {
  const { agent, handle } = await connected([fixture()]);
  const { frame, payload } = await agent.outcome(
    agent.call({ method: "tools/call", target: "test_simple_text", client: legacyClient() }, { arguments: {} }),
  );
  expect(frame).toMatchObject({ type: "result", protocol: "2025-11-25" });
  expect(frame).not.toHaveProperty("resultType");
  expect(JSON.parse(payload)).toMatchObject({ content: [{ type: "text" }] });
  expect(handle.state().upstreams[0]).toMatchObject({ era: "dual", state: "ready" });
});

test("both callers are served by a legacy-only server", async () => {
  const { agent } = await connected([everything()]);
  for (const client of [legacyClient(), undefined]) {
    const callId = agent.call({ method: "tools/call", target: "echo", ...(client ? { client } : {}) }, { arguments: { message: "hi" } });
    const { frame, payload } = await agent.outcome(callId);
    expect(frame).toMatchObject({ type: "result", protocol: "2025-11-25" });
    expect(JSON.parse(payload)).toMatchObject({ content: [{ type: "text", text: "Echo: hi" }] });
  }
});
