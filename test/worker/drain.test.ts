/** Before an upgrade every connected agent is told; and where a relay's objects are. */
import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { findDeviceByName, markBorn, recordPresence } from "../../src/db/devices.ts";
import { addDevice, addToken, startRelay, tokenFor } from "./api-support.ts";

async function online(relay: Awaited<ReturnType<typeof startRelay>>): Promise<{ id: string; name: string }> {
  const { device } = await addDevice(relay);
  const found = await findDeviceByName(env.DB, device);
  if (found === null) throw new Error("no such device");
  await markBorn(env.DB, found.id, Date.now());
  await recordPresence(env.DB, found.id, { generation: 1, online: true, lastSeenAt: Date.now(), agentVersion: undefined });
  return { id: found.id, name: device };
}

describe("POST /api/drain", () => {
  it("tells the agents of the devices that are online, and counts the calls in flight", async () => {
    const relay = await startRelay();
    const { id } = await online(relay);
    const { device: away } = await addDevice(relay);
    const answer = await relay.asOwner("POST", "/api/drain");
    expect([answer.status, await answer.json()]).toEqual([200, { inFlight: expect.any(Number) }]);
    const drained = relay.objects.notes.filter((note) => note.method === "drain").map((note) => note.id);
    expect(drained).toContain(id);
    expect(drained).not.toContain((await findDeviceByName(env.DB, away))?.id);
  });

  it("goes on when an object is out of reach", async () => {
    const relay = await startRelay();
    await online(relay);
    relay.objects.failing.add("drain");
    expect(await (await relay.asOwner("POST", "/api/drain")).json()).toEqual({ inFlight: 0 });
  });

  it("is for owners", async () => {
    const relay = await startRelay();
    const member = await tokenFor("member");
    const answer = await relay.send("https://relay.test/api/drain", { method: "POST", headers: { Authorization: `Bearer ${member}` } });
    expect(answer.status).toBe(403);
  });
});

describe("a relay with a jurisdiction", () => {
  it("has its objects there and nowhere else", async () => {
    const relay = await startRelay({ LONGLINE_JURISDICTION: "eu" });
    const { name } = await online(relay);
    const { token, mcpUrl } = await addToken(relay, name);
    await relay.send(mcpUrl, {
      method: "POST",
      headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
      body: "{}",
    });
    await relay.asOwner("GET", `/api/devices/${name}`);
    expect(new Set(relay.objects.jurisdictions)).toEqual(new Set(["eu"]));
    expect((await startRelay()).objects.jurisdictions).toEqual([]);
  });
});
