import { describe, expect, it } from "vitest";
import { addDevice, dial, errorCode, startRelay } from "./api-support.ts";

describe("GET /tunnel/state", () => {
  it("tells the holder of a device key what it opens, and nobody else anything", async () => {
    const relay = await startRelay();
    const { deviceKey, device } = await addDevice(relay, "pi");
    const ask = async (key: string): Promise<Response> =>
      await relay.send("/tunnel/state", { headers: { Authorization: `Bearer ${key}` } });
    expect(await (await ask(deviceKey)).json()).toMatchObject({ device, state: "never", lastSeenAt: null, rivalAt: null });
    await dial(relay, deviceKey);
    expect(await (await ask(deviceKey)).json()).toMatchObject({ device, state: "online", agentVersion: "0.1.0" });
    const refused = await ask(`${deviceKey.slice(0, -1)}${deviceKey.endsWith("A") ? "B" : "A"}`);
    expect(refused.status).toBe(401);
    expect(await errorCode(refused)).toBe("not_authorised");
  });
});

describe("GET /agent.mjs", () => {
  it("says what to do where the relay was deployed without the file", async () => {
    const relay = await startRelay({ ASSETS: { fetch: async () => await Promise.resolve(new Response(null, { status: 404 })) } });
    const response = await relay.send("/agent.mjs");
    expect(response.status).toBe(404);
    expect(await response.text()).toContain("longline deploy");
  });
});
