/** Lists at the object: what becomes the catalogue, and who sees what of it. */
import { describe, expect, it } from "vitest";
import { accepted, eventually, onlineDevice } from "./support/device.ts";
import { type FakeAgent, grantOf, requestOf, type Stub, stubOf } from "./support/fake-agent.ts";
import { catalogueOf } from "./support/listening.ts";

/** A device that has told its catalogue. */
async function device(grant = grantOf()) {
  const online = await onlineDevice({}, grant);
  online.agent.send({ type: "catalogue", digest: "d1" }, catalogueOf(["lamp"]));
  await eventually(async () => expect(await online.stub.describe(grant.id)).toMatchObject({ view: { known: true } }));
  return online;
}

describe("lists", () => {
  const listRequest = (grant: string, change = {}) => {
    const { target: _target, ...request } = requestOf(grant, { method: "tools/list", payload: "{}", ...change });
    return request;
  };

  async function listed(stub: Stub, agent: FakeAgent, request: ReturnType<typeof listRequest>, tools: unknown[], protocol = "2026-07-28") {
    const reply = stub.call(request);
    await agent.next("call");
    agent.send({ type: "result", callId: request.callId, seq: 1, protocol }, JSON.stringify({ tools }));
    return accepted(reply);
  }

  it("that depend on a client's capabilities, or come from a handshake upstream, are their caller's alone", async () => {
    const { stub, agent, grant } = await device();
    const client = { era: "modern", protocol: "2026-07-28", capabilities: { elicitation: {} } } as const;
    expect((await listed(stub, agent, listRequest(grant.id, { client }), [{ name: "asks" }])).payload).toContain("asks");
    await listed(stub, agent, listRequest(grant.id), [{ name: "own" }], "2025-06-18");
    const legacy = { era: "legacy", protocol: "2025-06-18", capabilities: {} } as const;
    await listed(stub, agent, listRequest(grant.id, { client: legacy }), [{ name: "old" }], "2025-06-18");
    agent.socket.close(1000);
    await eventually(async () => expect(await stub.describe(grant.id)).toMatchObject({ view: { online: false } }));
    expect((await accepted(stub.call(listRequest(grant.id)))).payload).toContain("lamp");
    expect((await accepted(stub.call(listRequest(grant.id)))).payload).not.toMatch(/asks|own|old/);
  });

  it("from the catalogue show each grant what it covers", async () => {
    const { deviceId, stub, agent } = await device();
    const [lamp, oven] = [grantOf({ rights: { tools: ["lamp"] } }), grantOf({ rights: { tools: ["oven"] } })];
    await stub.putGrant(lamp);
    await stub.putGrant(oven);
    agent.send({ type: "catalogue", digest: "d2" }, catalogueOf(["lamp", "oven"]));
    agent.send({ type: "bye", reason: "test" });
    await eventually(async () => expect(await stubOf(deviceId).describe(lamp.id)).toMatchObject({ view: { online: false } }));
    expect((await accepted(stub.call(listRequest(lamp.id)))).payload).not.toContain("oven");
    expect((await accepted(stub.call(listRequest(oven.id)))).payload).not.toContain("lamp");
  });

  it("hide what is excluded under the upstream's own name, and calls tell the agent by which names was decided", async () => {
    const { stub, agent, grant } = await device(grantOf({ rights: { tools: ["*", "!shell"] } }));
    const described = JSON.parse(catalogueOf(["x_shell", "x_lamp"])) as { discover: object };
    const prefixes = { names: ["x_"], resources: [] };
    agent.send({ type: "catalogue", digest: "d3" }, JSON.stringify({ ...described, discover: { ...described.discover, prefixes } }));
    await eventually(async () => {
      const refused = await stub.call(requestOf(grant.id, { method: "tools/call", target: "x_shell" }));
      expect(refused).toMatchObject({ ok: false, refusal: { kind: "absent" } });
    });
    const tools = [{ name: "x_shell" }, { name: "x_lamp" }];
    const { payload } = await listed(stub, agent, listRequest(grant.id), tools);
    expect(JSON.parse(payload)).toEqual({ tools: [{ name: "x_lamp" }] });
    const request = requestOf(grant.id, { method: "tools/call", target: "x_lamp" });
    const reply = stub.call(request);
    expect(await agent.next("call")).toMatchObject({ frame: { target: "x_lamp", names: ["lamp"] } });
    agent.answer(request.callId, "{}");
    await accepted(reply);
  });
});
