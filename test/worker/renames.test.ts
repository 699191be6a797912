/** Another name for a device: the old URL and the tokens made for it go on for a while, and nobody else gets the name before. */
import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { forgetDevice } from "../../src/auth/device-stub.ts";
import { addDevice, addToken, freshName, type Relay, startRelay } from "./api-support.ts";

async function call(relay: Relay, name: string, token: string): Promise<number> {
  const response = await relay.send(`/mcp/${name}`, {
    method: "POST",
    headers: {
      Authorization: `Bearer ${token}`,
      "Content-Type": "application/json",
      Accept: "application/json, text/event-stream",
      "MCP-Protocol-Version": "2025-06-18",
    },
    body: `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`,
  });
  return response.status;
}

describe("a renamed device", () => {
  it("answers at both URLs, to tokens of before and after, and at no other device's", async () => {
    const relay = await startRelay();
    const first = await addDevice(relay);
    const other = await addDevice(relay);
    const before = await addToken(relay, first.device);
    const to = freshName();
    const renamed = await relay.asOwner("POST", `/api/devices/${first.device}/rename`, { name: to });
    expect(await renamed.json()).toMatchObject({ device: to, formerName: first.device, mcpUrl: `https://relay.test/mcp/${to}` });
    const after = await addToken(relay, to);
    for (const { token } of [before, after]) {
      expect(await call(relay, first.device, token)).toBe(200);
      expect(await call(relay, to, token)).toBe(200);
      expect(await call(relay, other.device, token)).toBe(401);
    }
  });

  it("stops answering at the old URL after 30 days", async () => {
    const relay = await startRelay();
    const { device, id } = await addDevice(relay);
    const { token } = await addToken(relay, device);
    const to = freshName();
    const { formerNameUntil } = await (
      await relay.asOwner("POST", `/api/devices/${device}/rename`, { name: to })
    ).json<{ formerNameUntil: number }>();
    expect(Math.round((formerNameUntil - Date.now()) / 86_400_000)).toBe(30);
    await env.DB.prepare("UPDATE device_names SET until = ? WHERE name = ?").bind(Date.now(), device).run();
    forgetDevice(id);
    expect(await call(relay, device, token)).toBe(401);
    expect(await call(relay, to, token)).toBe(401);
  });

  it("keeps its former name from others until then, and can have it back", async () => {
    const relay = await startRelay();
    const { device } = await addDevice(relay);
    const other = await addDevice(relay);
    const to = freshName();
    await relay.asOwner("POST", `/api/devices/${device}/rename`, { name: to });
    const refused = await relay.asOwner("POST", "/api/devices", { name: device });
    expect(refused.status).toBe(409);
    expect(await refused.text()).toContain("former name");
    expect((await relay.asOwner("POST", `/api/devices/${other.device}/rename`, { name: device })).status).toBe(409);
    expect((await relay.asOwner("POST", `/api/devices/${to}/rename`, { name: device })).status).toBe(200);
    expect((await relay.asOwner("GET", `/api/devices/${device}/status`)).status).toBe(200);
  });

  it("frees its names when it is removed", async () => {
    const relay = await startRelay();
    const { device } = await addDevice(relay);
    const to = freshName();
    await relay.asOwner("POST", `/api/devices/${device}/rename`, { name: to });
    await relay.asOwner("DELETE", `/api/devices/${to}`);
    expect((await relay.asOwner("POST", "/api/devices", { name: device })).status).toBe(201);
  });

  it("does not take a name that is in use, malformed or its own", async () => {
    const relay = await startRelay();
    const { device } = await addDevice(relay);
    const other = await addDevice(relay);
    for (const [name, status] of [
      [other.device, 409],
      [device, 409],
      ["Not-A-Name", 400],
    ] as const)
      expect((await relay.asOwner("POST", `/api/devices/${device}/rename`, { name })).status).toBe(status);
    expect((await relay.asOwner("GET", `/api/devices/${device}/status`)).status).toBe(200);
  });
});
