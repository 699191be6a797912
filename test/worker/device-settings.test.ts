/** Settings of a device: changed by its owner, in force at once, shown in `status`; and what `status` says of a device that is away. */
import { describe, expect, it } from "vitest";
import { addDevice, addToken, dial, errorCode, startRelay, STATUS, tokenFor } from "./api-support.ts";

const DEFAULTS = { headerOnlyModern: false, initializedModern: false, sessionExpiry: "sleep" };
const VERSION = { "mcp-protocol-version": "2026-07-28" };

describe("the settings of a device", () => {
  it("are defaults until changed, and a change keeps the others", async () => {
    const relay = await startRelay();
    const { device } = await addDevice(relay);
    const settings = async () =>
      (await (await relay.asOwner("GET", `/api/devices/${device}/status`)).json<{ settings: unknown }>()).settings;
    expect(await settings()).toEqual(DEFAULTS);
    const first = await relay.asOwner("PATCH", `/api/devices/${device}`, { headerOnlyModern: true });
    expect([first.status, await first.json()]).toMatchObject([200, { device, settings: { ...DEFAULTS, headerOnlyModern: true } }]);
    await relay.asOwner("PATCH", `/api/devices/${device}`, { sessionExpiry: "strict" });
    expect(await settings()).toEqual({ ...DEFAULTS, headerOnlyModern: true, sessionExpiry: "strict" });
    await relay.asOwner("PATCH", `/api/devices/${device}`, { headerOnlyModern: false });
    expect(await settings()).toEqual({ ...DEFAULTS, sessionExpiry: "strict" });
    const { rows } = await (
      await relay.asOwner("GET", `/api/audit?device=${device}`)
    ).json<{ rows: { method: string; outcome: string }[] }>();
    expect(rows.filter(({ method }) => method === "device.settings").map(({ outcome }) => outcome)).toEqual(["ok", "ok", "ok"]);
  });

  it("are an owner's, and only those there are", async () => {
    const relay = await startRelay();
    const { device } = await addDevice(relay);
    for (const body of [{}, { unknown: true }, { headerOnlyModern: "yes" }, { sessionExpiry: "never" }]) {
      expect(await errorCode(await relay.asOwner("PATCH", `/api/devices/${device}`, body))).toBe("bad_request");
    }
    expect((await relay.asOwner("PATCH", "/api/devices/nobody", { headerOnlyModern: true })).status).toBe(404);
    const init = { method: "PATCH", headers: { Authorization: `Bearer ${await tokenFor("member")}` }, body: '{"headerOnlyModern":true}' };
    expect((await relay.send(`/api/devices/${device}`, init)).status).toBe(403);
  });

  it("are in force with the next request, and off again with the next change", async () => {
    const relay = await startRelay();
    const { device } = await addDevice(relay);
    const { token } = await addToken(relay, device);
    const ping = () =>
      relay.send(`/mcp/${device}`, {
        method: "POST",
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json", ...VERSION },
        body: '{"jsonrpc":"2.0","id":1,"method":"ping"}',
      });
    expect((await ping()).status).toBe(400);
    await relay.asOwner("PATCH", `/api/devices/${device}`, { headerOnlyModern: true });
    expect(await (await ping()).json()).toEqual({ jsonrpc: "2.0", id: 1, result: {} });
    await relay.asOwner("PATCH", `/api/devices/${device}`, { headerOnlyModern: false });
    expect((await ping()).status).toBe(400);
  });
});

describe("the status of a device that is away", () => {
  it("does not repeat what its agent last said of its upstreams", async () => {
    const relay = await startRelay();
    const { device, deviceKey } = await addDevice(relay);
    await dial(relay, deviceKey);
    const upstreams = async () =>
      (await (await relay.asOwner("GET", `/api/devices/${device}/status`)).json<{ upstreams: unknown }>()).upstreams;
    expect(await upstreams()).toMatchObject([{ alias: "main", state: "ready", era: "modern", lastRoundTripMs: 12 }]);
    STATUS.online = false;
    try {
      expect(await upstreams()).toMatchObject([{ alias: "main", state: "unknown", era: "modern", lastRoundTripMs: null }]);
    } finally {
      STATUS.online = true;
    }
  });
});
